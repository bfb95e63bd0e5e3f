//! A fleet of engines behind the real choice, in simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use streamgate::cluster::affinity::{Chain, Kept, Keys, session_key};
use streamgate::cluster::load::{Work, cost};
use streamgate::cluster::{Ask, Cluster, InFlight, Report};
use streamgate::config::{Config, Environment};
use streamgate::snapshot::Snapshot;

use super::conversation::Conversation;
use super::engine::Engine;

const ENGINES: usize = 8;
/// Conversations that go on at the same time; one that ends makes room for the next.
const AT_ONCE: usize = 160;
const CONVERSATIONS: usize = 700;
/// Requests before the figures are taken: the caches are empty at first.
const WARM_UP: usize = 500;

/// What a policy came to.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Share of all blocks of prompts that were in the cache of the engine that was asked.
    pub(crate) cached: f64,
    /// Load of the fullest engine, as a multiple of the mean: the mean over all arrivals.
    pub(crate) spread: f64,
    /// Milliseconds to the first event, the mean.
    pub(crate) first_event_ms: f64,
    /// Share of attempts that went elsewhere though their home was usable.
    pub(crate) spilled: f64,
}

/// Whose turn it is, and whether it asks or is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Asks(usize),
    IsAnswered(usize),
}

struct Fleet {
    cluster: Arc<Cluster>,
    engines: Vec<Engine>,
    conversations: Vec<Conversation>,
    /// What each conversation waits for: its attempt, the tokens of its answer, the milliseconds to the first.
    open: Vec<Option<(InFlight, u64, u64)>>,
    events: BinaryHeap<Reverse<(u64, Next)>>,
    rng: Rng,
    start: Instant,
    sessions: bool,
    asked: usize,
    blocks: (usize, usize),
    sums: Figures,
}

/// The workload under this policy; with `sessions` clients name their conversation.
pub(crate) fn run(policy: &str, sessions: bool) -> Figures {
    let mut fleet = Fleet {
        cluster: cluster(policy),
        engines: (0..ENGINES).map(|_| Engine::default()).collect(),
        conversations: Vec::new(),
        open: Vec::new(),
        events: BinaryHeap::new(),
        rng: Rng::with_seed(7),
        start: Instant::now(),
        sessions,
        asked: 0,
        blocks: (0, 0),
        sums: Figures::default(),
    };
    (0..AT_ONCE).for_each(|_| fleet.begin(0));
    while let Some(Reverse((now, next))) = fleet.events.pop() {
        match next {
            Next::Asks(number) => fleet.ask(now, number),
            Next::IsAnswered(number) => fleet.answer(now, number),
        }
    }
    assert!(fleet.cluster.backends.iter().all(|backend| backend.state.load.work() == 0));
    let count = (fleet.asked - WARM_UP) as f64;
    Figures {
        cached: fleet.blocks.0 as f64 / fleet.blocks.1 as f64,
        spread: fleet.sums.spread / count,
        first_event_ms: fleet.sums.first_event_ms / count,
        spilled: fleet.sums.spilled / count,
    }
}

fn cluster(policy: &str) -> Arc<Cluster> {
    let backends = (1..=ENGINES).map(|n| format!("{{ name: gpu-{n}, url: \"http://127.0.0.1:{n}\" }},"));
    snapshot(&backends.collect::<String>(), policy, None).clusters[0].clone()
}

/// A snapshot of one cluster `c`.
pub(crate) fn snapshot(backends: &str, policy: &str, before: Option<&Snapshot>) -> Snapshot {
    let text = format!(
        "server: {{ listen: [{{ address: 127.0.0.1:0 }}] }}\n\
         clusters: {{ c: {{ backends: [{backends}], {policy} }} }}\n\
         routes: [{{ match: {{ path: /v1/chat/completions }}, cluster: c }}]\n"
    );
    let config = Config::parse(&text, &Environment::bare(2, 1 << 30)).unwrap().config;
    let resolve = |_: &str, port| Ok::<_, ()>(SocketAddr::from(([127, 0, 0, 1], port)));
    let snapshot = Snapshot::build(config, before, resolve).unwrap();
    snapshot.come_into_force(Instant::now());
    snapshot
}

impl Fleet {
    fn begin(&mut self, now: u64) {
        let conversation = Conversation::begin(&mut self.rng);
        self.conversations.push(conversation);
        self.open.push(None);
        let number = self.open.len() - 1;
        self.later(now, number);
    }

    /// People read for up to twenty seconds, programs do not.
    fn later(&mut self, now: u64, number: usize) {
        let pause = self.rng.u64(..20_000);
        let pause = if self.conversations[number].is_program { pause / 100 } else { pause };
        self.events.push(Reverse((now + pause, Next::Asks(number))));
    }

    fn keys(&self, number: usize) -> Keys {
        if self.sessions {
            return session_key("c", Some("m"), None, &number.to_string());
        }
        let mut chain = Chain::new("c", Some("m"), None);
        chain.push(self.conversations[number].text.as_bytes());
        chain.keys()
    }

    fn ask(&mut self, now: u64, number: usize) {
        let (keys, tokens) = (self.keys(number), self.rng.u64(20..600));
        let tokens = if self.conversations[number].is_program { 4 * tokens } else { tokens };
        let body_bytes = self.conversations[number].text.len() as u64;
        // Most clients name a limit, and it says little.
        let tokens_max = [None, Some(1_024), Some(tokens + 100)][self.rng.usize(..3)];
        let work = Work { body_bytes, generates: true, tokens_max, answers: None };
        let at = self.start + Duration::from_millis(now);
        let ask = Ask {
            lenient: true,
            sound: false,
            tried: &[],
            now: at,
            draw: self.rng.u64(..),
            cost: cost(&work),
            keys: &keys,
            chooser: None,
        };
        let attempt = self.cluster.pick(&ask).unwrap();
        let at = self.cluster.backends.iter().position(|one| Arc::ptr_eq(one, attempt.backend())).unwrap();
        let beside = attempt.backend().state.in_flight() - 1;
        let served = self.engines[at].serve(&self.conversations[number].blocks, tokens, beside);
        self.asked += 1;
        if self.asked > WARM_UP {
            self.blocks.0 += served.cached;
            self.blocks.1 += served.blocks;
            self.sums.spread += self.spread();
            self.sums.first_event_ms += served.first_event as f64;
            self.sums.spilled += f64::from(attempt.kept() == Some(Kept::Spill));
        }
        self.events.push(Reverse((now + served.whole, Next::IsAnswered(number))));
        self.open[number] = Some((attempt, tokens, served.first_event));
    }

    fn answer(&mut self, now: u64, number: usize) {
        let (attempt, tokens, first_event) = self.open[number].take().unwrap();
        attempt.backend().state.learn(&Report {
            status: Some(200),
            first_event: Some(Duration::from_millis(first_event)),
            ..Report::of(self.start + Duration::from_millis(now))
        });
        drop(attempt);
        self.conversations[number].go_on(&mut self.rng, tokens);
        match self.conversations[number].turns {
            0 if self.open.len() < CONVERSATIONS => self.begin(now),
            0 => {}
            _ => self.later(now, number),
        }
    }

    fn spread(&self) -> f64 {
        let loads = || self.cluster.backends.iter().map(|backend| backend.state.load.work() as f64);
        let mean = loads().sum::<f64>() / ENGINES as f64;
        loads().fold(0.0, f64::max) / mean
    }
}
