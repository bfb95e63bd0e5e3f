//! What is known at one moment of everything that the live view shows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use super::status;
use crate::cluster::{Backend, Cluster, Condition, Leave, Reading};
use crate::live::view::{BackendNow, ClusterNow, Engine, Gateway, Level, Now, Reload};
use crate::metrics::BACKENDS_MAX;
use crate::proxy::Shared;
use crate::reload::{Book, Last, Outcome};
use crate::snapshot::Snapshot;

/// Figures of an engine that are older are shown no more: they say nothing of what it was doing when it went.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// The moment, and how far the process has come.
pub(super) struct Moment {
    pub(super) now: Instant,
    /// The same on the calendar.
    pub(super) wall: SystemTime,
    /// When the process began.
    pub(super) began: Instant,
    /// Each backend has had its first check.
    pub(super) is_checked: bool,
}

/// All of it.
pub(super) fn of(shared: &Shared, snapshot: &Snapshot, book: &Book, moment: &Moment) -> Now {
    let mut room = BACKENDS_MAX;
    let clusters = snapshot.clusters.iter().map(|each| {
        let backends = backends(each, snapshot, moment.now, room);
        room -= backends.len();
        (cluster(each), backends)
    });
    Now {
        clusters: clusters.collect(),
        gateway: gateway(shared, snapshot, book, moment),
        routes: snapshot
            .routes
            .iter()
            .map(|route| (route.name.to_string(), shared.metrics.streams_active(&route.name)))
            .collect(),
        failures: shared.metrics.failures.recent(),
    }
}

fn gateway(shared: &Shared, snapshot: &Snapshot, book: &Book, moment: &Moment) -> Gateway {
    let state = match (shared.drain.is_leaving(), moment.is_checked) {
        (true, _) => "leaving",
        (false, false) => "checking",
        (false, true) => "serving",
    };
    let held = shared.ledger.used() as usize + shared.memory.streams().load(Ordering::Relaxed);
    Gateway {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        unix_ms: u64::try_from(since_1970(moment.wall).as_millis()).unwrap_or(u64::MAX),
        uptime_seconds: moment.now.saturating_duration_since(moment.began).as_secs(),
        state: state.to_owned(),
        generation: snapshot.generation,
        file: book.file.as_ref().map(|file| file.display().to_string()),
        last_reload: reload(&book.last()),
        acts: snapshot.server.admin.token.is_some(),
        connections: shared.connections.open(),
        exchanges: shared.drain.working(),
        held_bytes: held as u64,
    }
}

fn reload(last: &Last) -> Reload {
    let problems = match &last.outcome {
        Outcome::Refused { problems } => problems.lines().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Reload {
        result: status::result(&last.outcome).to_owned(),
        cause: status::cause(last),
        unix_seconds: since_1970(last.at).as_secs(),
        problems,
    }
}

fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn cluster(cluster: &Cluster) -> ClusterNow {
    let discover = cluster.config.discover.as_ref();
    ClusterNow {
        name: cluster.config.name.to_string(),
        discover: discover.map(|discover| format!("{}:{}", discover.host, discover.port)),
        up: cluster.backends.iter().filter(|backend| works(backend)).count(),
        of: cluster.backends.len(),
        in_flight: cluster.state.live(),
        waiting: cluster.state.queue.depth(),
        queue_max: cluster.config.queue_max,
    }
}

/// Whether it gets its share of the work, as in `backend_up`.
fn works(backend: &Backend) -> bool {
    backend.state.health.is_in() && !backend.state.leaving.takes_nothing()
}

/// The backends of a cluster, and those that have left it and are at work still: at most so many, those in trouble
/// first.
fn backends(cluster: &Cluster, snapshot: &Snapshot, now: Instant, most: usize) -> Vec<BackendNow> {
    let left = snapshot
        .leaving
        .iter()
        .filter(|backend| backend.cluster == cluster.config.name && backend.state.in_flight() > 0);
    let mut all: Vec<(&Arc<Backend>, Level)> =
        cluster.backends.iter().chain(left).map(|each| (each, level(each, now))).collect();
    all.sort_by_key(|(_, level)| std::cmp::Reverse(*level));
    let last = cluster.readings_last();
    all.into_iter().take(most).map(|(each, level)| backend(each, level, last, now)).collect()
}

/// How bad it stands with a backend.
fn level(backend: &Backend, now: Instant) -> Level {
    if backend.state.leaving.takes_nothing() {
        return Level::Notice;
    }
    match backend.state.health.condition() {
        Condition::Ejected(_) | Condition::Kept(_) | Condition::Failing => Level::Warning,
        Condition::Degraded => Level::Notice,
        Condition::Up if backend.state.rest_ends(now).is_some() => Level::Notice,
        Condition::Up => Level::Ok,
    }
}

fn backend(backend: &Backend, level: Level, readings_last: Duration, now: Instant) -> BackendNow {
    let state = &backend.state;
    BackendNow {
        name: backend.name.to_string(),
        address: backend.addr.to_string(),
        level,
        state: status::state(backend).to_owned(),
        health: state.health.condition().to_string(),
        share: state.health.share(now),
        rests_seconds: state.rest_ends(now).map(|ends| (ends - now).as_secs_f64()),
        load: state.load.work(),
        in_flight: state.in_flight(),
        max_inflight: backend.max_inflight,
        drained: state.leaving.is(Leave::Operator),
        engine: state.reading().and_then(|reading| engine(&reading, readings_last, now)),
    }
}

fn engine(reading: &Reading, readings_last: Duration, now: Instant) -> Option<Engine> {
    let age = now.saturating_duration_since(reading.at);
    (age <= FORGOTTEN).then(|| Engine {
        running: reading.running,
        waiting: reading.waiting,
        kv_usage: reading.kv_usage,
        age_seconds: age.as_secs_f64(),
        is_old: age > readings_last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_grow_old_and_are_forgotten() {
        let (at, second) = (Instant::now(), Duration::from_secs(1));
        let reading = Reading { at, running: 1, waiting: 0, kv_usage: None, steps: None };
        let is_old = |age| engine(&reading, 6 * second, at + age).map(|engine| engine.is_old);
        assert_eq!((is_old(6 * second), is_old(7 * second)), (Some(false), Some(true)));
        assert_eq!((is_old(FORGOTTEN), is_old(FORGOTTEN + second)), (Some(true), None));
    }
}
