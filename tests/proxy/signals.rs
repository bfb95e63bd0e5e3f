//! Signals that must not end the gateway, and outputs that must not stop it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support;
use crate::support::wait::wait_until;
use crate::support::wire::{ANSWER, Request, event, json_answer};
use crate::support::{Client, Settings, Upstream, as_is, checks, one_engine, streaming};

/// A stream lives through them, and the log file is opened anew under its name.
#[tokio::test]
async fn hangup_quit_and_user_signals_end_nothing() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let done = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    drop(done);
    gateway.wait_access("first", |_| true).await;
    let (client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let old = gateway.rotate_access();
    assert_eq!(old.lines().count(), 1);
    for signal in ["HUP", "QUIT", "USR1"] {
        gateway.signal(signal);
        gateway.wait_log(&format!("SIG{signal}")).await;
    }
    call.chunk(event("2")).await;
    checks::ends_same(client, call, [event("1"), event("2")].concat().as_bytes()).await;
    gateway.wait_access("in the new file", |line| line["outcome"] == "completed").await;
}

/// A gateway whose outputs are pipes with 4 KiB of room that nobody reads after the start.
struct Unread {
    child: std::process::Child,
    addr: std::net::SocketAddr,
    admin: std::net::SocketAddr,
    _stdout: Box<dyn Read + Send>,
    _dir: tempfile::TempDir,
}

impl Unread {
    fn start(settings: Settings, access: &str) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let file = dir.path().join("streamgate.yaml");
        std::fs::write(&file, settings.text(access.as_ref())).expect("write the file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_streamgate"))
            .args(["run", "-c"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the gateway");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (mut addr, mut admin) = (None, None);
        for line in stdout.by_ref().lines().map_while(Result::ok) {
            if let Some(found) = line.strip_prefix("streamgate listening on http://") {
                addr = found.parse().ok();
            } else if let Some(found) = line.strip_prefix("streamgate admin on http://") {
                admin = found.parse().ok();
            } else if line == "ready" {
                break;
            }
        }
        let (addr, admin) = (addr.expect("an address"), admin.expect("an admin address"));
        Self { child, addr, admin, _stdout: Box::new(stdout), _dir: dir }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        // It may be gone already; there is nothing to do about a failure either way.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Far more lines than a pipe holds: nothing hangs, the admin listener answers, lost lines are counted, and
/// SIGTERM still ends the process.
#[tokio::test]
async fn outputs_that_nobody_reads_stop_nothing() {
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let refusing = support::sockets::Refusing::start();
    for access in ["stdout", "stderr"] {
        // Every second request fails over, which is worth a line in the gateway's log.
        let mut gateway = Unread::start(
            Settings::new(&[refusing.addr(), engine]).set("clusters.c.retry.budget", "100%"),
            access,
        );
        for _ in 0..12 {
            let mut client = Client::connect(gateway.addr).await;
            for _ in 0..100 {
                client.send(Request::unary().bytes()).await;
                assert_eq!(client.answer().await.status(), 200);
            }
        }
        let mut admin = Client::connect(gateway.admin).await;
        let asked = Request::bare("GET", "/livez").without("host").header("Host: localhost");
        admin.send(asked.bytes()).await;
        assert_eq!(admin.answer().await.status(), 200);
        let pid = gateway.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("run kill").success());
        let gone = || gateway.child.try_wait().expect("wait for the gateway").is_some();
        wait_until("it ends", std::time::Duration::from_secs(15), gone).await;
    }
}
