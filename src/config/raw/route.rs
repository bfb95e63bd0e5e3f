//! The `routes`, `stream` and `timeouts` parts.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Entries, Field, List, OneOrMany};
use crate::config::units::{Count, Duration, OrNever, Size};

/// Which requests, and where they go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Label in metrics and log, unique. Default: the first path.
    pub name: Field<String>,
    /// Which requests the route takes: all that is written here must fit.
    #[serde(rename = "match")]
    pub matches: Field<Match>,
    /// The cluster that its requests go to. Required, unless there is respond.
    pub cluster: Field<String>,
    /// A fixed answer, instead of a cluster. Default: none.
    pub respond: Field<Respond>,
    /// What GET /v1/models lists for this route; match.model decides where a request goes. Default `[]`.
    pub models: List<String>,
    /// The client's model name -> the backend's, put into the body. Keys, limits and logs go by the client's.
    /// Default `{}`.
    pub aliases: Field<Entries<String>>,
    /// Clusters to try, in order, when this one has no backend to offer. Default `[]`.
    pub fallback: List<String>,
    /// Whether a request must ask for a stream. Default `any`.
    pub streaming: Field<Streaming>,
    /// Ask engines for the usage frame of a stream; cut it out again for clients that did not ask. Default `true`.
    pub include_usage: Field<bool>,
    /// Largest body on this route, at most 1GiB; beyond it 413. Default: server.request.body_bytes.
    pub body_bytes: Field<Size>,
    /// Stream settings of this route; what is left out is as in `stream`.
    pub stream: Field<Stream>,
    /// Time budgets of this route; what is left out is as in its cluster's.
    pub timeouts: Field<Timeouts>,
    /// Bounds on what a body may ask, 400 beyond them.
    pub guard: Field<Guard>,
}

/// Which requests.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// One path or several, compared as they stand; a segment "*" stands for exactly one. Required.
    pub path: Field<OneOrMany>,
    /// The client's model name; "*" matches any run of characters. Quote what begins with "*". Default: every
    /// model, and none.
    pub model: Field<String>,
    /// Methods; HEAD comes with GET. Default: GET and POST.
    pub methods: List<String>,
    /// Headers and the values they must have; "*" matches any run of characters. Default `{}`.
    pub headers: Field<Entries<String>>,
}

/// A fixed answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Respond {
    /// HTTP status, 200 to 599. Default `200`.
    pub status: Field<Count>,
    /// Content type of the body. Default `text/plain`.
    pub content_type: Field<String>,
    /// The body, at most 64KiB. Default `""`.
    pub body: Field<String>,
    /// Whether it is for clients with an API key only. Default `false`: everybody gets it.
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
    /// Largest max_tokens, by whichever of its names; 1 or more. Default: no bound.
    pub max_tokens: Field<Count>,
    /// Largest n, the number of answers, 1 or more. Default: no bound.
    pub n: Field<Count>,
    /// Largest best_of, 1 or more. Default: no bound.
    pub best_of: Field<Count>,
    /// Most prompts in one request, 1 or more. Default: no bound.
    pub prompts: Field<Count>,
    /// Largest logprobs, by whichever of its names. Default: no bound.
    pub logprobs: Field<Count>,
    /// Most tools in one request. Default: no bound.
    pub tools: Field<Count>,
    /// Levels of the deepest JSON schema, 1 or more. Default: no bound.
    pub schema_depth: Field<Count>,
    /// Fields that are refused: a name at any depth, or a JSON pointer, as in `/metadata/internal`. Default `[]`.
    pub denied: List<String>,
}

/// How streams are kept flowing, bounded and ended.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stream {
    /// A comment goes to the client after this much silence. Default `15s`.
    pub heartbeat: Field<OrNever<Duration>>,
    /// A 200 of the engine waits this long for its first event before it is passed on: until then another backend
    /// can take over, and an error is a real status. Default `5s`.
    pub hold_headers: Field<Duration>,
    /// After this much silence of an engine that has not even answered, send the client 200 and go on with
    /// heartbeats. Default `never`.
    pub early_headers: Field<OrNever<Duration>>,
    /// Response bytes a stream may hold in the gateway, 16KiB to 16MiB. Default `64KiB`.
    pub window: Field<Size>,
    /// An event is held until it is whole up to this size, 1KiB to the window; a larger one passes in pieces.
    /// Default `16KiB`.
    pub event_hold: Field<Size>,
    /// A client that takes no byte for this long is cut, and its engine freed. Default `30s`.
    pub write_stall: Field<Duration>,
    /// What it means when a client closes its sending side before its answer is over. Default `abort`.
    pub half_close: Field<HalfClose>,
    /// How the body ends after an error event. Default `clean`.
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
    /// TCP and TLS, for each attempt; then 504 connect_timeout. Default `5s`.
    pub connect: Field<Duration>,
    /// Request sent to first data event of a stream, for each attempt; then 504 first_event_timeout. Default
    /// `120s`.
    pub first_event: Field<Duration>,
    /// Request sent to the whole answer of a call that does not stream; then 504 unary_timeout. Default `10m`.
    pub unary: Field<Duration>,
    /// No data event for this long after the first; then an error event idle_timeout. Comments do not count.
    /// Default `60s`.
    pub idle: Field<Duration>,
    /// From arrival to the end; then 504 total_timeout, or an error event. Default `30m`.
    pub total: Field<Duration>,
    /// Waiting for a free slot; then 503 queue_timeout. Default `30s`.
    pub queue: Field<Duration>,
}
