//! The `server` and `log` parts.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Field, List};
use crate::config::units::{Count, Duration, OrAuto, OrNever, Percent, Size};

/// How the process runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Where clients are served; at least one.
    pub listen: List<Listen>,
    /// The listener of operators.
    pub admin: Field<Admin>,
    /// Worker threads. Default auto: the cores this process may use.
    pub threads: Field<OrAuto<Count>>,
    /// Memory this process may have; near it, clients are served less. Default auto: what its control group or the
    /// machine has.
    pub memory: Field<OrAuto<Size>>,
    /// How many client connections are kept.
    pub connections: Field<Connections>,
    /// What a client may send, and how fast.
    pub request: Field<Request>,
    /// Networks (CIDR) and addresses whose X-Forwarded-For or PROXY header is believed; "unix:" for unix sockets.
    pub trusted_proxies: List<String>,
    /// How SIGTERM ends the process.
    pub shutdown: Field<Shutdown>,
    /// Path of a private unix socket for binary upgrade.
    pub upgrade_socket: Field<String>,
    /// Idle connections to backends.
    pub pool: Field<Pool>,
}

/// One client listener.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// `127.0.0.1:8080`, `[::]:8080`, or `unix:/run/streamgate/http.sock`.
    pub address: Field<String>,
    /// HTTP/2 without TLS, for clients that begin with its preface; the others get HTTP/1.1. Default false.
    pub h2c: Field<bool>,
    /// Mode of a unix socket, quoted. Default "0660".
    pub mode: Field<String>,
    /// TLS 1.2 and later, HTTP/2 by ALPN.
    pub tls: Field<ListenTls>,
    /// Connections begin with a PROXY header of a trusted proxy. Default false.
    pub proxy_protocol: Field<bool>,
    /// Answer every request with a redirect to this https port.
    pub redirect_https: Field<Count>,
}

/// TLS toward clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListenTls {
    /// Certificates, chosen by server name; the first is for all other names.
    pub certificates: List<Certificate>,
    /// Authorities of client certificates, a PEM file; no client is served without one then.
    pub client_ca: Field<String>,
}

/// A certificate and its key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Certificate {
    /// PEM file of the chain.
    pub cert: Field<String>,
    /// PEM file of the key.
    pub key: Field<String>,
}

/// The listener of operators.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// Its address. Default 127.0.0.1:9090.
    pub listen: Field<String>,
    /// File with the bearer token for POST; without one only a loopback address is accepted.
    pub token_file: Field<String>,
}

/// How many client connections are kept.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Connections {
    /// In all. Default 20000.
    pub max: Field<OrNever<Count>>,
    /// From one address, or one /64 of IPv6. Default never.
    pub per_ip: Field<OrNever<Count>>,
}

/// What a client may send, and how fast.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// Longest request target. Default 8KiB.
    pub uri_bytes: Field<Size>,
    /// Largest head. Default 32KiB.
    pub header_bytes: Field<Size>,
    /// Most header fields. Default 100.
    pub header_count: Field<Count>,
    /// Time for the whole head. Default 10s.
    pub header_timeout: Field<Duration>,
    /// Largest body. Default 32MiB; a route may say otherwise.
    pub body_bytes: Field<Size>,
    /// Time for the whole body. Default 60s.
    pub body_timeout: Field<Duration>,
    /// How long an idle client connection is kept. Default 75s.
    pub keepalive: Field<Duration>,
    /// All request bodies held at once. Default auto: a quarter of the memory this process may use.
    pub buffered_bytes: Field<OrAuto<Size>>,
}

/// How SIGTERM ends the process.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shutdown {
    /// Not ready any more, but still accepting. Default 5s.
    pub lame_duck: Field<Duration>,
    /// After the lame duck: how long running requests may go on. Default 10m.
    pub drain: Field<Duration>,
}

/// Idle connections to backends.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// Kept, all clusters together. Default 1024.
    pub max_idle: Field<Count>,
}

/// Where log lines go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Level of the gateway's own log, on stderr. Default info.
    pub level: Field<Level>,
    /// Form of the log lines. Default text.
    pub format: Field<Format>,
    /// Access lines: stdout, stderr, none, or a file path. Default stdout.
    pub access: Field<String>,
    /// Share of successes that are logged; failures always are. Default 100%.
    pub access_sample: Field<Percent>,
    /// One JSON line for each exchange, for billing: none, or a file path. Default none.
    pub usage: Field<String>,
    /// When the usage file is rotated.
    pub usage_rotate: Field<Rotate>,
    /// Log streams whose first token took longer. Default never.
    pub slow: Field<OrNever<Duration>>,
}

/// Log levels, from nothing to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing.
    Off,
    /// What an operator must look at.
    Error,
    /// What an operator may look at.
    Warn,
    /// One line an event of note.
    Info,
    /// For the one who searches a fault.
    Debug,
    /// Everything.
    Trace,
}

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// key=value pairs.
    Text,
    /// One JSON object a line.
    Json,
}

/// When a file is rotated.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rotate {
    /// At this size. Default 256MiB.
    pub size: Field<Size>,
    /// Old files kept. Default 8.
    pub keep: Field<Count>,
}
