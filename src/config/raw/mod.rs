//! The file as the user writes it: a serde mirror of the whole schema.
//!
//! Nothing is decided here: no defaults, no limits, no cross checks. The doc comments are what
//! `streamgate schema` shows in an editor, so they speak to the one who writes the file. Every
//! setting is a [`Field`]: absent, wrong, or set.

mod cluster;
mod field;
mod rest;
mod route;
mod server;

use schemars::JsonSchema;
use serde::Deserialize;

pub use cluster::*;
pub(super) use field::FIELD;
pub use field::{Entries, Field, List, OneOrMany};
pub use rest::*;
pub use route::*;
pub use server::*;

/// The configuration of a streamgate gateway.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// How the process runs. Changing this part needs a restart.
    pub server: Field<Server>,
    /// Where log lines go.
    pub log: Field<Log>,
    /// Traces.
    pub telemetry: Field<Telemetry>,
    /// How streams are kept flowing, bounded and ended; a route may override any of it.
    pub stream: Field<Stream>,
    /// Time budgets; a cluster or a route may override any of them.
    pub timeouts: Field<Timeouts>,
    /// Groups of backends that serve the same thing, by name.
    pub clusters: Field<Entries<Cluster>>,
    /// Which requests go where. The first match wins.
    pub routes: List<Route>,
    /// The session id: where it is read, where it is put.
    pub session: Field<Session>,
    /// API keys. None: everyone who reaches the gateway may use it.
    pub keys: List<Key>,
    /// Limits for all keys together.
    pub limits: Field<Limits>,
    /// Cross-origin requests of browsers.
    pub cors: Field<Cors>,
    /// Simulated engines inside the process, for demos and load tests without a GPU.
    pub sim: List<Sim>,
}
