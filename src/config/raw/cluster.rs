//! The `clusters` part.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Auth, CacheSalt, ClusterTls, Field, Headers, List, Timeouts};
use crate::config::units::{Count, Duration, OrNever, Percent, Rate};

/// Backends that serve the same thing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cluster {
    /// Wire particulars of the engines. Default `openai`: any server that keeps to OpenAI's API.
    pub profile: Field<Profile>,
    /// The servers of the cluster, each with a name and a url. Required, unless there is discover.
    pub backends: List<Backend>,
    /// Find backends by DNS, instead of or beside the list. Default: none.
    pub discover: Field<Discover>,
    /// How a backend is chosen. Default `least_load`.
    pub balance: Field<Balance>,
    /// Keep together what shares a cache.
    pub affinity: Field<Affinity>,
    /// How a bad backend is noticed, and what brings it back.
    pub health: Field<Health>,
    /// Where engines are asked for their load; null: nowhere. Default: as below for the profiles vllm, sglang and
    /// llamacpp, null for the others.
    pub scrape: Field<Scrape>,
    /// Waiting for a free slot, where every backend is at its max_inflight.
    pub queue: Field<Queue>,
    /// When a failed attempt moves to another backend.
    pub retry: Field<Retry>,
    /// Finish a stream that was cut mid-answer on another backend. This version takes never only. Default `never`.
    #[serde(rename = "continue")]
    pub continuation: Field<Continue>,
    /// Ask for usage with each event, so that a stream that is left is known to the token; profiles vllm and sglang
    /// only. Default `false`.
    pub continuous_usage: Field<bool>,
    /// Credentials toward the backends: pass (the client's own), none, or a credential of the gateway's. Default
    /// `pass`: but none where the file has keys, and pass is refused then.
    pub auth: Field<Auth>,
    /// Headers of the request to the backend: what is set and what is taken out.
    pub headers: Field<Headers>,
    /// TLS toward the backends whose url is https.
    pub tls: Field<ClusterTls>,
    /// How long an idle connection to a backend is kept; stay below the engine's own keep-alive, which is 5s for
    /// vLLM. Default `4s`.
    pub keepalive: Field<Duration>,
    /// A salt for vLLM's prefix cache, so that keys share no cached prompts; profile vllm only. Default `none`.
    pub cache_salt: Field<CacheSalt>,
    /// Time budgets of this cluster; what is left out is as in `timeouts`.
    pub timeouts: Field<Timeouts>,
}

/// A vendor's wire particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
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

/// One server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Backend {
    /// Its name in metrics, logs and drains, unique in its cluster. Required.
    pub name: Field<String>,
    /// `http://HOST:PORT` or `https://HOST`, with a path prefix if need be, which comes before the client's path.
    /// Required.
    pub url: Field<String>,
    /// Share of the work against its neighbours, 1 to 1000000. Default `1`.
    pub weight: Field<Count>,
    /// Requests at once, 1 to 1000000; more wait in the queue. Default `never`: no limit.
    pub max_inflight: Field<OrNever<Count>>,
    /// It takes no new work; what runs on it goes on. Default `false`.
    pub drain: Field<bool>,
}

/// Backends found by DNS.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Discover {
    /// `HOST:PORT`; every address of the host is a backend, over plain HTTP. Required.
    pub dns: Field<String>,
    /// How often the name is looked up. Default `5s`.
    pub every: Field<Duration>,
}

/// How a backend is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// In turns, by weight.
    RoundRobin,
    /// By chance, by weight.
    Random,
    /// The less loaded of two drawn by chance.
    LeastLoad,
    /// The same for the same session, else for the same beginning of the prompt.
    ConsistentHash,
}

/// Keep together what shares a cache.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Affinity {
    /// What to stick by: session, prefix; the first that a request has. Default `[]`: nothing sticks.
    pub by: List<AffinityBy>,
    /// How far above the mean a backend may run before its overflow spills, 1 to 100. Default `1.25`.
    pub load_bound: Field<f64>,
}

/// What to stick by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AffinityBy {
    /// The session id.
    Session,
    /// The leading text of the prompt.
    Prefix,
}

/// How a bad backend is noticed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Health {
    /// A bad backend is noticed by asking it; null: not so. Default: as below for the profiles vllm, sglang and
    /// llamacpp, null for the others.
    pub active: Field<Active>,
    /// A bad backend is noticed by what happens to its requests, and taken out of the rotation.
    pub passive: Field<Passive>,
    /// A backend that holds streams and generates nothing is noticed by their standing still.
    pub wedged: Field<Wedged>,
    /// How long a backend that came back gets less work. Default `10s`.
    pub slow_start: Field<Duration>,
}

/// Health by asking.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Active {
    /// Path of the health endpoint, behind the backend's prefix. Default `/health`.
    pub path: Field<String>,
    /// Time between two checks of a backend. Default `2s`.
    pub every: Field<Duration>,
    /// Time that one check has. Default `1s`.
    pub timeout: Field<Duration>,
    /// Failures in a row that make it bad. Default `3`.
    pub fall: Field<Count>,
    /// Successes in a row that make it good. Default `2`.
    pub rise: Field<Count>,
}

/// Health by what happens to requests.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Passive {
    /// Failures in a row that take it out of the rotation. Default `3`.
    pub consecutive: Field<Count>,
    /// First time out of the rotation; each further one is twice as long. Default `10s`.
    pub ejection: Field<Duration>,
    /// Longest time out of it, not less than ejection. Default `300s`.
    pub ejection_max: Field<Duration>,
    /// Largest share of the cluster that may be out at once. Default `50%`.
    pub max_ejected: Field<Percent>,
}

/// Health by streams that stand still.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Wedged {
    /// Streams in flight, and no data event for this long. Default `120s`.
    pub after: Field<Duration>,
}

/// Where load is read from.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Scrape {
    /// Path of the metrics endpoint, behind the backend's prefix. Default `/metrics`.
    pub path: Field<String>,
    /// How often each engine is read, at most. Default `2s`.
    pub every: Field<Duration>,
}

/// Waiting for a free slot.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Queue {
    /// Requests that may wait, 0 to 1000000; one more is told 503 overloaded. Default `1000`.
    pub max: Field<Count>,
}

/// When a failed attempt moves to another backend.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Attempts in all, 1 or 2. Default `2`.
    pub attempts: Field<Count>,
    /// Largest share of the live requests that may be second attempts, where more than half of the backends have
    /// failed. Default `20%`.
    pub budget: Field<Percent>,
    /// Second attempts that are allowed in any case. Default `10/s`.
    pub floor: Field<Rate>,
}

/// When a cut stream is finished elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Continue {
    /// Never.
    Never,
    /// When its backend was lost.
    NodeLoss,
}
