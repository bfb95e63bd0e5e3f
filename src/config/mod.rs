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
mod route;
mod schema;
mod server;
mod store;
mod stream;
mod telemetry;
#[cfg(test)]
mod tests;
mod tls;
mod tree;
pub mod units;
mod view;

use std::sync::Arc;

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
pub use route::{Action, Fallback, Fixed, Route, Streaming};
pub use schema::schema_json;
pub use server::{
    AccessTarget, Address, Admin, AdminListen, Certificate, Listen, Log, LogFormat, NamedFile, RequestLimits,
    Rotate, Server, ServerTls, Shutdown, Transport, UsageTarget,
};
pub use store::{Password, Redis, Store};
pub use stream::{FailureEnd, HalfClose, Stream, Timeouts};
pub use telemetry::Telemetry;
pub use tls::{Authorities, ServerName, Tls, Trust};
pub use view::view;

use crate::cors::Cors;
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
