//! The `routes`, `stream` and `timeouts` parts.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Entries, Field, List, OneOrMany};
use crate::config::units::{Count, Duration, OrNever, Size};

/// Which requests, and where they go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Label in metrics and log. Default: the first path.
    pub name: Field<String>,
    /// Which requests.
    #[serde(rename = "match")]
    pub matches: Field<Match>,
    /// The cluster they go to.
    pub cluster: Field<String>,
    /// A fixed answer, instead of a cluster.
    pub respond: Field<Respond>,
    /// What GET /v1/models lists for this route.
    pub models: List<String>,
    /// The client's model name -> the backend's.
    pub aliases: Field<Entries<String>>,
    /// Clusters to try, in order, when this one has no usable backend.
    pub fallback: List<String>,
    /// Whether a request must ask for a stream. Default any.
    pub streaming: Field<Streaming>,
    /// Ask engines for the usage frame; cut it out for clients that did not. Default true.
    pub include_usage: Field<bool>,
    /// Largest body. Default: the server's.
    pub body_bytes: Field<Size>,
    /// Stream settings of this route.
    pub stream: Field<Stream>,
    /// Time budgets of this route.
    pub timeouts: Field<Timeouts>,
    /// Limits on what a body may ask.
    pub guard: Field<Guard>,
}

/// Which requests.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// One path or several; a segment "*" stands for exactly one.
    pub path: Field<OneOrMany>,
    /// The client's model name; "*" matches any run of characters. Quote what begins with "*".
    pub model: Field<String>,
    /// Methods. Default GET and POST.
    pub methods: List<String>,
    /// Headers and the values they must have; "*" matches any run of characters.
    pub headers: Field<Entries<String>>,
}

/// A fixed answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Respond {
    /// HTTP status, 200 to 599. Default 200.
    pub status: Field<Count>,
    /// Content type of the body. Default text/plain.
    pub content_type: Field<String>,
    /// The body. Default empty.
    pub body: Field<String>,
    /// Whether it is for clients with an API key only. Default false: everybody gets it.
    pub needs_key: Field<bool>,
}

/// Whether a request must ask for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// Either way.
    Any,
    /// Anything but stream: true is answered 400.
    Required,
}

/// Limits on what a body may ask.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Guard {
    /// Largest max_tokens.
    pub max_tokens: Field<Count>,
    /// Largest n.
    pub n: Field<Count>,
    /// Largest best_of.
    pub best_of: Field<Count>,
    /// Most prompts in one request.
    pub prompts: Field<Count>,
    /// Largest logprobs.
    pub logprobs: Field<Count>,
    /// Most tools.
    pub tools: Field<Count>,
    /// Deepest JSON schema.
    pub schema_depth: Field<Count>,
    /// Fields that are refused.
    pub denied: List<String>,
}

/// How streams are kept flowing, bounded and ended.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stream {
    /// A comment goes to the client after this much silence. Default 15s.
    pub heartbeat: Field<OrNever<Duration>>,
    /// An upstream 200 waits this long for its first event before it is passed on. Default 5s.
    pub hold_headers: Field<Duration>,
    /// After this much silence with no upstream answer at all, commit 200. Default never.
    pub early_headers: Field<OrNever<Duration>>,
    /// Response bytes a stream may hold in the gateway, 16KiB to 16MiB. Default 64KiB.
    pub window: Field<Size>,
    /// An event is held until whole up to this size, 1KiB to the window. Default 16KiB.
    pub event_hold: Field<Size>,
    /// A client that takes no byte for this long is cut. Default 30s.
    pub write_stall: Field<Duration>,
    /// What it means when a client closes its sending side early. Default abort.
    pub half_close: Field<HalfClose>,
    /// How the body ends after an error event. Default clean.
    pub failure_end: Field<FailureEnd>,
}

/// What it means when a client closes its sending side early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HalfClose {
    /// It is gone.
    Abort,
    /// It only finished sending.
    Finish,
}

/// How the body ends after an error event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailureEnd {
    /// With its proper HTTP end.
    Clean,
    /// With broken framing.
    Abort,
}

/// Time budgets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// TCP and TLS, for each attempt. Default 5s.
    pub connect: Field<Duration>,
    /// Request sent to first data event of a stream, for each attempt. Default 120s.
    pub first_event: Field<Duration>,
    /// Request sent to the whole answer of a call that does not stream. Default 10m.
    pub unary: Field<Duration>,
    /// No data event for this long after the first. Default 60s.
    pub idle: Field<Duration>,
    /// From arrival to the end. Default 30m.
    pub total: Field<Duration>,
    /// Waiting for a free slot. Default 30s.
    pub queue: Field<Duration>,
}
