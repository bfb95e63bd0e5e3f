//! The `telemetry`, `session`, `keys`, `limits`, `cors` and `sim` parts.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Field, List};
use crate::config::units::{Count, Duration, OrNever, Percent, Rate, Size};

/// Traces.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Address of an OTLP collector's gRPC port, as in `http://127.0.0.1:4317`; no TLS. Default: none, no traces.
    pub otlp: Field<String>,
    /// Share of exchanges that are traced. Default `1%`.
    pub sample: Field<Percent>,
}

/// The session id: where it is read, where it is put.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Places to look for the id, as header:NAME, cookie:NAME or body:/POINTER, at most 16; the first that has a
    /// usable one wins. Default `["header:X-Session-Id", "cookie:session_id", "body:/session_id"]`.
    pub from: List<String>,
    /// Places to add the id where it is absent, at most 16; what a client sent is never overwritten. Default `[]`.
    pub to: List<String>,
    /// What to do with a request for a cluster that has no id. Default `pass`.
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
    /// Name of the key in logs and limits, 1 to 128 bytes, unique. Keep it when the key is renewed. Required.
    pub name: Field<String>,
    /// SHA-256 of the whole key in hex, quoted; `streamgate key new` makes a key and this line. Required.
    pub sha256: Field<String>,
    /// Models it may use, by the client's name; "*" matches any run of characters. Default: every model.
    pub models: List<String>,
    /// How much it may use.
    pub limits: Field<KeyLimits>,
}

/// The limits of one key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeyLimits {
    /// Requests of the key; all that a period allows may come at once. Default `never`.
    pub requests: Field<OrNever<Rate>>,
    /// Tokens of prompts and answers, reserved by an estimate and settled by what was used. Default `never`.
    pub tokens: Field<OrNever<Rate>>,
    /// Requests of the key at once, in this gateway. Default `never`.
    pub concurrent: Field<OrNever<Count>>,
    /// Answers that were given up before their first token. Default `never`.
    pub early_cancels: Field<OrNever<Rate>>,
    /// Open connections on which the key was used. Default `never`.
    pub connections: Field<OrNever<Count>>,
}

/// Limits for all keys together.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Where requests and tokens of keys are counted: memory, redis://HOST:PORT, or rediss://HOST:PORT with TLS; a
    /// user and a database may stand in it. Default `memory`.
    pub store: Field<String>,
    /// Environment variable that holds the password of the store. Default: none, no password.
    pub store_password_env: Field<String>,
    /// File that holds the password of the store. It is read anew for each connection. Default: none, no password.
    pub store_password_file: Field<String>,
    /// File of authorities in PEM form that may vouch for a store with TLS. It is read anew for each connection.
    /// Default: those that the system trusts.
    pub store_ca: Field<String>,
    /// For each client address, or each /64 of IPv6, whatever the key.
    pub per_ip: Field<PerIp>,
}

/// Limits for each client address.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerIp {
    /// Requests of the address; all that a period allows may come at once. Default `never`.
    pub requests: Field<OrNever<Rate>>,
}

/// Cross-origin requests of browsers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// Origins whose pages are let in, each in full, as in `"https://chat.example.com"`. Default `[]`: no other
    /// page.
    pub origins: List<String>,
}

/// A simulated engine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sim {
    /// Name in its answers, unique. Default: sim-1 for the first, and so on.
    pub name: Field<String>,
    /// The engine's address, as in `127.0.0.1:9101`. Required.
    pub listen: Field<String>,
    /// The model it serves. Default `sim-model`.
    pub model: Field<String>,
    /// Request read to first data event. Default `200ms`.
    pub first_event: Field<Duration>,
    /// Time between two tokens. Default `20ms`.
    pub inter_token: Field<Duration>,
    /// Tokens of an answer when the request names no max_tokens, 1 to 1000000. Default `120`.
    pub tokens: Field<Count>,
    /// Size of one event, at most 16MiB. Default `230B`.
    pub event_bytes: Field<Size>,
    /// Send the 200 before the prefill, as vLLM does. Default `true`.
    pub early_200: Field<bool>,
    /// How long an idle connection is kept. Default `5s`.
    pub keepalive: Field<Duration>,
    /// Faults to play, as in `[reset_at=5]`. Default `[]`.
    pub faults: List<String>,
    /// Tokens written at once, 1 to 10000. Default `1`.
    pub batch: Field<Count>,
}
