//! The `server` and `log` parts.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Field, List};
use crate::config::units::{Count, Duration, OrAuto, OrNever, Percent, Size};

/// How the process runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Where clients are served. Required: one or more.
    pub listen: List<Listen>,
    /// The listener of operators: health, metrics, status, drains, the live page.
    pub admin: Field<Admin>,
    /// Worker threads, 1 to 1024. Default `auto`: the cores this process may use.
    pub threads: Field<OrAuto<Count>>,
    /// Memory this process may have, 64MiB or more; near it, clients are served less. Default `auto`: the smallest
    /// limit of its control groups, else what the machine has.
    pub memory: Field<OrAuto<Size>>,
    /// How many client connections are kept.
    pub connections: Field<Connections>,
    /// What a client may send, and how fast.
    pub request: Field<Request>,
    /// Networks (CIDR) and addresses whose X-Forwarded-For or PROXY header is believed; "unix:" for unix sockets.
    /// Default `[]`: nobody.
    pub trusted_proxies: List<String>,
    /// How SIGTERM ends the process.
    pub shutdown: Field<Shutdown>,
    /// Path of a private unix socket, over which a successor takes the listeners over. Default: none, and no
    /// upgrade.
    pub upgrade_socket: Field<String>,
    /// Idle connections to backends.
    pub pool: Field<Pool>,
}

/// One client listener.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// `127.0.0.1:8080`, `"[::]:8080"`, or `unix:/run/streamgate/http.sock`. Required.
    pub address: Field<String>,
    /// HTTP/2 without TLS, for clients that begin with its preface; the others get HTTP/1.1. Not together with tls.
    /// Default `false`.
    pub h2c: Field<bool>,
    /// Mode of a unix socket, quoted: who may connect. Default `"0660"`.
    pub mode: Field<String>,
    /// TLS 1.2 and later, HTTP/2 by ALPN. Default: none, plain HTTP.
    pub tls: Field<ListenTls>,
    /// Connections begin with a PROXY header of a trusted proxy. Default `false`.
    pub proxy_protocol: Field<bool>,
    /// Answer every request with a redirect (308) to this https port. Not together with tls. Default: none.
    pub redirect_https: Field<Count>,
}

/// TLS toward clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListenTls {
    /// Certificates, chosen by server name; the first is for all other names. The files are read again at each
    /// reload. Required: one or more.
    pub certificates: List<Certificate>,
    /// Authorities of client certificates, a PEM file, read again at each reload; no client is served without a
    /// certificate of theirs then. Default: none, no client needs one.
    pub client_ca: Field<String>,
}

/// A certificate and its key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Certificate {
    /// PEM file of the chain: the server's certificate first. Required.
    pub cert: Field<String>,
    /// PEM file of the private key. Required.
    pub key: Field<String>,
}

/// The listener of operators.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// Its address: a loopback address, `unix:/run/streamgate/admin.sock`, or any other address together with a
    /// token. Default `127.0.0.1:9090`.
    pub listen: Field<String>,
    /// File with the bearer token that all but /, /livez, /readyz and /metrics ask for. It is read again at each
    /// reload. Default: none, no token is asked for.
    pub token_file: Field<String>,
}

/// How many client connections are kept.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Connections {
    /// Client connections open at a time, 1 to 1000000; one more is told 503. Default `20000`.
    pub max: Field<OrNever<Count>>,
    /// The same from one address, or one /64 of IPv6. Default `never`.
    pub per_ip: Field<OrNever<Count>>,
}

/// What a client may send, and how fast.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// Longest request target, 64B to 1MiB; beyond it 414. Default `8KiB`.
    pub uri_bytes: Field<Size>,
    /// Largest head, 1KiB to 1MiB; beyond it 431. Default `32KiB`.
    pub header_bytes: Field<Size>,
    /// Most header lines, 10 to 256; beyond it 431. Default `100`.
    pub header_count: Field<Count>,
    /// Time for the whole head, beyond it 408; also for a TLS handshake and for a PROXY header. Default `10s`.
    pub header_timeout: Field<Duration>,
    /// Largest body, at most 1GiB; beyond it 413. A route may say otherwise. Default `32MiB`.
    pub body_bytes: Field<Size>,
    /// Time for the whole body; beyond it 408. No backend is connected before it is there. Default `60s`.
    pub body_timeout: Field<Duration>,
    /// How long an idle client connection is kept. Default `75s`.
    pub keepalive: Field<Duration>,
    /// All request bodies held at once, not less than body_bytes; beyond it 503. Default `auto`: a quarter of the
    /// memory this process may use.
    pub buffered_bytes: Field<OrAuto<Size>>,
}

/// How SIGTERM ends the process.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shutdown {
    /// How long the gateway still accepts after SIGTERM, while /readyz says 503 already. Default `5s`.
    pub lame_duck: Field<Duration>,
    /// After the lame duck: how long running requests may go on. Default `10m`.
    pub drain: Field<Duration>,
}

/// Idle connections to backends.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// Idle connections to backends that are kept, all clusters together, 1 to 1000000. Default `1024`.
    pub max_idle: Field<Count>,
}

/// Where log lines go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Level of the gateway's own log, on standard error. Default `info`.
    pub level: Field<Level>,
    /// Form of the log lines and access lines. Default `text`.
    pub format: Field<Format>,
    /// Access lines, one for each exchange: stdout, stderr, none, or the path of a file, with a "/" in it. SIGUSR1
    /// opens the file anew. Default `stdout`.
    pub access: Field<String>,
    /// Share of the exchanges that went well that have a line; what went wrong always has one. Default `100%`.
    pub access_sample: Field<Percent>,
    /// One JSON line for each exchange that an engine worked on, for bills: none, or the path of a file, with a "/"
    /// in it. Default `none`.
    pub usage: Field<String>,
    /// When the usage file is rotated.
    pub usage_rotate: Field<Rotate>,
    /// Tell in the log of streams whose first token took longer. Default `never`.
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
    /// The file is rotated at this size, 64KiB or more. Default `256MiB`.
    pub size: Field<Size>,
    /// How many old files are kept, 1 to 1000. Default `8`.
    pub keep: Field<Count>,
}
