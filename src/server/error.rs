//! Why the gateway could not start.

use std::io;
use std::net::SocketAddr;

use crate::config::AccessTarget;
use crate::edge::TlsError;

/// Why the gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address could not be bound.
    #[error("cannot listen on {addr} ({setting})")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Where the file says so.
        setting: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A listener's certificates cannot be used.
    #[error("server.listen[{listener}].tls.certificates[{certificate}]")]
    Tls {
        /// Index of the listener.
        listener: usize,
        /// Index of the certificate.
        certificate: usize,
        /// Where the file names it.
        line: u64,
        /// Why.
        #[source]
        source: TlsError,
    },
    /// A backend's host name has no address.
    #[error("the backend host {host:?} cannot be resolved")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The access log cannot be opened.
    #[error("the access log {target} cannot be opened")]
    AccessLog {
        /// Where it was to go.
        target: AccessTarget,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The runtime or the counters could not be set up.
    #[error("the process could not be set up: {0}")]
    Setup(String),
}

impl StartError {
    /// The line of the configuration that it is about.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Tls { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// Whether the configuration is wrong, rather than the moment.
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Tls { source, .. } if !matches!(source, TlsError::Unreadable { .. }))
    }
}
