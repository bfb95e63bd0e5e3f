//! The process among others: what systemd is told and passes, what becomes of it where descriptors or the disk
//! are used up, and the units for systemd that come with it.

#[path = "config/machine.rs"]
mod machine;
mod support;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use support::gateway::config_file;
use support::wait::{SOON, silence, wait_until_async};
use support::wire::{ANSWER, Request, event, json_answer};
use support::{Client, Gateway, Settings, Upstream, as_is, checks, not_run, one_engine, streaming};
use tokio::net::TcpStream;

/// A service manager, as far as a service sees it.
struct Manager {
    socket: UnixDatagram,
    path: String,
    _dir: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("notify").display().to_string();
        let socket = UnixDatagram::bind(&path).expect("bind");
        socket.set_read_timeout(Some(SOON)).expect("a timeout");
        Self { socket, path, _dir: dir }
    }

    fn next(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_owned).collect()
    }
}

/// Type=notify: the start, a reload that is applied and one that is not, the end.
#[tokio::test]
async fn systemd_is_told() {
    let manager = Manager::new();
    let settings = Settings::new(&["127.0.0.1:1".parse().unwrap()]);
    let mut gateway = Gateway::start_in(settings.clone(), &[("NOTIFY_SOCKET", &manager.path)]).await;
    assert_eq!(manager.next(), ["READY=1", "STATUS=serving, generation 1"]);
    let log = gateway.dir.path().join("access.log");
    let (good, bad) = (settings.set("timeouts.idle", "3s").text(&log), "server: [".to_owned());
    for (text, status) in
        [(good, "STATUS=serving, generation 2"), (bad, "STATUS=serving; the last file is refused")]
    {
        std::fs::write(gateway.file(), text).unwrap();
        let reloading = manager.next();
        assert_eq!(reloading[0], "RELOADING=1");
        let moment = reloading[1].strip_prefix("MONOTONIC_USEC=").expect("the moment of it");
        assert!(moment.parse::<u64>().unwrap() > 0);
        let ready = manager.next();
        assert_eq!(ready[0], "READY=1");
        assert!(ready[1].starts_with(status), "{ready:?}");
    }
    gateway.terminate();
    assert_eq!(manager.next(), ["STOPPING=1", "STATUS=draining"]);
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
}

/// MAINPID: the service goes on in the successor, which is heard from then on.
#[tokio::test]
async fn systemd_is_told_of_a_successor() {
    let (manager, dir) = (Manager::new(), tempfile::tempdir().unwrap());
    let socket = dir.path().join("upgrade.sock").display().to_string();
    let settings = Settings::new(&["127.0.0.1:1".parse().unwrap()]).set("server.upgrade_socket", socket);
    let mut gateway = Gateway::start_in(settings, &[("NOTIFY_SOCKET", &manager.path)]).await;
    assert_eq!(manager.next()[0], "READY=1");
    gateway.signal("QUIT");
    let told = manager.next();
    let pid = told[0].strip_prefix("MAINPID=").expect("the new process").to_owned();
    assert_ne!(pid, gateway.pid().to_string());
    assert_eq!(manager.next()[0], "READY=1", "and not STOPPING");
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(manager.next()[0], "STOPPING=1");
}

/// systemd waits for the end of its own children alone, and restarts no others: it is the successor's parent before it
/// is told of it. And it ends what is left when the main process has ended: that waits for the streams of the old one.
#[tokio::test]
async fn systemd_can_wait_for_a_successor() {
    let (manager, dir) = (Manager::new(), tempfile::tempdir().unwrap());
    let mut upstream = Upstream::start().await;
    let socket = dir.path().join("upgrade.sock").display().to_string();
    let settings = Settings::new(&[upstream.addr])
        .set("server.upgrade_socket", socket)
        .set("timeouts.idle", "25s")
        .set("server.shutdown.lame_duck", "0s")
        .set("server.shutdown.drain", "10m");
    let mut gateway = Gateway::start_in(settings, &[("NOTIFY_SOCKET", &manager.path)]).await;
    assert_eq!(manager.next()[0], "READY=1");
    let (client, call) = streaming(&gateway, &mut upstream, &["1"]).await;
    gateway.signal("QUIT");
    let told = manager.next();
    let pid = told[0].strip_prefix("MAINPID=").expect("the new process").to_owned();
    let field = |name: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    let parent = field("PPid:").expect("it runs");
    assert_eq!(manager.next()[0], "READY=1");
    let above = std::fs::read_to_string(format!("/proc/{parent}/status")).unwrap();
    assert!(!above.contains("streamgate"), "{above}");

    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(manager.next()[0], "STOPPING=1");
    gateway.wait_log("still has streams, and is waited for").await;
    assert!(field("State:").is_some_and(|state| !state.starts_with('Z')), "it has left its streams alone");
    checks::ends_same(client, call, event("1").as_bytes()).await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    let ended = || async { field("State:").is_none_or(|state| state.starts_with('Z')) };
    wait_until_async("both have ended", SOON, ended).await;
}

