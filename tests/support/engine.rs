//! The simulated engine as a process of its own: started on a free port, told what goes wrong, asked
//! what it saw, killed by guard.
//!
//! What it counts is its own view of a row. A question to it is a connection and a request too, but
//! only to `/sim/..`, which its `requests` leaves out.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::client::{Answer, Client};
use super::gateway::{BINARY, START, lines_of};
use super::score;
use super::wait::{SOON, wait_until_async, within};
use super::wire::Request;

/// Tokens of an answer, unless the request or the row says otherwise.
pub(crate) const TOKENS: usize = 12;

/// Short answers at a visible pace, events no larger than their JSON.
const BRISK: [&str; 7] = ["sim", "--model", "m", "--first-event", "5ms", "--tokens", "12"];
const PACE: &str = "2ms";

/// A running simulated engine.
#[derive(Debug)]
pub(crate) struct Engine {
    child: Child,
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    /// Connections that this guard made.
    asked: AtomicU64,
}

impl Engine {
    /// Starts one that is brisk and well.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts one with further arguments.
    pub(crate) async fn with(args: &[&str]) -> Self {
        Self::on("127.0.0.1:0", PACE, args).await
    }

    /// Starts one that takes so long for each token.
    pub(crate) async fn at_pace(pace: &str) -> Self {
        Self::on("127.0.0.1:0", pace, &[]).await
    }

    /// Starts one where another has been.
    pub(crate) async fn again(addr: SocketAddr) -> Self {
        Self::on(&addr.to_string(), PACE, &[]).await
    }

    /// Starts one that listens on another address than the loopback's.
    pub(crate) async fn at(host: Ipv4Addr) -> Self {
        Self::on(&format!("{host}:0"), PACE, &[]).await
    }

    async fn on(listen: &str, pace: &str, args: &[&str]) -> Self {
        let mut child = Command::new(&*BINARY)
            .args(BRISK)
            .args(["--listen", listen, "--inter-token", pace])
            .args(["--event-bytes", "1B", "--proof"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the engine");
        let mut lines = lines_of(&mut child);
        let mut addr = None;
        while let Some(line) = within("the engine says ready", START, lines.recv()).await {
            if let Some((_, found)) = line.split_once(" on http://") {
                addr = found.parse().ok();
            } else if line == "ready" {
                break;
            }
        }
        let addr = addr.expect("the engine says where it listens");
        score::tally(|tally| tally.engines.push(addr));
        Self { child, addr, asked: AtomicU64::new(0) }
    }

    /// Puts other faults in force; an empty list heals it.
    pub(crate) async fn faults(&self, list: &str) {
        let answer = self.control(&Request::bare("POST", "/sim/faults").body(list)).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        score::note(format!("the engine on {} is told: {list:?}", self.addr));
    }

    /// What it has counted so far.
    pub(crate) async fn stats(&self) -> Value {
        self.control(&Request::bare("GET", "/sim/stats")).await.json()
    }

    /// One of its counters.
    pub(crate) async fn count(&self, name: &str) -> u64 {
        self.stats().await[name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
    }

    /// Connections that others than this guard made.
    pub(crate) async fn connections(&self) -> u64 {
        let all = self.count("connections").await;
        all - self.asked.load(Ordering::SeqCst)
    }

    /// Waits until a counter has this value.
    pub(crate) async fn wait_count(&self, name: &str, value: u64) {
        let what = format!("the engine counts {value} {name}");
        wait_until_async(&what, SOON, || async { self.count(name).await == value }).await;
    }

    /// Sends it a signal by its short name: `STOP` and it hangs with all its connections.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("run kill");
        assert!(status.success(), "kill -{name} {pid}");
        score::note(format!("SIG{name} to the engine on {}", self.addr));
    }

    /// Ends it as a crash would: its connections end, and nobody listens.
    pub(crate) fn kill(mut self) {
        score::struck(1, "an engine is killed");
        score::tally(|tally| tally.lost = true);
        self.end();
    }

    fn end(&mut self) {
        score::tally(|tally| tally.engines.retain(|addr| *addr != self.addr));
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    async fn control(&self, request: &Request) -> Answer {
        self.asked.fetch_add(1, Ordering::SeqCst);
        ask(self.addr, request).await
    }
}

/// What an engine says that it sent to each of its last requests.
pub(crate) async fn accounts(addr: SocketAddr) -> Value {
    ask(addr, &Request::bare("GET", "/sim/proofs")).await.json()
}

/// How often an engine's faults have struck.
pub(crate) async fn strikes(addr: SocketAddr) -> u64 {
    let stats = ask(addr, &Request::bare("GET", "/sim/stats")).await.json();
    stats["faults"].as_u64().expect("a counter")
}

async fn ask(addr: SocketAddr, request: &Request) -> Answer {
    let mut client = Client::connect(addr).await;
    client.send(request.clone().header("Connection: close").bytes()).await;
    client.answer().await
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
    }
}
