//! A row of the fault matrix: one gateway, simulated engines as processes of their own, one fault.
//!
//! A row proves that its fault struck (by the engine's own count), says what the client, the metrics
//! and the log told of it, and ends with [`Row::settled`] (in [`super::settled`]), which holds for every row alike.

use std::net::SocketAddr;

use serde_json::Value;

use super::client::Answer;
use super::engine::Engine;
use super::gateway::Gateway;
use super::score;
use super::settings::Settings;
use super::told::Told;
use super::wait::{SOON, wait_until};
use super::wire::Request;

/// One row.
#[derive(Debug)]
pub(crate) struct Row {
    /// The gateway under test.
    pub(crate) gateway: Gateway,
    /// Its engines; the first one is the one that gets ill.
    pub(crate) engines: Vec<Engine>,
    /// Descriptors and resident memory (KiB) when it was new.
    pub(super) fds: usize,
    pub(super) rss_kb: u64,
}

impl Row {
    /// A gateway in front of so many engines.
    pub(crate) async fn start(engines: usize, adjust: impl FnOnce(Settings) -> Settings) -> Self {
        Self::behind(&[], engines, adjust).await
    }

    /// A gateway in front of these addresses, then of so many engines.
    pub(crate) async fn behind(
        addresses: &[SocketAddr],
        engines: usize,
        adjust: impl FnOnce(Settings) -> Settings,
    ) -> Self {
        let mut started = Vec::new();
        for _ in 0..engines {
            started.push(Engine::start().await);
        }
        Self::with(addresses, started, adjust).await
    }

    /// A gateway in front of these addresses, then of these engines.
    pub(crate) async fn with(
        addresses: &[SocketAddr],
        engines: Vec<Engine>,
        adjust: impl FnOnce(Settings) -> Settings,
    ) -> Self {
        let all: Vec<_> = addresses.iter().copied().chain(engines.iter().map(|engine| engine.addr)).collect();
        let settings =
            Settings::new(&all).set("clusters.c.keepalive", "500ms").set("stream.hold_headers", "5s");
        let gateway = Gateway::start(adjust(settings)).await;
        let (fds, rss_kb) = (gateway.fd_count(), gateway.rss_kb());
        score::note(format!("a gateway in front of {} engines", all.len()));
        Self { gateway, engines, fds, rss_kb }
    }

    /// A row whose first engine has this fault.
    pub(crate) async fn ill(engines: usize, fault: &str, adjust: impl FnOnce(Settings) -> Settings) -> Self {
        let row = Self::start(engines, adjust).await;
        row.engines[0].faults(fault).await;
        row
    }

    /// Sends a request so many times at once, each on a connection of its own.
    pub(crate) async fn ask(&self, count: usize, request: &Request) -> Vec<Answer> {
        let (dialer, request) = (self.gateway.dialer(), &request.clone().marked());
        score::note(format!("{count} requests are sent"));
        let asking: Vec<_> = (0..count)
            .map(|_| {
                let bytes = request.bytes();
                tokio::spawn(async move {
                    let mut client = dialer.client().await;
                    client.send(bytes).await;
                    client.answer_within(3 * SOON).await
                })
            })
            .collect();
        let mut answers = Vec::new();
        for answer in asking {
            answers.push(answer.await.expect("an answer"));
        }
        score::note(format!("{count} answers have come"));
        answers
    }

    /// Streams so many times at once and reads what each was told.
    pub(crate) async fn streams(&self, count: usize) -> Vec<Told> {
        self.ask(count, &Request::chat()).await.iter().map(Told::of).collect()
    }

    /// The access lines of this many exchanges, no more and no fewer.
    pub(crate) async fn lines(&self, exchanges: usize) -> Vec<Value> {
        self.gateway.all_access(exchanges).await
    }

    /// This many exchanges ended so, by the metrics and by the access lines, each with these fields.
    pub(crate) async fn told(&self, outcome: &str, count: usize, fields: Value) {
        self.gateway.wait_metric("requests_total", &[("outcome", outcome)], count as f64).await;
        let lines = || self.gateway.access_lines().into_iter().filter(|line| line["outcome"] == outcome);
        wait_until(&format!("{count} lines say {outcome}"), SOON, || lines().count() == count).await;
        for line in lines() {
            for (name, value) in fields.as_object().expect("fields are an object") {
                assert_eq!(&line[name], value, "{name}: {line}");
            }
        }
    }

    /// Exchanges that moved to another node for this reason, as the metrics, the access lines and the
    /// gateway's log agree. The log has a line a second for them.
    pub(crate) async fn moved(&self, reason: &str) -> usize {
        let reason = [("cluster", "c"), ("reason", reason)];
        let moved = self.gateway.metric("retries_total", &reason).await;
        // Lines are written behind the answers.
        let lines = || self.gateway.access_lines().iter().filter(|line| line["attempts"] == 2).count();
        wait_until(&format!("{moved} lines say two attempts"), SOON, || lines() as f64 >= moved).await;
        assert_eq!(lines() as f64, moved);
        self.gateway.wait_metric("retries_total", &[], moved).await;
        let moved = moved as usize;
        if moved > 0 {
            self.gateway.wait_log("trying another node").await;
        } else {
            assert!(!self.gateway.log().contains("trying another node"), "{}", self.gateway.log());
        }
        moved
    }

    /// The test has done this to the gateway so many times, and has seen that it struck.
    pub(crate) fn struck(&self, times: usize, what: &str) {
        score::struck(times, what);
    }

    /// Nothing was tried again.
    pub(crate) async fn never_moved(&self) {
        assert_eq!(self.moved("none").await, 0);
    }

    /// No engine was so much as connected to.
    pub(crate) async fn nobody_asked(&self) {
        for engine in &self.engines {
            assert_eq!(engine.connections().await, 0, "an engine was connected to");
        }
    }
}
