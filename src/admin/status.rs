//! What GET /status tells: the configuration in force and the state of each backend, as JSON.
//!
//! Each thing that is known of a cluster or of a backend adds its members in [`cluster`] or [`backend`].

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use serde_json::{Value, json};

use super::process;
use crate::cluster::{Backend, Cluster, Leave};
use crate::config::Address;
use crate::proxy::Shared;
use crate::reload::{Book, Last, Outcome};

/// The whole answer.
pub(super) fn of(shared: &Arc<Shared>, book: &Book, listeners: &[Address]) -> Value {
    let snapshot = shared.snapshot.load();
    let at_work = snapshot.leaving.iter().filter(|backend| backend.state.in_flight() > 0);
    json!({
        "generation": snapshot.generation,
        "file": book.file,
        "last_reload": last(&book.last()),
        "draining": shared.drain.is_leaving(),
        "exchanges": shared.drain.working(),
        "listeners": snapshot.server.listen.iter().zip(listeners).map(process::listener).collect::<Vec<_>>(),
        "connections": process::connections(shared),
        "memory": process::memory(shared),
        "keys": snapshot.keys.len(),
        "limits_store": process::store(shared),
        "clusters": snapshot.clusters.iter().map(|each| cluster(each)).collect::<Vec<_>>(),
        "removed": at_work.map(|each| backend(each)).collect::<Vec<_>>(),
    })
}

/// What is known of a cluster.
fn cluster(cluster: &Cluster) -> Value {
    let discover = cluster.config.discover.as_ref();
    json!({
        "name": &*cluster.config.name,
        "in_flight": cluster.state.live(),
        "queue": { "waiting": cluster.state.queue.depth(), "max": cluster.config.queue_max },
        "discover": discover.map(|discover| format!("{}:{}", discover.host, discover.port)),
        "backends": cluster.backends.iter().map(|each| backend(each)).collect::<Vec<_>>(),
    })
}

/// What is known of a backend.
pub(super) fn backend(backend: &Backend) -> Value {
    let now = Instant::now();
    let reading = backend.state.reading();
    json!({
        "cluster": &*backend.cluster,
        "name": &*backend.name,
        "address": backend.addr.to_string(),
        "state": state(backend),
        "weight": backend.weight,
        "health": backend.state.health.condition().to_string(),
        "share": backend.state.health.share(now),
        "rests_seconds": backend.state.rest_ends(now).map(|ends| (ends - now).as_secs_f64()),
        "load": backend.state.load.work(),
        "in_flight": backend.state.in_flight(),
        "max_inflight": backend.max_inflight,
        "engine": reading.map(|reading| json!({
            "running": reading.running,
            "waiting": reading.waiting,
            "kv_usage": reading.kv_usage,
            "age_seconds": now.saturating_duration_since(reading.at).as_secs_f64(),
        })),
    })
}

/// One word: what it is good for, or else who says that it gets no new work.
pub(super) fn state(backend: &Backend) -> &'static str {
    let leaving = &backend.state.leaving;
    if leaving.is(Leave::Removed) {
        "removed"
    } else if leaving.is(Leave::Operator) {
        if backend.state.in_flight() > 0 { "draining" } else { "drained" }
    } else if leaving.is(Leave::File) {
        "drain_in_file"
    } else if backend.state.health.is_in() {
        "serving"
    } else {
        "out"
    }
}

/// What came of a reading of the file, in one word.
pub(super) fn result(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Applied { .. } => "applied",
        Outcome::Unchanged { .. } => "unchanged",
        Outcome::Refused { .. } => "refused",
        Outcome::Leaving => "ignored",
    }
}

/// Who wanted it.
pub(super) fn cause(last: &Last) -> String {
    last.cause.map_or_else(|| "start".to_owned(), |cause| cause.to_string())
}

fn last(last: &Last) -> Value {
    let problems = match &last.outcome {
        Outcome::Refused { problems } => Some(problems.lines().collect::<Vec<_>>()),
        _ => None,
    };
    json!({
        "result": result(&last.outcome),
        "cause": cause(last),
        "unix_seconds": last.at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        "problems": problems,
    })
}
