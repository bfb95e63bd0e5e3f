//! The process: its listeners, its bounds, its log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The `server` part: listeners, threads and process-wide bounds.
#[derive(Debug, Clone)]
pub struct Server {
    /// Where clients are served. Never empty.
    pub listen: Vec<Listen>,
    /// Address of the admin listener.
    pub admin: SocketAddr,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Client connections at a time, at least 1; `None` = any number.
    pub connections_max: Option<usize>,
    /// What a client may send, and how fast.
    pub request: RequestLimits,
    /// How SIGTERM ends the process.
    pub shutdown: Shutdown,
    /// Idle upstream connections kept, all clusters together.
    pub pool_max_idle: usize,
}

/// One client listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Where it listens.
    pub address: SocketAddr,
    /// What is spoken on it below HTTP.
    pub transport: Transport,
}

/// What is spoken below HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Nothing, and HTTP/1.1 on it.
    Plain,
    /// Nothing, and HTTP/2 or HTTP/1.1 on it, as the client begins.
    PlainH2,
    /// TLS, with HTTP/2 or HTTP/1.1 by ALPN. Never without a certificate; the first is the default.
    Tls(Vec<Certificate>),
}

/// A certificate and its key, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// PEM file of the chain, leaf first.
    pub cert: PathBuf,
    /// PEM file of the key.
    pub key: PathBuf,
    /// Line in the configuration file, from 1.
    pub line: u64,
}

/// Bounds on what a client may send.
#[derive(Debug, Clone)]
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
#[derive(Debug, Clone, Copy)]
pub struct Shutdown {
    /// Not ready any more, but still accepting.
    pub lame_duck: Duration,
    /// After the lame duck: how long running exchanges may go on.
    pub drain: Duration,
}

/// Log settings.
#[derive(Debug, Clone)]
pub struct Log {
    /// Level of the gateway's own log, on stderr.
    pub level: log::LevelFilter,
    /// Form of both logs.
    pub format: LogFormat,
    /// Where access lines go.
    pub access: AccessTarget,
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
    File(PathBuf),
}

impl std::fmt::Display for AccessTarget {
    /// As it is written in the file.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdout => to.write_str("stdout"),
            Self::Stderr => to.write_str("stderr"),
            Self::None => to.write_str("none"),
            Self::File(path) => path.display().fmt(to),
        }
    }
}
