//! The process: its listeners, its bounds, its log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::forwarded::Trusted;
use crate::secret::Secret;

/// The `server` part: listeners, threads and process-wide bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where clients are served. Never empty.
    pub listen: Vec<Listen>,
    /// The admin listener.
    pub admin: Admin,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Bytes of memory that the process may have, unless a control group of its has less.
    pub memory_bytes: u64,
    /// Client connections at a time, at least 1; `None` = any number.
    pub connections_max: Option<usize>,
    /// The same from one address, at least 1; `None` = any number.
    pub connections_per_ip: Option<usize>,
    /// Proxies that are believed when they say for whom they ask.
    pub trusted_proxies: Trusted,
    /// What a client may send, and how fast.
    pub request: RequestLimits,
    /// How SIGTERM ends the process.
    pub shutdown: Shutdown,
    /// Where a successor asks for the listening sockets; `None` = nowhere.
    pub upgrade_socket: Option<PathBuf>,
    /// Idle upstream connections kept, all clusters together.
    pub pool_max_idle: usize,
}

/// The listener of operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub listen: AdminListen,
    /// The file that holds the token.
    pub token_file: Option<PathBuf>,
    /// What `Authorization` must be for all that is not open to everyone; `None` = nothing.
    pub token: Option<Secret>,
}

/// Where operators are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminListen {
    /// An address: loopback, unless there is a token.
    Tcp(SocketAddr),
    /// The path of a unix socket, which only its owner may connect to.
    Unix(PathBuf),
}

impl std::fmt::Display for AdminListen {
    /// As it is written in the file.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(to),
            Self::Unix(path) => write!(to, "unix:{}", path.display()),
        }
    }
}

/// One client listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Where it listens.
    pub address: Address,
    /// What is spoken on it below HTTP.
    pub transport: Transport,
    /// Connections begin with a PROXY header, whatever is spoken then.
    pub proxy_protocol: bool,
    /// Every request is sent to this https port. Never with TLS.
    pub redirect_https: Option<u16>,
}

/// Where a listener is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address and a port; 0 is any port.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix {
        /// Its path.
        path: PathBuf,
        /// Who may write to it may connect, as in chmod(2).
        mode: u32,
    },
}

impl std::fmt::Display for Address {
    /// As it is written in the file.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(to),
            Self::Unix { path, .. } => write!(to, "unix:{}", path.display()),
        }
    }
}

/// What is spoken below HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Nothing, and HTTP/1.1 on it.
    Plain,
    /// Nothing, and HTTP/2 or HTTP/1.1 on it, as the client begins.
    PlainH2,
    /// TLS, with HTTP/2 or HTTP/1.1 by ALPN.
    Tls(ServerTls),
}

/// TLS toward clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// Never empty; the first is the default.
    pub certificates: Vec<Certificate>,
    /// Clients must show a certificate of these authorities; `None` = they show none.
    pub client_ca: Option<NamedFile>,
}

/// A file of the configuration. The same file in another line is the same.
#[derive(Debug, Clone, Eq)]
pub struct NamedFile {
    /// Its path.
    pub path: PathBuf,
    /// Line in the configuration file, from 1.
    pub line: u64,
}

impl PartialEq for NamedFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

/// A certificate and its key, as files. The same files in another line are the same.
#[derive(Debug, Clone, Eq)]
pub struct Certificate {
    /// PEM file of the chain, leaf first.
    pub cert: PathBuf,
    /// PEM file of the key.
    pub key: PathBuf,
    /// Line in the configuration file, from 1.
    pub line: u64,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.cert == other.cert && self.key == other.key
    }
}

/// Bounds on what a client may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of the request target.
    pub uri_bytes: usize,
    /// Bytes of the whole request head.
    pub header_bytes: usize,
    /// Header lines, at most 256.
    pub header_count: usize,
    /// Time for the whole request head.
    pub header_timeout: Duration,
    /// Largest request body in bytes; a route may say otherwise.
    pub body_bytes: u64,
    /// Time for the whole body.
    pub body_timeout: Duration,
    /// How long an idle client connection is kept.
    pub keepalive: Duration,
    /// All request bodies held at once, in bytes; beyond it an exchange is refused with 503.
    pub buffered_bytes: u64,
}

/// The stages of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shutdown {
    /// Not ready any more, but still accepting.
    pub lame_duck: Duration,
    /// After the lame duck: how long running exchanges may go on.
    pub drain: Duration,
}

/// Log settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// Level of the gateway's own log, on stderr.
    pub level: log::LevelFilter,
    /// Form of both logs.
    pub format: LogFormat,
    /// Where access lines go.
    pub access: AccessTarget,
    /// Share of the exchanges that went well of which there are access lines, from 0 to 1.
    pub access_sample: f64,
    /// Where usage lines go, if anywhere.
    pub usage: Option<UsageTarget>,
    /// A stream whose first token took longer is told of.
    pub slow: Option<Duration>,
}

/// Where usage lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageTarget {
    /// A file, appended to.
    pub file: NamedFile,
    /// Its bound.
    pub rotate: Rotate,
}

/// When a file is moved away, and how many such are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotate {
    /// Largest size, in bytes.
    pub size: u64,
    /// Files kept besides the one that is written, 1 or more.
    pub keep: u64,
}

/// Form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// `key=value` pairs.
    Text,
    /// One JSON object a line.
    Json,
}

/// Where access lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Nowhere.
    None,
    /// A file, appended to.
    File(NamedFile),
}

impl std::fmt::Display for AccessTarget {
    /// As it is written in the file.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdout => to.write_str("stdout"),
            Self::Stderr => to.write_str("stderr"),
            Self::None => to.write_str("none"),
            Self::File(file) => file.path.display().fmt(to),
        }
    }
}