/// The journal takes the level of a line from its beginning, where standard error is the journal.
#[tokio::test]
async fn the_journal_is_told_of_levels() {
    let mut shell = Command::new("sh");
    let script = "JOURNAL_STREAM=$(stat -Lc %d:%i /dev/stderr) exec \"$0\" \"$@\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_streamgate")]);
    let gateway = Gateway::start_by(shell, Settings::new(&["127.0.0.1:1".parse().unwrap()])).await;
    std::fs::write(gateway.file(), "server: [").unwrap();
    gateway.wait_log("the configuration is refused").await;
    gateway.terminate();
    gateway.wait_log("leaving: ").await;
    let log = gateway.log();
    let begins = |text: &str| log.lines().find(|line| line.contains(text)).map(|line| &line[..4]);
    assert_eq!((begins("is refused"), begins("leaving: ")), (Some("<3>{"), Some("<6>{")), "{log}");

    let other = [("JOURNAL_STREAM", "1:1")];
    let gateway = Gateway::start_in(Settings::new(&["127.0.0.1:1".parse().unwrap()]), &other).await;
    std::fs::write(gateway.file(), "server: [").unwrap();
    gateway.wait_log("the configuration is refused").await;
    assert!(gateway.log().lines().all(|line| line.starts_with('{')), "{}", gateway.log());
}

