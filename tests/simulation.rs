//! The fleet's counts under everything at once: clients that come, finish, fail and leave, engines that say
//! what they like, reloads that change, remove and bring back backends, and a clock that jumps.
//!
//! After each step the counts of every backend that ever was are compared with a list of what is open. All
//! draws come from one seed; a failure names it, and `STREAMGATE_SIM_SEED=n` runs that one alone.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test; it reads the environment")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use streamgate::cluster::affinity::{ALWAYS_TAKEN, ENTRIES_MAX, Kept};
use streamgate::cluster::{Ask, Backend, BackendState, InFlight, Reading, Report};
use streamgate::config::{Config, Environment};
use streamgate::failure::Failure;
use streamgate::snapshot::Snapshot;

const SEEDS: u64 = 48;
const STEPS: usize = 1_000;

/// An exchange with an open attempt. Like the real one it keeps the snapshot that it began with.
struct Open {
    snapshot: Arc<Snapshot>,
    attempt: InFlight,
    tried: Vec<Arc<Backend>>,
    cost: u64,
    keys: Vec<u64>,
}

struct World {
    rng: Rng,
    now: Instant,
    snapshot: Arc<Snapshot>,
    open: Vec<Open>,
    /// The states of all backends that ever were.
    states: Vec<Arc<BackendState>>,
}

/// A file with some of eight backends, anything of them changed.
fn file(rng: &mut Rng) -> Config {
    let mut backends = String::new();
    let any = rng.usize(0..8);
    for n in 0..8 {
        if n != any && rng.bool() {
            continue;
        }
        let (weight, drain) = (rng.u32(1..5), rng.u8(..8) == 0);
        write!(
            backends,
            "{{ name: b{n}, url: \"http://127.0.0.1:1{n}\", weight: {weight}, drain: {drain} }},"
        )
        .unwrap();
    }
    let balance = ["round_robin", "random", "least_load", "consistent_hash"][rng.usize(..4)];
    let by = ["[]", "[session]", "[prefix]", "[session, prefix]"][rng.usize(..4)];
    let bound = ["1", "1.25", "10"][rng.usize(..3)];
    let text = format!(
        "server: {{ listen: [{{ address: 127.0.0.1:0 }}] }}\n\
         clusters: {{ c: {{ profile: vllm, backends: [{backends}], balance: {balance}, \
         affinity: {{ by: {by}, load_bound: {bound} }} }} }}\n\
         routes: [{{ match: {{ path: /v1/chat/completions }}, cluster: c }}]\n"
    );
    Config::parse(&text, &Environment::bare(2, 1 << 30))
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
        .config
}

fn build(rng: &mut Rng, before: Option<&Snapshot>) -> Arc<Snapshot> {
    let resolve = |_: &str, port| Ok::<_, ()>(SocketAddr::from(([127, 0, 0, 1], port)));
    let snapshot = Snapshot::build(file(rng), before, resolve).unwrap();
    snapshot.come_into_force(Instant::now());
    Arc::new(snapshot)
}

/// Load and weight of a backend, as the choice sees them.
fn share(backend: &Backend, now: Instant) -> (f64, f64) {
    let three_readings = Duration::from_secs(6);
    (backend.state.load.total(now, three_readings) as f64, f64::from(backend.weight))
}

