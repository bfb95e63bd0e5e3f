//! The `telemetry`, `session`, `keys`, `limits`, `cors` and `sim` parts.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Field, List};
use crate::config::units::{Count, Duration, OrNever, Percent, Rate, Size};

/// Traces.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Address of an OTLP collector.
    pub otlp: Field<String>,
    /// Share of exchanges that are traced. Default 1%.
    pub sample: Field<Percent>,
}

/// The session id: where it is read, where it is put.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Places to look for it, as header:NAME, cookie:NAME or body:/POINTER; the first present wins.
    pub from: List<String>,
    /// Places to add it where it is absent.
    pub to: List<String>,
    /// What to do without one. Default pass.
    pub missing: Field<Missing>,
}

/// What to do without a session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Serve all the same.
    Pass,
    /// Answer 400.
    Reject,
}

/// One API key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Key {
    /// Name in logs.
    pub name: Field<String>,
    /// SHA-256 of the whole key in hex, quoted; `streamgate key new` makes one.
    pub sha256: Field<String>,
    /// Models it may use, by the client's name; "*" matches any run of characters. Default: every model.
    pub models: List<String>,
    /// Its limits.
    pub limits: Field<KeyLimits>,
}

/// The limits of one key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeyLimits {
    /// Requests.
    pub requests: Field<OrNever<Rate>>,
    /// Tokens.
    pub tokens: Field<OrNever<Rate>>,
    /// Requests at once.
    pub concurrent: Field<OrNever<Count>>,
    /// Streams given up before their first token.
    pub early_cancels: Field<OrNever<Rate>>,
    /// Connections.
    pub connections: Field<OrNever<Count>>,
}

/// Limits for all keys together.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Where counts are kept: memory, redis://HOST:PORT, or rediss://HOST:PORT with TLS; a user and a database may stand in it.
    /// Default memory.
    pub store: Field<String>,
    /// Environment variable that holds the password of the store.
    pub store_password_env: Field<String>,
    /// File that holds the password of the store. It is read anew for each connection.
    pub store_password_file: Field<String>,
    /// File of authorities in PEM form that may vouch for a store with TLS. It is read anew for each connection.
    /// Default: those that the system trusts.
    pub store_ca: Field<String>,
    /// For each client address.
    pub per_ip: Field<PerIp>,
}

/// Limits for each client address.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerIp {
    /// Requests. Default never.
    pub requests: Field<OrNever<Rate>>,
}

/// Cross-origin requests of browsers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// Origins that are let in, each in full.
    pub origins: List<String>,
}

/// A simulated engine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sim {
    /// Name in its answers. Default: sim-1 for the first, and so on.
    pub name: Field<String>,
    /// Its address.
    pub listen: Field<String>,
    /// The model it serves. Default sim-model.
    pub model: Field<String>,
    /// Request read to first data event. Default 200ms.
    pub first_event: Field<Duration>,
    /// Between two events. Default 20ms.
    pub inter_token: Field<Duration>,
    /// Tokens of an answer when the request names no max_tokens. Default 120.
    pub tokens: Field<Count>,
    /// Size of one event. Default 230B.
    pub event_bytes: Field<Size>,
    /// Send the 200 before the prefill, as vLLM does. Default true.
    pub early_200: Field<bool>,
    /// How long an idle connection is kept. Default 5s.
    pub keepalive: Field<Duration>,
    /// Faults to play.
    pub faults: List<String>,
    /// Tokens written at once. Default 1.
    pub batch: Field<Count>,
}
