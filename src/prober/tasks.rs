//! The tasks that ask: one a backend and kind of question, as long as the configuration has it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};

use super::{First, Prober, Target, check, targets};
use crate::snapshot::Snapshot;

/// Intervals are up to this share longer than configured, so that many backends are not asked in step; never
/// shorter.
const JITTER: f64 = 0.1;

/// Within this all backends are asked for the first time where somebody waits for it.
const SOON: Duration = Duration::from_millis(500);

/// What is asked over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Check,
    Scrape,
}

/// Cluster, backend, question.
type Key = (Arc<str>, Arc<str>, Kind);

/// A task and what it asks; the next round asks what is there then.
struct Task {
    target: Arc<Mutex<Target>>,
    handle: AbortHandle,
}

/// All tasks. They end when this is dropped.
pub(super) struct Tasks {
    prober: Prober,
    first: First,
    /// The configuration that was followed last.
    /// What was followed last. Addresses that a name gets make a new snapshot of the same generation.
    followed: Option<Arc<Snapshot>>,
    known: HashMap<Key, Task>,
    running: JoinSet<()>,
}

impl Tasks {
    pub(super) fn new(prober: Prober, first: First) -> Self {
        Self { prober, first, followed: None, known: HashMap::new(), running: JoinSet::new() }
    }

    /// Runs a task that ends by itself.
    pub(super) fn once(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(task);
    }

    /// Starts, moves and ends tasks so that they are those of this configuration.
    pub(super) fn follow(&mut self, snapshot: &Arc<Snapshot>) {
        while self.running.try_join_next().is_some() {}
        if self.followed.as_ref().is_some_and(|followed| Arc::ptr_eq(followed, snapshot)) {
            return;
        }
        self.followed = Some(Arc::clone(snapshot));
        let mut before = std::mem::take(&mut self.known);
        for target in targets(snapshot) {
            let config = &target.cluster.config;
            if config.health.active.is_some() {
                self.keep(&mut before, &target, Kind::Check);
            } else if let Some(change) = target.backend.state.health.uncheck(Instant::now()) {
                self.prober.shared.health_changed(&target.backend, &change, None, Instant::now());
            }
            if config.scrape.is_some() {
                self.keep(&mut before, &target, Kind::Scrape);
            }
        }
        before.into_values().for_each(|task| task.handle.abort());
        // Nobody waits for those that a reload adds.
        self.first = First::InTurn;
    }

    fn keep(&mut self, before: &mut HashMap<Key, Task>, target: &Target, kind: Kind) {
        let key = (Arc::clone(&target.backend.cluster), Arc::clone(&target.backend.name), kind);
        let task = match before.remove(&key) {
            Some(task) => {
                *task.target.lock() = target.clone();
                task
            }
            None => {
                let target = Arc::new(Mutex::new(target.clone()));
                let handle =
                    self.running.spawn(ask(self.prober.clone(), Arc::clone(&target), kind, self.first));
                Task { target, handle }
            }
        };
        self.known.insert(key, task);
    }
}

/// Asks at intervals, the first time after a random part of one.
async fn ask(prober: Prober, target: Arc<Mutex<Target>>, kind: Kind, first: First) {
    let interval = every(&target.lock(), kind);
    let interval = if first == First::Soon { interval.min(SOON) } else { interval };
    let mut wait = interval.mul_f64(fastrand::f64());
    loop {
        tokio::time::sleep(wait).await;
        let now = Instant::now();
        let target = target.lock().clone();
        let config = &target.cluster.config;
        match kind {
            Kind::Check => {
                if let Some(active) = &config.health.active {
                    check::check(&prober, &target, active).await;
                }
            }
            Kind::Scrape => {
                if let Some(scrape) = &config.scrape {
                    check::scrape(&prober, &target, scrape).await;
                }
            }
        }
        let interval = every(&target, kind).mul_f64(1.0 + JITTER * fastrand::f64());
        wait = interval.saturating_sub(now.elapsed());
    }
}

fn every(target: &Target, kind: Kind) -> Duration {
    let config = &target.cluster.config;
    let every = match kind {
        Kind::Check => config.health.active.as_ref().map(|active| active.every),
        Kind::Scrape => config.scrape.as_ref().map(|scrape| scrape.every),
    };
    // A task whose question is no longer asked is about to be ended.
    every.unwrap_or(Duration::from_secs(1))
}