/// Nothing goes home to a backend above the bound, unless it does next to nothing.
fn within_bound(bound: f64, (load, weight): (f64, f64), all: &[(f64, f64)]) {
    let (total, weights) = all.iter().fold((0.0, 0.0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
    let most = (bound * total / weights).max(ALWAYS_TAKEN as f64) * weight;
    assert!(load <= most * (1.0 + 1e-9), "{load} on a backend that may have {most}");
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let snapshot = build(&mut rng, None);
        let mut world = Self {
            rng,
            now: Instant::now() + Duration::from_secs(100_000),
            snapshot,
            open: Vec::new(),
            states: Vec::new(),
        };
        world.meet();
        world
    }

    fn step(&mut self) {
        match self.rng.u8(..100) {
            0..40 => self.arrive(),
            40..55 => self.leave(None),
            55..65 => self.finish(),
            65..75 => self.fail(),
            75..85 => self.read(),
            85..87 => self.reload(),
            87..98 => self.now += Duration::from_micros(self.rng.u64(..2_000_000)),
            98 => self.now += Duration::from_secs(self.rng.u64(..100_000)),
            _ => self.now -= Duration::from_millis(self.rng.u64(..5_000)),
        }
    }

    fn arrive(&mut self) {
        let first = self.rng.u64(..4);
        let keys = (0..self.rng.u64(..4)).map(|block| first * 1_000 + block).collect();
        let cost = self.rng.u64(1..40_000);
        let snapshot = Arc::clone(&self.snapshot);
        self.attempt(snapshot, Vec::new(), cost, keys);
    }

    /// An attempt, if there is a backend for it; and there is one whenever there could be.
    fn attempt(&mut self, snapshot: Arc<Snapshot>, mut tried: Vec<Arc<Backend>>, cost: u64, keys: Vec<u64>) {
        let ask = Ask {
            lenient: true,
            sound: false,
            tried: &tried,
            now: self.now,
            draw: self.rng.u64(..),
            cost,
            keys: &keys,
            chooser: None,
        };
        let cluster = &snapshot.clusters[0];
        let was_tried = |backend: &Arc<Backend>| tried.iter().any(|other| Arc::ptr_eq(other, backend));
        let usable: Vec<_> = cluster
            .backends
            .iter()
            .filter(|backend| !backend.state.leaving.takes_nothing() && !was_tried(backend))
            .collect();
        assert_eq!(cluster.has_left(&ask, false), !usable.is_empty());
        let shares: Vec<_> = usable.iter().map(|backend| share(backend, self.now)).collect();
        let Ok(attempt) = cluster.pick(&ask) else {
            assert!(usable.is_empty(), "there was a backend");
            return;
        };
        let backend = Arc::clone(attempt.backend());
        let place = usable.iter().position(|other| Arc::ptr_eq(other, &backend));
        let place = place.unwrap_or_else(|| panic!("{} may not be picked", backend.name));
        let sticks = !keys.is_empty() && !cluster.config.affinity.by.is_empty();
        assert_eq!(attempt.kept().is_some(), sticks);
        if attempt.kept() == Some(Kept::Hit) && usable.len() > 1 {
            within_bound(cluster.config.affinity.load_bound, shares[place], &shares);
        }
        tried.push(backend);
        self.open.push(Open { snapshot, attempt, tried, cost, keys });
    }

    fn finish(&mut self) {
        let first_event = Some(Duration::from_millis(self.rng.u64(..5_000)));
        self.leave(Some(Report { status: Some(200), first_event, ..Report::of(self.now) }));
    }

    /// Some exchange ends: with a report, or because its client has left.
    fn leave(&mut self, report: Option<Report>) {
        let Some(open) = self.take() else { return };
        report.iter().for_each(|report| open.attempt.backend().state.learn(report));
    }

    /// Some attempt fails, and its exchange is tried once more.
    fn fail(&mut self) {
        let Some(open) = self.take() else { return };
        let failures =
            [Failure::Connect, Failure::Unanswered, Failure::Status(503), Failure::FirstEventTimeout];
        let failure = Some(failures[self.rng.usize(..failures.len())]);
        open.attempt.backend().state.learn(&Report { failure, ..Report::of(self.now) });
        let Open { snapshot, attempt, tried, cost, keys } = open;
        drop(attempt);
        if tried.len() < 3 {
            self.attempt(snapshot, tried, cost, keys);
        }
    }

    fn take(&mut self) -> Option<Open> {
        if self.open.is_empty() {
            return None;
        }
        let place = self.rng.usize(..self.open.len());
        Some(self.open.swap_remove(place))
    }

    /// Some engine says something of itself, true or not, now or late.
    fn read(&mut self) {
        let state = &self.states[self.rng.usize(..self.states.len())];
        let at = self.now - Duration::from_millis(self.rng.u64(..20_000));
        let any = [0, 1, 7, u32::MAX];
        let (running, waiting) = (any[self.rng.usize(..4)], any[self.rng.usize(..4)]);
        let kv_usage = [None, Some(0.5), Some(0.95), Some(f64::NAN)][self.rng.usize(..4)];
        state.read(Reading { at, running, waiting, kv_usage, steps: None });
    }

    fn reload(&mut self) {
        let next = build(&mut self.rng, Some(&self.snapshot));
        for backend in &next.clusters[0].backends {
            let before = self.snapshot.clusters[0].backends.iter().find(|before| before.name == backend.name);
            if let Some(before) = before {
                assert!(Arc::ptr_eq(&before.state, &backend.state), "{} lost its state", backend.name);
            }
        }
        self.snapshot = next;
        self.meet();
    }

    fn meet(&mut self) {
        for backend in &self.snapshot.clusters[0].backends {
            if !self.states.iter().any(|state| Arc::ptr_eq(state, &backend.state)) {
                self.states.push(Arc::clone(&backend.state));
            }
        }
    }

    /// Each backend counts what is open on it, and nothing else.
    fn check(&self) {
        let mut open: HashMap<*const BackendState, (usize, u64)> = HashMap::new();
        for exchange in &self.open {
            let on_it = open.entry(Arc::as_ptr(&exchange.attempt.backend().state)).or_default();
            *on_it = (on_it.0 + 1, on_it.1 + exchange.cost);
        }
        for state in &self.states {
            let on_it = open.get(&Arc::as_ptr(state)).copied().unwrap_or_default();
            assert_eq!((state.in_flight(), state.load.work()), on_it);
        }
        assert!(self.snapshot.clusters[0].state.homes.len() <= ENTRIES_MAX);
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.step();
        world.check();
    }
    assert!(world.states.len() > 1 && !world.open.is_empty(), "nothing happened");
    world.open.clear();
    world.check();
}

#[test]
fn every_count_is_what_is_open_and_returns_to_zero() {
    if let Ok(seed) = std::env::var("STREAMGATE_SIM_SEED") {
        return run(seed.parse().expect("a number"));
    }
    for seed in 0..SEEDS {
        let ended = std::panic::catch_unwind(|| run(seed));
        assert!(ended.is_ok(), "replay it with STREAMGATE_SIM_SEED={seed}");
    }
}
