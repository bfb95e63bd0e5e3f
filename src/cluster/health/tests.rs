//! The health of a whole cluster, at times that only add up: examples, and anything that can happen.

mod examples;
mod stories;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::*;
use crate::cluster::{Ask, Backend, Cluster, InFlight};
use crate::config::{Config, Environment};
use crate::failure::Failure;
use crate::snapshot::Snapshot;

const HEALTH: &str = "active: { every: 1s, fall: 3, rise: 2 }, \
    passive: { consecutive: 3, ejection: 10s, ejection_max: 60s, max_ejected: 50% }, \
    wedged: { after: 60s }, slow_start: 10s";

fn cluster(backends: usize, health: &str) -> Arc<Cluster> {
    let backends: String =
        (0..backends).map(|n| format!("{{ name: b{n}, url: \"http://b:{n}1\" }}, ")).collect();
    let text = format!(
        "server: {{ listen: [{{ address: 127.0.0.1:0 }}] }}\n\
         clusters: {{ c: {{ backends: [{backends}], health: {{ {health} }}, scrape: null }} }}\n\
         routes: [{{ match: {{ path: /v1/chat/completions }}, cluster: c }}]\n"
    );
    let loaded =
        Config::parse(&text, &Environment::bare(1, 1 << 30)).unwrap_or_else(|error| panic!("{error}"));
    let resolve = |_: &str, port| Ok::<_, ()>(([127, 0, 0, 1], port).into());
    let mut snapshot = Snapshot::build(loaded.config, None, resolve).unwrap();
    snapshot.come_into_force(Instant::now());
    snapshot.clusters.remove(0)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An attempt as a test sees it.
#[derive(Debug)]
struct Attempt(Mutex<Seen>);

impl Attempt {
    fn sent(now: Instant) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Seen { sent: Some(now), last_data: None, reading: true })))
    }

    fn data(&self, now: Instant) {
        self.0.lock().last_data = Some(now);
    }
}

impl Progress for Attempt {
    fn seen(&self) -> Seen {
        *self.0.lock()
    }
}

fn report(now: Instant, failure: Option<Failure>) -> Report {
    let status = if failure.is_none() { Some(200) } else { None };
    let whole = failure.is_none();
    Report { failure, status, whole, ..Report::of(now) }
}

fn ask(now: Instant, tried: &[Arc<Backend>]) -> Ask<'_> {
    Ask { lenient: true, sound: false, tried, now, draw: 0, cost: 1, keys: &[], chooser: None }
}

fn fail(cluster: &Cluster, at: usize, now: Instant) -> Option<Change> {
    let attempt = InFlight::take(&cluster.backends[at], &cluster.state, 1).unwrap();
    cluster.learn(&attempt, &report(now, Some(Failure::Connect)), 0)
}

/// Three failures in a row.
fn fall(cluster: &Cluster, at: usize, now: Instant) -> Option<Change> {
    (0..3).filter_map(|_| fail(cluster, at, now)).last()
}

fn condition(cluster: &Cluster, at: usize) -> Condition {
    cluster.backends[at].state.health.condition()
}

const REFUSED: Condition = Condition::Ejected(Reason::Failure(Failure::Connect));
const KEPT: Condition = Condition::Kept(Reason::Failure(Failure::Connect));
