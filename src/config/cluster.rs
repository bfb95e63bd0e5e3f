//! A cluster as the rest of the gateway reads it.

use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderName;

use super::tls::Tls;
use super::units::Rate;
use crate::header_rules::Rules;
use crate::secret::Secret;

/// Backends that serve the same thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its name in the file.
    pub name: Arc<str>,
    /// Wire particulars of its engines.
    pub profile: Profile,
    /// Those of the file; empty only where `discover` finds some.
    pub backends: Vec<Backend>,
    /// More of them, found by DNS.
    pub discover: Option<Discover>,
    /// How one of them is chosen.
    pub balance: Balance,
    /// What sticks to one of them.
    pub affinity: Affinity,
    /// How a bad one is noticed.
    pub health: Health,
    /// Where their load is read; `None` = nowhere.
    pub scrape: Option<Scrape>,
    /// Requests that may wait for a free slot.
    pub queue_max: usize,
    /// When a failed attempt moves to another one.
    pub retry: Retry,
    /// What becomes of the client's credentials.
    pub auth: Auth,
    /// What is removed from and set in the head that goes to a backend.
    pub headers: Rules,
    /// How long an idle upstream connection is kept.
    pub keepalive: Duration,
    /// Each key gets a salt of its own for the engine's prefix cache.
    pub salts: bool,
    /// Streams are asked to tell their usage with each event, so that one that is cut is known to the token.
    pub continuous_usage: bool,
}

impl Cluster {
    /// Whether both ask their backends in the same way: as the same kind of engine, with the same credentials and
    /// headers. Who the backends are, and how one of them is chosen and watched, may differ.
    pub fn asks_as(&self, other: &Self) -> bool {
        (self.profile, &self.auth, &self.headers, self.salts, self.continuous_usage)
            == (other.profile, &other.auth, &other.headers, other.salts, other.continuous_usage)
    }
}

/// A vendor's wire particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// vLLM's OpenAI-compatible server.
    Vllm,
    /// The DeepSeek API.
    Deepseek,
    /// SGLang.
    Sglang,
    /// llama.cpp's server.
    Llamacpp,
    /// Any other OpenAI-compatible server.
    Openai,
}

/// What is sent to the backend as credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// The client's, untouched.
    Pass,
    /// None: the client's are removed.
    None,
    /// The gateway's own, in place of the client's.
    Own(Credential),
}

/// A credential of the gateway's own, and the header that carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The header.
    pub header: HeaderName,
    /// Its value.
    pub value: Secret,
}

/// One server of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Unique in its cluster.
    pub name: Arc<str>,
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Host and port as the URL has them: the `Host` that the backend is sent.
    pub authority: String,
    /// TLS toward it; `None` for http.
    pub tls: Option<Arc<Tls>>,
    /// Path prefix of the URL without its trailing slash; empty for none.
    pub prefix: String,
    /// Its share of the work against its neighbours, at least 1.
    pub weight: u32,
    /// Attempts that it takes at once; `None` = no limit.
    pub max_inflight: Option<usize>,
    /// Takes no new work.
    pub drain: bool,
}

/// Backends found by DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discover {
    /// Every address of this host is a backend.
    pub host: String,
    /// TCP port of all of them.
    pub port: u16,
    /// How often it is asked.
    pub every: Duration,
}

/// How a backend is chosen among the usable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// In turns, by weight.
    RoundRobin,
    /// By chance, by weight.
    Random,
    /// The less loaded of two drawn by chance.
    LeastLoad,
    /// The same for the same key.
    ConsistentHash,
}

/// What sticks to one backend, since it shares a cache there.
#[derive(Debug, Clone, PartialEq)]
pub struct Affinity {
    /// The first that a request has; empty = nothing sticks.
    pub by: Vec<AffinityBy>,
    /// A backend may run at most this many times the mean load, at least 1, before its overflow spills.
    pub load_bound: f64,
}

/// What requests of one kind have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AffinityBy {
    /// The session id.
    Session,
    /// The leading text of the prompt.
    Prefix,
}

/// How a bad backend is noticed.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// By asking it; `None` = not.
    pub active: Option<Active>,
    /// By what happens to attempts.
    pub passive: Passive,
    /// Streams in flight, and no data event for this long: it is wedged.
    pub wedged_after: Duration,
    /// How long a backend that came back gets less work; 0 = not at all.
    pub slow_start: Duration,
}

/// Health by asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active {
    /// Path of the health endpoint, behind the backend's prefix.
    pub path: String,
    /// Time between two checks.
    pub every: Duration,
    /// Time for one.
    pub timeout: Duration,
    /// Failures in a row that make it bad, at least 1.
    pub fall: u32,
    /// Successes in a row that make it good again, at least 1.
    pub rise: u32,
}

/// Health by what happens to attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Passive {
    /// Failures in a row that eject it, at least 1.
    pub consecutive: u32,
    /// Its first time out of the rotation; each further one is twice as long.
    pub ejection: Duration,
    /// Longest time out of it.
    pub ejection_max: Duration,
    /// Largest share of the cluster (0 to 1) that may be out at once; one always may.
    pub max_ejected: f64,
}

/// Where load is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scrape {
    /// Path of the metrics endpoint, behind the backend's prefix.
    pub path: String,
    /// Time between two readings.
    pub every: Duration,
}

/// When a failed attempt moves to another backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Attempts in all for one exchange: 1 or 2.
    pub attempts: u32,
    /// Largest share (0 to 1) of live requests that may be second attempts.
    pub budget: f64,
    /// Second attempts that are allowed in any case.
    pub floor: Rate,
}