/// Socket activation: what systemd passes is used where the file has its address.
#[tokio::test]
async fn sockets_that_systemd_passes_are_used() {
    let passed = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = passed.local_addr().unwrap();
    let waiting = TcpStream::connect(addr).await.unwrap();
    let mut upstream = Upstream::start().await;
    let engine = upstream.addr;
    let settings =
        move |addr: SocketAddr| Settings::new(&[engine]).set("server.listen.0.address", addr.to_string());
    let mut shell = Command::new("sh");
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_streamgate")]);
    shell.stdin(Stdio::from(OwnedFd::from(passed.try_clone().unwrap())));
    let gateway = Gateway::start_by(shell, settings(addr)).await;
    drop(passed);
    assert_eq!(gateway.addr, addr);
    // Who came before the gateway was there has waited.
    let mut early = Client::over(waiting);
    for client in [&mut early, &mut gateway.client().await] {
        client.send(Request::unary().bytes()).await;
        upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    drop(gateway);

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let unwanted = other.local_addr().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_streamgate")]).stdin(Stdio::from(OwnedFd::from(other)));
    let gateway = Gateway::start_by(shell, settings("127.0.0.1:0".parse().unwrap())).await;
    gateway.wait_log(&format!("{unwanted} is not in the file")).await;
    assert!(TcpStream::connect(unwanted).await.is_err());
    drop(gateway);
}

/// G8: with far more connections than descriptors the gateway neither spins nor dies, its streams go on,
/// operators are served, and it recovers.
#[tokio::test]
async fn g8_descriptors_are_used_up() {
    let mut upstream = Upstream::start().await;
    let settings = Settings::new(&[upstream.addr]).set("timeouts.idle", "25s");
    let gateway = Gateway::start_limited("-n 96", settings).await;
    gateway.wait_log("21 connections are served").await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let mut flood = Vec::new();
    for _ in 0..200 {
        flood.push(TcpStream::connect(gateway.addr).await.unwrap());
    }
    gateway.wait_metric_where("refused", "connections_refused_total", &[], |refused| refused > 0.0).await;
    let before = gateway.cpu_ticks();
    silence(Duration::from_secs(2)).await;
    let ticks = gateway.cpu_ticks() - before;
    assert!(ticks < 100, "{ticks} hundredths of a second of CPU in two seconds of nothing");
    call.chunk(event("2")).await;
    client.until_body([event("1"), event("2")].concat().as_bytes()).await;
    assert_eq!(gateway.admin_get("/livez").await.status(), 200);
    drop(flood);
    let serves = || async {
        let mut client = gateway.client().await;
        client.send(Request::bare("GET", "/nowhere").bytes()).await;
        client.answer().await.status() == 404
    };
    wait_until_async("it serves again", SOON, serves).await;
    checks::ends_same(client, call, [event("1"), event("2")].concat().as_bytes()).await;
}

/// G12: a full disk costs access lines, which are counted, and nothing else.
#[tokio::test]
async fn g12_the_disk_is_full() {
    let upstream = Upstream::answering(|_| json_answer(ANSWER)).await;
    let (_dir, file) = config_file(&Settings::new(&[upstream]).text(Path::new("/dev/full")));
    let gateway = Gateway::start_on(&file).await;
    for _ in 0..20 {
        assert_eq!(gateway.ask(&Request::unary()).await.status(), 200);
    }
    gateway.wait_metric_where("lost", "access_log_dropped_lines", &[], |lost| lost > 0.0).await;
    assert_eq!(gateway.metric("log_dropped_lines", &[]).await, 0.0);

    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2>/dev/full", env!("CARGO_BIN_EXE_streamgate")]);
    let gateway = Gateway::start_by(shell, Settings::new(&[upstream])).await;
    gateway.signal("HUP");
    gateway.wait_metric_where("lost", "log_dropped_lines", &[], |lost| lost > 0.0).await;
    assert_eq!(gateway.ask(&Request::unary()).await.status(), 200);
    assert_eq!(gateway.metric("access_log_dropped_lines", &[]).await, 0.0);
}

/// G10: steps of the wall clock move what is written, and no timer.
#[tokio::test]
async fn g10_the_clock_steps() {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    if !Path::new(LIBRARY).exists() {
        return not_run("g10_the_clock_steps", "libfaketime is not there");
    }
    let dir = tempfile::tempdir().unwrap();
    let clock = dir.path().join("clock");
    let step = |offset: &str| {
        std::fs::write(dir.path().join("new"), offset).unwrap();
        std::fs::rename(dir.path().join("new"), &clock).unwrap();
    };
    step("+0");
    let mut upstream = Upstream::start().await;
    let settings =
        Settings::new(&[upstream.addr]).set("timeouts.idle", "25s").set("timeouts.first_event", "2s");
    let clock_file = clock.display().to_string();
    let variables = [
        ("LD_PRELOAD", LIBRARY),
        ("FAKETIME_TIMESTAMP_FILE", &clock_file),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("FAKETIME_NO_CACHE", "1"),
    ];
    let gateway = Gateway::start_in(settings, &variables).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let mut body = event("1");
    let mut years = Vec::new();
    for (number, offset) in (1..).zip(["+1h", "-1h", "+10y", "-10y", "+0"]) {
        step(offset);
        support::score::struck(1, &format!("the clock steps to {offset}"));
        body += &event("2");
        call.chunk(event("2")).await;
        client.until_body(body.as_bytes()).await;
        // A request that waits for its first event is not over before its time, and then is.
        let mut other = gateway.send(&Request::chat()).await;
        let waiting = upstream.call().await;
        checks::rejected(&other.answer().await, 504, "first_event_timeout");
        drop(waiting);
        let line = gateway.all_access(number).await.pop().unwrap();
        assert!(line["total_ms"].as_f64().is_some_and(|took| (1900.0..20_000.0).contains(&took)), "{line}");
        years.push(line["time"].as_str().unwrap()[..4].parse::<i32>().unwrap());
    }
    let now = years[4];
    assert!(years[2] >= now + 9 && years[3] <= now - 9, "the clock did step: {years:?}");
    checks::ends_same(client, call, body.as_bytes()).await;
}

/// G1: what ends within the drain ends whole, however many there are; nobody is refused while it is a lame duck.
#[tokio::test]
async fn g1_streams_end_within_the_drain() {
    let (mut gateway, mut upstream) = one_engine(|settings| {
        settings
            .set("server.shutdown.lame_duck", "1s")
            .set("timeouts.idle", "25s")
            .set("server.shutdown.drain", "10m")
    })
    .await;
    let mut streams = Vec::new();
    for _ in 0..support::times(20, 200) {
        streams.push(streaming(&gateway, &mut upstream, &["1"]).await);
    }
    gateway.terminate();
    wait_until_async("not ready", SOON, || async { gateway.admin_get("/readyz").await.status() == 503 })
        .await;
    wait_until_async("closed in the end", SOON, || async { TcpStream::connect(gateway.addr).await.is_err() })
        .await;
    assert_eq!(gateway.admin_get("/livez").await.status(), 200, "operators are served to the end");
    gateway.wait_metric("draining", &[], 1.0).await;
    for (client, call) in streams {
        checks::ends_same(client, call, event("1").as_bytes()).await;
    }
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    assert!(gateway.access_lines().iter().all(|line| line["outcome"] == "completed"));
}

/// G7: a killed gateway can be started again at once, on the same port, with its streams' ports in TIME_WAIT.
#[tokio::test]
async fn g7_a_killed_gateway_is_started_again() {
    let (mut gateway, mut upstream) = one_engine(as_is).await;
    let (_client, _call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let addr = gateway.addr;
    gateway.signal("KILL");
    gateway.exit(SOON).await;
    let again = Settings::new(&[upstream.addr]).set("server.listen.0.address", addr.to_string());
    let gateway = Gateway::start(again).await;
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The longest that the configuration may take to end.
fn end_of(config: &streamgate::config::Config) -> Duration {
    config.server.shutdown.lame_duck + config.server.shutdown.drain
}

/// The unit is one that systemd takes, and it gives the gateway the time that it needs to end.
#[test]
fn the_unit_for_systemd_is_sound() {
    let unit = std::fs::read_to_string(shipped("deploy/systemd/streamgate.service")).unwrap();
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("{key} is not set"))
    };
    let example =
        streamgate::config::load(&shipped("conf/examples/upgrade.yaml"), &machine::ENVIRONMENT).unwrap();
    let stop = Duration::from_secs(value("TimeoutStopSec").parse().unwrap());
    assert!(stop > end_of(&example.config), "{stop:?}");
    assert_eq!((value("Type"), value("KillSignal"), value("NoNewPrivileges")), ("notify", "SIGTERM", "yes"));
    assert_eq!((value("ProtectSystem"), value("ExecReload")), ("strict", "/bin/kill -HUP $MAINPID"));
    assert!(unit.lines().all(|line| line != "ProcSubset=pid"), "it hides the memory of the machine");
    assert!(!unit.contains("ExecStartPre="), "it is tried again, whatever RestartPreventExitStatus says");
    assert_eq!(value("RestartPreventExitStatus"), "64");
    assert!(value("LimitNOFILE").parse::<u64>().unwrap() >= 2 * 20_000 + 128);

    let dir = tempfile::tempdir().unwrap();
    // Only the path of the binary is another one.
    let here = unit.replace("/usr/local/bin/streamgate", env!("CARGO_BIN_EXE_streamgate"));
    let files = [("streamgate.service", here), ("streamgate.socket", socket())];
    for (name, text) in &files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let paths = files.iter().map(|(name, _)| dir.path().join(name));
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(paths).output();
    match verified {
        Err(error) => not_run("the_unit_for_systemd_is_sound", &format!("systemd-analyze: {error}")),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // It also tells of units of the machine itself.
            let ours: Vec<&str> = said.lines().filter(|line| line.contains("streamgate")).collect();
            assert!(output.status.success() && ours.is_empty(), "{said}");
        }
    }
}

fn socket() -> String {
    std::fs::read_to_string(shipped("deploy/systemd/streamgate.socket")).expect("read")
}
