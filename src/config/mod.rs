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
mod change;
mod check;
mod cluster;
mod environment;
mod error;
mod expand;
mod file;
mod groups;
mod key;
mod later;
mod place;
pub mod raw;
mod reader;
mod schema;
mod server;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;
mod tls;
mod tree;
pub mod units;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderName;

pub use change::{Change, Kind as ChangeKind, Version, changes, is_settled_at_start, needs_restart};
pub use cluster::{
    Active, Affinity, AffinityBy, Auth, Backend, Balance, Cluster, Credential, Discover, Health, Passive,
    Profile, Retry, Scrape,
};
pub use environment::Environment;
#[cfg(test)]
pub(crate) use environment::machine;
pub use error::{Problem, Problems};
pub use file::{load, read};
pub use groups::{Group, GroupVersion, bounded_groups};
pub use key::{Key, KeyLimits, Limits, is_name};
pub use schema::schema_json;
pub use server::{
    AccessTarget, Address, Admin, AdminListen, Certificate, Listen, Log, LogFormat, NamedFile, RequestLimits,
    Rotate, Server, ServerTls, Shutdown, Transport, UsageTarget,
};
pub use store::{Password, Redis, Store};
pub use telemetry::Telemetry;
pub use tls::{Authorities, ServerName, Tls, Trust};
pub use view::view;

use crate::cors::Cors;
use crate::guard::Guard;
use crate::openai::Wanted;
use crate::session_map::SessionMap;

/// A configuration that may be put in force, and what there is to say about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What works but is hardly meant.
    pub warnings: Vec<Problem>,
    /// The text that it was read from.
    pub text: Text,
}

impl Loaded {
    /// To be compared with another.
    pub fn version(&self) -> Version<'_> {
        Version { config: &self.config, text: &self.text }
    }
}

/// The text of a configuration file. It may hold secrets, and is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Arc<str>);

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Text({} bytes)", self.0.len())
    }
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
        report.settle(config, text)
    }

    /// The same for bytes as they come from a file.
    ///
    /// # Errors
    /// Also when the bytes are not UTF-8, or more than 32 MiB.
    pub fn parse_bytes(bytes: &[u8], environment: &Environment) -> Result<Loaded, Problems> {
        Self::parse(tree::decode(bytes)?, environment)
    }
}

/// One configuration file, validated. Two of them are equal when nothing that is done differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How the process runs; fixed from start to exit.
    pub server: Server,
    /// Where log lines go.
    pub log: Log,
    /// Where traces go.
    pub telemetry: Telemetry,
    /// Groups of backends, in the order of the file.
    pub clusters: Vec<Cluster>,
    /// Routes, in the order of the file: the first that matches wins.
    pub routes: Vec<Route>,
    /// Where session ids are read and put.
    pub session: SessionMap,
    /// What is looked for in bodies: for the session, and for the guards of all routes.
    pub wanted: Wanted,
    /// API keys, in the order of the file; none = everyone may use the gateway.
    pub keys: Vec<Arc<Key>>,
    /// Limits that are no key's.
    pub limits: Limits,
    /// Pages that may read our answers.
    pub cors: Cors,
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

/// Which requests, and where they go.
#[derive(Debug, Clone, PartialEq)]
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
    /// Tried in order when the first cluster has no backend to offer.
    pub fallback: Vec<Fallback>,
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
    /// Time budgets of this route at its first cluster.
    pub timeouts: Timeouts,
    /// What a body may ask.
    pub guard: Option<Guard>,
}

impl Route {
    /// The indices of its clusters and its time budgets at each, in the order in which they are tried; none for
    /// a fixed answer.
    pub fn clusters(&self) -> impl Iterator<Item = (usize, &Timeouts)> {
        let first = match self.action {
            Action::Proxy(cluster) => Some((cluster, &self.timeouts)),
            Action::Respond(_) => None,
        };
        first.into_iter().chain(self.fallback.iter().map(|fallback| (fallback.cluster, &fallback.timeouts)))
    }

    /// Whether it names this model of the client's itself, and not by a pattern.
    pub fn names(&self, model: &str) -> bool {
        self.aliases.contains_key(model)
            || self.model.as_deref() == Some(model)
            || self.models.iter().any(|listed| listed == model)
    }
}

/// Another cluster of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Its index in [`Config::clusters`].
    pub cluster: usize,
    /// Time budgets of the route there.
    pub timeouts: Timeouts,
}

/// What a route does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send it to the cluster at this index of [`Config::clusters`].
    Proxy(usize),
    /// Answer it here.
    Respond(Fixed),
}

/// A fixed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// HTTP status, 200 to 599.
    pub status: u16,
    /// Value of `Content-Type`.
    pub content_type: String,
    /// The body.
    pub body: String,
    /// It is for those who have a key. It never is where there are none.
    pub needs_key: bool,
}

/// Whether a request must ask for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// Either way.
    Any,
    /// `stream: true` or 400.
    Required,
}
