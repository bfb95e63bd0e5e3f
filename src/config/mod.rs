//! The typed configuration: what the rest of the gateway reads.
//!
//! The file a user writes becomes a tree that knows its lines (`tree`), is read into [`raw`], a serde
//! mirror of the schema (`reader`), and turned into these types (`build`), in one pass that gathers
//! every problem with its place. Only [`load`] and [`Environment::detect`] look at the machine; nothing
//! resolves names or looks at a clock. Defaults and overrides are already folded in, so that a [`Route`]
//! carries the very numbers its exchanges live by.
//!
//! The one hard idea: a setting is resolved once, at load. A route's [`Stream`] is the global one
//! with the route's overrides; its [`Timeouts`] are the global ones, overridden by its cluster,
//! overridden by the route. No code on the request path asks "which level wins?".

mod build;
mod check;
mod environment;
mod error;
mod expand;
mod file;
mod later;
mod place;
pub mod raw;
mod reader;
mod schema;
mod server;
#[cfg(test)]
mod tests;
mod tls;
mod tree;
pub mod units;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderName;

pub use environment::Environment;
pub use error::{Problem, Problems};
pub use file::load;
pub use place::Inactive;
pub use schema::schema_json;
pub use server::{
    AccessTarget, Certificate, Listen, Log, LogFormat, RequestLimits, Server, Shutdown, Transport,
};
pub use tls::{Authorities, ServerName, Tls, Trust};

use crate::header_rules::Rules;
use crate::secret::Secret;
use crate::session_map::SessionMap;

/// A configuration that may be put in force, and what there is to say about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Settings that were accepted but do nothing in this release.
    pub inactive: Vec<Inactive>,
    /// What works but is hardly meant.
    pub warnings: Vec<Problem>,
}

impl Config {
    /// Parses and checks the text of a configuration file.
    ///
    /// # Errors
    /// Every problem of the text at once; of a text that is no YAML, the first.
    pub fn parse(text: &str, environment: &Environment) -> Result<Loaded, Problems> {
        let mut tree = tree::parse(text)?;
        expand::expand(&mut tree, environment.variable);
        let report = place::Report::default();
        let root = place::At::root(&report, &tree);
        let mut config = None;
        if check::check(&root) {
            let file: raw::File = reader::read(&root);
            config = Some(build::config(&file, &root, environment));
            later::check(&root);
        }
        report.settle(config)
    }

    /// The same for bytes as they come from a file.
    ///
    /// # Errors
    /// Also when the bytes are not UTF-8, or more than 4 MiB.
    pub fn parse_bytes(bytes: &[u8], environment: &Environment) -> Result<Loaded, Problems> {
        Self::parse(tree::decode(bytes)?, environment)
    }
}

/// One configuration file, validated.
#[derive(Debug, Clone)]
pub struct Config {
    /// How the process runs; fixed from start to exit.
    pub server: Server,
    /// Where log lines go.
    pub log: Log,
    /// Groups of backends, in the order of the file.
    pub clusters: Vec<Cluster>,
    /// Routes, in the order of the file: the first that matches wins.
    pub routes: Vec<Route>,
    /// Where session ids are read and put.
    pub session: SessionMap,
    /// Simulated engines to start inside this process.
    pub sim: Vec<crate::sim::Settings>,
}

/// How a stream is kept flowing, bounded and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// A comment goes to the client after this much silence; `None` = never.
    pub heartbeat: Option<Duration>,
    /// An upstream 200 waits this long for its first data event before it is committed.
    pub hold_headers: Duration,
    /// After this much silence with no upstream answer at all, commit 200; `None` = never.
    pub early_headers: Option<Duration>,
    /// Response bytes a stream may hold in the gateway; also sizes both sockets' buffers.
    pub window: usize,
    /// An event is held until whole up to this many bytes; a larger one streams through.
    pub event_hold: usize,
    /// A client whose side acknowledges no byte for this long is cut.
    pub write_stall: Duration,
    /// What a client's FIN means while its answer is unfinished.
    pub half_close: HalfClose,
    /// How the body ends after an error event.
    pub failure_end: FailureEnd,
}

/// What a client's FIN means while its answer is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfClose {
    /// The client is gone: cancel.
    Abort,
    /// The client only finished sending: serve it to the end.
    Finish,
}

/// How a body ends after an error event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureEnd {
    /// With its proper HTTP end.
    Clean,
    /// With broken framing.
    Abort,
}

/// Time budgets, resolved for one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP and TLS, per attempt.
    pub connect: Duration,
    /// Request sent -> first data event of a stream, per attempt.
    pub first_event: Duration,
    /// Request sent -> whole answer of a call that does not stream, per attempt.
    pub unary: Duration,
    /// No data event for this long after the first.
    pub idle: Duration,
    /// From arrival to the end of the exchange.
    pub total: Duration,
    /// Waiting for a free slot.
    pub queue: Duration,
}

/// Backends that serve the same thing.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Its name in the file.
    pub name: Arc<str>,
    /// Wire particulars of its engines.
    pub profile: Profile,
    /// Never empty.
    pub backends: Vec<Backend>,
    /// Attempts in all for one exchange: 1 or 2.
    pub attempts: u32,
    /// What becomes of the client's credentials.
    pub auth: Auth,
    /// What is removed from and set in the head that goes to a backend.
    pub headers: Rules,
    /// How long an idle upstream connection is kept.
    pub keepalive: Duration,
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
    /// Takes no new work.
    pub drain: bool,
}

/// Which requests, and where they go.
#[derive(Debug, Clone)]
pub struct Route {
    /// Label in metrics and log.
    pub name: Arc<str>,
    /// Raw paths; a trailing `/*` stands for exactly one more segment.
    pub paths: Vec<String>,
    /// Glob on the client's model name (`*` matches any run of characters); `None` = any.
    pub model: Option<String>,
    /// Methods in upper case; empty = the default of GET and POST.
    pub methods: Vec<String>,
    /// Headers and globs on their values: each must match a line of the request.
    pub headers: Vec<(HeaderName, String)>,
    /// What the route does.
    pub action: Action,
    /// What `GET /v1/models` lists for this route.
    pub models: Vec<String>,
    /// The client's model name -> the backend's.
    pub aliases: BTreeMap<String, String>,
    /// Whether a request must ask for a stream.
    pub streaming: Streaming,
    /// Ask for the usage frame on streams, and cut it out for clients that did not.
    pub include_usage: bool,
    /// Largest body in bytes.
    pub body_bytes: u64,
    /// Stream settings of this route.
    pub stream: Stream,
    /// Time budgets of this route.
    pub timeouts: Timeouts,
}

/// What a route does with a request.
#[derive(Debug, Clone)]
pub enum Action {
    /// Send it to the cluster at this index of [`Config::clusters`].
    Proxy(usize),
    /// Answer it here.
    Respond(Fixed),
}

/// A fixed answer.
#[derive(Debug, Clone)]
pub struct Fixed {
    /// HTTP status, 200 to 599.
    pub status: u16,
    /// Value of `Content-Type`.
    pub content_type: String,
    /// The body.
    pub body: String,
}

/// Whether a request must ask for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// Either way.
    Any,
    /// `stream: true` or 400.
    Required,
}
