//! The gateway as a process: started from a file, watched from outside, killed by guard.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::client::{Answer, Client};
use super::protocol::{Dialer, Protocol, spoken};
use super::settings::Settings;
use super::wait::{SOON, wait_until, wait_until_async, within};
use super::wire::Request;
use super::{metrics, score, sockets};

/// The binary under test. Another build than the tests' own may be named, as that of a release for a figure.
pub(crate) static BINARY: LazyLock<String> = LazyLock::new(|| {
    std::env::var("STREAMGATE_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_streamgate").to_owned())
});
pub(super) const START: Duration = Duration::from_secs(20);

/// A running gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    child: Child,
    /// Shared with its successors.
    pub(crate) dir: Arc<TempDir>,
    /// Its own log.
    stderr: PathBuf,
    lines: mpsc::UnboundedReceiver<String>,
    /// Where clients are served.
    pub(crate) addr: SocketAddr,
    /// All its client listeners as it names them, in the order of the file; `addr` is the last one with a port.
    pub(crate) listeners: Vec<String>,
    /// The admin listener.
    pub(crate) admin: SocketAddr,
    /// What its clients speak.
    pub(super) protocol: Protocol,
}

impl Gateway {
    /// Starts the gateway and waits until it is ready.
    pub(crate) async fn start(settings: Settings) -> Self {
        Self::start_in(settings, &[]).await
    }

    /// The same with these environment variables.
    pub(crate) async fn start_in(settings: Settings, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(&*BINARY);
        command.envs(variables.iter().copied());
        Self::start_as(command, settings).await
    }

