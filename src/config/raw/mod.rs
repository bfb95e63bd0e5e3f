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
mod toward;

use schemars::JsonSchema;
use serde::Deserialize;

pub use cluster::*;
pub(super) use field::FIELD;
pub use field::{Entries, Field, List, OneOrMany};
pub use rest::*;
pub use route::*;
pub use server::*;
pub use toward::*;

/// The configuration of a streamgate gateway.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// How the process runs: listeners, bounds of what clients may send, memory, shutdown. Changing this part needs
    /// a restart or an upgrade.
    pub server: Field<Server>,
    /// Where log lines go.
    pub log: Field<Log>,
    /// Traces, for an OpenTelemetry collector.
    pub telemetry: Field<Telemetry>,
    /// How streams are kept flowing, bounded and ended; a route may override any of it.
    pub stream: Field<Stream>,
    /// Time budgets; a cluster or a route may override any of them. Each has to be more than nothing.
    pub timeouts: Field<Timeouts>,
    /// Groups of backends that serve the same thing, by a name of your choice.
    pub clusters: Field<Entries<Cluster>>,
    /// Which requests go where. The first match wins; a path that stands in no route is answered 404. Required: one
    /// or more.
    pub routes: List<Route>,
    /// The session id of a conversation: where it is read, where it is put.
    pub session: Field<Session>,
    /// API keys of clients. Default `[]`: everybody who reaches the gateway may use it.
    pub keys: List<Key>,
    /// Limits that are not those of one key, and where limits are counted.
    pub limits: Field<Limits>,
    /// Cross-origin requests of browsers.
    pub cors: Field<Cors>,
    /// Simulated engines inside the process, for demos and load tests without a GPU. Default `[]`.
    pub sim: List<Sim>,
}
