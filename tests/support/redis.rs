//! A real redis-server, as a process of its own.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::certificates::Identity;
use super::wait::{SOON, wait_until_async, within};

/// A redis-server that keeps nothing on disk: one that is killed has forgotten everything.
#[derive(Debug)]
pub(crate) struct Redis {
    child: Child,
    dir: TempDir,
    options: Vec<String>,
    /// Where it listens, also when it is started again.
    pub(crate) addr: SocketAddr,
}

impl Redis {
    /// Starts one with further options; `None` where the machine has none.
    pub(crate) async fn start(options: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let (addr, options) = (free(), options.iter().map(ToString::to_string).collect::<Vec<_>>());
        let child = spawn(addr, &dir, &options)?;
        let redis = Self { child, dir, options, addr };
        redis.ready().await;
        Some(redis)
    }

    /// Starts one that speaks TLS as well, as `identity`; and where it does.
    pub(crate) async fn with_tls(identity: &Identity) -> Option<(Self, SocketAddr)> {
        let (dir, addr) = (tempfile::tempdir().expect("a folder"), free());
        let file = |name: &str, pem: Vec<u8>| {
            let path = dir.path().join(name);
            std::fs::write(&path, pem).expect("write");
            path.to_str().expect("a path in ASCII").to_owned()
        };
        let cert = file("redis.crt", identity.certificate.to_pem().expect("PEM"));
        let key = file("redis.key", identity.key.private_key_to_pem_pkcs8().expect("PEM"));
        let port = addr.port().to_string();
        let options = ["--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key];
        let options = [&options[..], &["--tls-ca-cert-file", &cert, "--tls-auth-clients", "no"]].concat();
        // The files are read at its start, and only then.
        Self::start(&options).await.map(|redis| (redis, addr))
    }

    /// What `redis-cli` prints of a command.
    pub(crate) fn cli(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        let port = self.addr.port().to_string();
        let output = command.args(["-p", &port]).args(words).output().expect("redis-cli comes with redis");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Starts it again, with nothing in it.
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(self.addr, &self.dir, &self.options).expect("it was there before");
        self.ready().await;
    }

    /// Sends it a signal by its short name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("kill").success());
    }

    /// What it answers to one inline command, as it stands on the wire.
    pub(crate) async fn command(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.addr).await.ok()?;
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        within("redis answers", SOON, stream.read_to_string(&mut answer)).await.ok()?;
        Some(answer)
    }

    async fn ready(&self) {
        wait_until_async("redis is ready", SOON, || async {
            let answer = self.command("PING").await;
            answer.is_some_and(|answer| answer.starts_with("+PONG") || answer.starts_with("-NOAUTH"))
        })
        .await;
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// It takes no port of the kernel's choice; this one was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port")
}

fn spawn(addr: SocketAddr, dir: &TempDir, options: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    command.args([
        "--port",
        &addr.port().to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ]);
    command.args(["--daemonize", "no", "--dir"]).arg(dir.path());
    command.args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}