    /// The same behind a limit of file descriptors, as `ulimit` takes it: `-Sn 256`.
    pub(crate) async fn start_limited(limit: &str, settings: Settings) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), BINARY.as_str()]);
        Self::start_as(shell, settings).await
    }

    /// The same with a hosts file of its own, which may change; needs user namespaces.
    pub(crate) async fn start_with_hosts(hosts: &std::path::Path, settings: Settings) -> Self {
        let mut unshare = Command::new("unshare");
        let script = "mount --bind \"$HOSTS\" /etc/hosts && exec \"$0\" \"$@\"";
        unshare.args(["-rm", "sh", "-c", script, &BINARY]).env("HOSTS", hosts);
        Self::start_as(unshare, settings).await
    }

    /// Starts the gateway on a file that is there already, and is not in its folder.
    pub(crate) async fn start_on(file: &std::path::Path) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        Self::spawn(Command::new(&*BINARY), "run", Arc::new(dir), file, Protocol::Http1).await
    }

    /// Starts its successor on the same file and waits until that has taken over.
    pub(crate) async fn upgraded(&self) -> Self {
        self.upgraded_to(&self.file()).await
    }

    /// The same on another file.
    pub(crate) async fn upgraded_to(&self, file: &std::path::Path) -> Self {
        Self::spawn(Command::new(&*BINARY), "upgrade", Arc::clone(&self.dir), file, self.protocol).await
    }

    /// Starts the gateway by a command that puts something before it.
    pub(crate) async fn start_by(command: Command, settings: Settings) -> Self {
        Self::start_as(command, settings).await
    }

    async fn start_as(command: Command, settings: Settings) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let file = dir.path().join("streamgate.yaml");
        let protocol = spoken();
        let settings = match protocol {
            Protocol::Http1 => settings,
            Protocol::H2c => settings.set("server.listen.0.h2c", true),
        };
        std::fs::write(&file, settings.text(&dir.path().join("access.log"))).expect("write the file");
        Self::spawn(command, "run", Arc::new(dir), &file, protocol).await
    }

    async fn spawn(
        mut command: Command,
        verb: &str,
        dir: Arc<TempDir>,
        file: &std::path::Path,
        protocol: Protocol,
    ) -> Self {
        let entries = std::fs::read_dir(dir.path()).expect("the folder").count();
        let stderr = dir.path().join(format!("stderr-{entries}.log"));
        let log = std::fs::File::create(&stderr).expect("create the log");
        command.args([verb, "-c"]).arg(file).stdout(Stdio::piped()).stderr(log);
        // A case may have put something there.
        if verb == "upgrade" || command.get_program() == BINARY.as_str() {
            command.stdin(Stdio::null());
        }
        let mut child = command.spawn().expect("start the gateway");
        let mut lines = lines_of(&mut child);
        let (mut addr, mut admin, mut listeners) = (None, None, Vec::new());
        while let Some(line) = within("the gateway says ready", START, lines.recv()).await {
            if let Some(found) = line.strip_prefix("streamgate listening on ") {
                addr = found.split("://").nth(1).map_or(addr, |found| found.parse().ok());
                listeners.push(found.to_owned());
            } else if let Some(found) = line.strip_prefix("streamgate admin on ") {
                // One that is a unix socket is asked by the test itself.
                let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
                admin = Some(found.trim_start_matches("http://").parse().unwrap_or(nowhere));
            } else if line == "ready" {
                break;
            }
        }
        if verb == "upgrade" {
            score::struck(1, "a successor takes over");
        }
        let (Some(addr), Some(admin)) = (addr, admin) else {
            let log = std::fs::read_to_string(&stderr).unwrap_or_default();
            panic!("the gateway did not start ({:?}): {log}", child.wait());
        };
        Self { child, dir, stderr, lines, addr, listeners, admin, protocol }
    }

    /// Where its listener with this number listens.
    pub(crate) fn listener(&self, number: usize) -> SocketAddr {
        let address = self.listeners[number].split("://").nth(1).expect("a listener with a port");
        address.parse().expect("an address")
    }

    /// What its clients dial.
    pub(crate) fn dialer(&self) -> Dialer {
        Dialer { addr: self.addr, protocol: self.protocol }
    }

    /// A connected client.
    pub(crate) async fn client(&self) -> Client {
        self.dialer().client().await
    }

    /// A client whose receive buffer is as small as the kernel allows; over HTTP/2 the window of its streams
    /// is what there is to fill, and it holds a little more than one event of 64 KiB.
    pub(crate) async fn narrow_client(&self) -> Client {
        let stream = sockets::connect_narrow(self.addr, 4096).await;
        match self.protocol {
            Protocol::Http1 => Client::over(stream).reading(2048),
            Protocol::H2c => Client::over_h2(stream, 80 * 1024).await,
        }
    }

    /// A client that has sent this request.
    pub(crate) async fn send(&self, request: &Request) -> Client {
        let mut client = self.client().await;
        client.send(request.bytes()).await;
        client
    }

    /// Sends a request on a connection of its own and reads the whole answer.
    pub(crate) async fn ask(&self, request: &Request) -> Answer {
        self.send(request).await.answer().await
    }

    /// Sum of the series of a metric (without its prefix) that carry these labels.
    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.admin_get("/metrics").await.text();
        metrics::value(&text, &format!("streamgate_{name}"), labels)
    }

    /// Waits until a metric has this value.
    pub(crate) async fn wait_metric(&self, name: &str, labels: &[(&str, &str)], value: f64) {
        let what = format!("{name}{labels:?} = {value}");
        self.wait_metric_where(&what, name, labels, |now| (now - value).abs() < f64::EPSILON).await;
    }

    /// Waits until a metric has a value that will do.
    pub(crate) async fn wait_metric_where(
        &self,
        what: &str,
        name: &str,
        labels: &[(&str, &str)],
        will_do: impl Fn(f64) -> bool,
    ) {
        wait_until_async(what, SOON, || async { will_do(self.metric(name, labels).await) }).await;
    }

    /// The text of the access log.
    pub(crate) fn access_text(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("access.log")).unwrap_or_default()
    }

    /// The access lines written so far.
    pub(crate) fn access_lines(&self) -> Vec<Value> {
        let text = self.access_text();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("an access line is JSON")).collect()
    }

    /// Waits for an access line.
    pub(crate) async fn wait_access(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        let what = format!("access line: {what}");
        wait_until(&what, SOON, || {
            found = self.access_lines().into_iter().find(&wanted);
            found.is_some()
        })
        .await;
        found.expect("found above")
    }

    /// Waits for so many access lines, and not one more: they are written behind the answer.
    pub(crate) async fn all_access(&self, count: usize) -> Vec<Value> {
        wait_until("all access lines", SOON, || self.access_lines().len() >= count).await;
        let lines = self.access_lines();
        assert_eq!(lines.len(), count, "one line an exchange");
        lines
    }

    /// Waits for the line of the only exchange so far.
    pub(crate) async fn only_access(&self) -> Value {
        self.all_access(1).await.remove(0)
    }

    /// Resident memory in KiB.
    pub(crate) fn rss_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Open file descriptors.
    pub(crate) fn fd_count(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("fd").count()
    }

    /// The limits of file descriptors it runs under: soft and hard.
    pub(crate) fn fd_limits(&self) -> (u64, u64) {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.child.id())).expect("limits");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("open files");
        let mut fields = line.split_whitespace().map(|field| field.parse().expect("a number"));
        (fields.next().expect("soft"), fields.next().expect("hard"))
    }

    /// Clock ticks (hundredths of a second) of CPU used so far, user and system.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("stat");
        let fields = stat.rsplit(") ").next().expect("fields").split(' ').skip(11).take(2);
        fields.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal by its short name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("run kill");
        assert!(status.success(), "kill -{name} {pid}");
        score::struck(1, &format!("SIG{name} to the gateway"));
    }

    /// Moves the access log's file away, as a rotation does, and gives what was in it.
    pub(crate) fn rotate_access(&self) -> String {
        let (now, old) = (self.dir.path().join("access.log"), self.dir.path().join("access.log.1"));
        std::fs::rename(now, &old).expect("rename");
        std::fs::read_to_string(old).expect("read")
    }

    /// Waits for the process to end.
    pub(crate) async fn exit(&mut self, deadline: Duration) -> ExitStatus {
        let mut status = None;
        wait_until("the gateway exits", deadline, || {
            status = self.child.try_wait().expect("wait for the gateway");
            status.is_some()
        })
        .await;
        status.expect("set above")
    }

    /// The next line on standard output after "ready".
    pub(crate) async fn next_line(&mut self) -> String {
        within("a line", START, self.lines.recv()).await.expect("standard output is open")
    }

    /// What it wrote to standard output after "ready", once it has ended.
    pub(crate) async fn rest_of_stdout(&mut self) -> String {
        let mut rest = String::new();
        while let Some(line) = within("standard output ends", SOON, self.lines.recv()).await {
            rest = rest + &line + "\n";
        }
        rest
    }

    /// What the gateway wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until the log says so: it is written behind what happens.
    pub(crate) async fn wait_log(&self, words: &str) {
        wait_until(&format!("log: {words}"), SOON, || self.log().contains(words)).await;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The process may be gone already; there is nothing to do about a failure either way.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("--- gateway log\n{}", self.log());
            eprintln!("--- access lines");
            eprintln!("{}", self.access_text());
        } else {
            score::close(&self.access_text());
        }
    }
}

/// Runs the binary to its end with these arguments and variables: its exit code, and all it wrote.
pub(crate) fn output(args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(&*BINARY);
    command.args(args).envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().expect("run the binary");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), text.concat())
}

/// Runs the binary to its end with these arguments and gives its exit code.
pub(crate) fn exit_code(args: &[&str]) -> Option<i32> {
    output(args, &[]).0
}

/// Writes a file for `run -c` into a directory that lives as long as the guard.
pub(crate) fn config_file(text: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("streamgate.yaml");
    std::fs::write(&file, text).expect("write the file");
    (dir, file)
}

/// Standard output by lines; a thread of its own keeps the pipe from filling up.
pub(super) fn lines_of(child: &mut Child) -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let stdout = child.stdout.take().expect("stdout is piped");
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody listens after "ready"; the pipe is still drained.
            drop(sender.send(line));
        }
    });
    receiver
}
