//! Clusters and backends in the view.

use serde::{Deserialize, Serialize};

use super::{Level, Percentiles};

/// A cluster and its backends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// What is known of it at this moment.
    #[serde(flatten)]
    pub now: ClusterNow,
    /// What comes out of it.
    #[serde(flatten)]
    pub output: Output,
    /// Those in trouble first, then as in the file. Beyond a bound they are in `of` only.
    pub backends: Vec<Backend>,
}

/// What is known of a cluster at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterNow {
    /// Its name.
    pub name: String,
    /// The name its backends are found by.
    pub discover: Option<String>,
    /// Backends that take work.
    pub up: usize,
    /// Backends in all.
    pub of: usize,
    /// Attempts open.
    pub in_flight: usize,
    /// Exchanges that wait for a free slot.
    pub waiting: usize,
    /// At most so many may.
    pub queue_max: usize,
}

/// What comes out of a cluster or of a backend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Tokens that pass.
    pub tokens_per_second: Option<f64>,
    /// From the request sent to the first token.
    pub first_token: Percentiles,
    /// Between tokens.
    pub gap: Percentiles,
}

/// A backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backend {
    /// What is known of it at this moment.
    #[serde(flatten)]
    pub now: BackendNow,
    /// What comes out of it.
    #[serde(flatten)]
    pub output: Output,
}

/// What is known of a backend at one moment. `state` and `health` are the words of `GET /status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendNow {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// How bad it stands with it.
    pub level: Level,
    /// One word: what it is good for.
    pub state: String,
    /// What its attempts and checks say of it.
    pub health: String,
    /// The share of its weight that it gets: less than 1 for a while after it came back.
    pub share: f64,
    /// So long it rests after a 429 or a 503.
    pub rests_seconds: Option<f64>,
    /// Open work, in tokens to generate.
    pub load: u64,
    /// Attempts open.
    pub in_flight: usize,
    /// At most so many.
    pub max_inflight: Option<usize>,
    /// An operator has drained it.
    pub drained: bool,
    /// What the engine says of itself.
    pub engine: Option<Engine>,
}

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// Requests that it works on.
    pub running: u32,
    /// Requests that wait in it.
    pub waiting: u32,
    /// The part of its cache that is used, 0 to 1.
    pub kv_usage: Option<f64>,
    /// How long ago it said so.
    pub age_seconds: f64,
    /// So long that it may not be so any more.
    pub is_old: bool,
}
