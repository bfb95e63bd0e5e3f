//! The view: one JSON object a second, for the page and for `streamgate top`.
//!
//! Times are in seconds, rates in units a second; what is not known (no traffic, no earlier sample) is `null`.

mod fleet;

use serde::{Deserialize, Serialize};

pub use fleet::{Backend, BackendNow, Cluster, ClusterNow, Engine, Output};

/// All that is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The process and its configuration.
    pub gateway: Gateway,
    /// What is wrong, worst first; empty when all is well.
    pub problems: Vec<Problem>,
    /// All together.
    pub totals: Totals,
    /// The last minute, a value a second, the newest last.
    pub history: History,
    /// In the order of the file.
    pub clusters: Vec<Cluster>,
    /// In the order of the file.
    pub routes: Vec<Route>,
    /// Clients that left within the window, by where their exchange was; those that did.
    pub cancels: Vec<Cancels>,
    /// Exchanges that failed of late, the newest first.
    pub failures: Vec<Failure>,
}

/// The process and its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    /// Of the binary.
    pub version: String,
    /// When the view was made, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Since its start.
    pub uptime_seconds: u64,
    /// `serving`, `checking` (not each backend has had its first check) or `leaving`.
    pub state: String,
    /// The configuration in force.
    pub generation: u64,
    /// Its file; `None` for the demonstration.
    pub file: Option<String>,
    /// How the last reading of it ended.
    pub last_reload: Reload,
    /// An operator with the token can act from a web page.
    pub acts: bool,
    /// Client connections that are open.
    pub connections: usize,
    /// Exchanges at work.
    pub exchanges: usize,
    /// Bytes of bodies and of streams that are held.
    pub held_bytes: u64,
}

/// How a reading of the file ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// `applied`, `unchanged`, `refused` or `ignored`.
    pub result: String,
    /// Who wanted it.
    pub cause: String,
    /// When, in seconds since 1970.
    pub unix_seconds: u64,
    /// Why it is refused, a problem a line.
    pub problems: Vec<String>,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing is wrong.
    Ok,
    /// Meant so, or passes by itself.
    Notice,
    /// Somebody should look.
    Warning,
    /// Clients are not served.
    Critical,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// How bad.
    pub level: Level,
    /// What it is about: a cluster, a backend, a route, the gateway.
    pub what: String,
    /// What is wrong with it.
    pub why: String,
}

/// Times below which half, nine tenths and 99 hundredths lie, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half.
    pub p50: Option<f64>,
    /// Nine tenths.
    pub p90: Option<f64>,
    /// Ninety-nine hundredths.
    pub p99: Option<f64>,
}

/// All together. Counts and percentiles are of the last `window_seconds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// How far back the view reaches: at most a minute, less when nobody has watched so long.
    pub window_seconds: f64,
    /// Event streams being relayed.
    pub streams: u64,
    /// Exchanges that wait for a free slot.
    pub waiting: u64,
    /// Tokens that pass.
    pub tokens_per_second: Option<f64>,
    /// Exchanges that end.
    pub requests_per_second: Option<f64>,
    /// Exchanges that ended.
    pub requests: u64,
    /// Those that failed, by no fault of their clients.
    pub failed: u64,
    /// Those that were refused for what their clients sent, or beyond their limits.
    pub refused: u64,
    /// Clients that left.
    pub cancels: u64,
    /// Tokens that were not generated for them: an estimate.
    pub tokens_saved: u64,
    /// From arrival to the first token.
    pub first_token: Percentiles,
    /// Between tokens.
    pub gap: Percentiles,
}

/// The last minute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Tokens that passed.
    pub tokens_per_second: Vec<f64>,
    /// Exchanges that ended.
    pub requests_per_second: Vec<f64>,
    /// Exchanges that failed.
    pub failed_per_second: Vec<f64>,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// Event streams being relayed.
    pub streams: u64,
    /// Exchanges that end.
    pub requests_per_second: Option<f64>,
    /// Exchanges that ended within the window.
    pub requests: u64,
    /// Those that failed, by no fault of their clients.
    pub failed: u64,
    /// From arrival to the first token.
    pub first_token: Percentiles,
    /// Between tokens.
    pub gap: Percentiles,
}

/// Clients that left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancels {
    /// Where their exchange was.
    pub phase: String,
    /// How many.
    pub count: u64,
}

/// Exchanges that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// When the last one did, in milliseconds since 1970.
    pub unix_ms: u64,
    /// How many.
    pub times: u64,
    /// `backend`, `gateway` or `client`: where to look first.
    pub side: String,
    /// Its route.
    pub route: Option<String>,
    /// Its cluster.
    pub cluster: Option<String>,
    /// The last backend it was tried on.
    pub backend: Option<String>,
    /// What the client saw; 0 for none.
    pub status: u16,
    /// How it ended, as in the access log.
    pub outcome: String,
    /// `error.code` of what the client was told.
    pub code: Option<String>,
    /// Why the last one did.
    pub why: Option<String>,
    /// The last one's id.
    pub request_id: String,
}

/// All that is known at one moment without a look back.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// The process and its configuration.
    pub gateway: Gateway,
    /// Clusters with their backends, in the order in which they are shown.
    pub clusters: Vec<(ClusterNow, Vec<BackendNow>)>,
    /// Routes, and the event streams that each relays.
    pub routes: Vec<(String, u64)>,
    /// Exchanges that failed of late.
    pub failures: Vec<Failure>,
}
