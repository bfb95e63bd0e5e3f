//! Why the gateway could not start.

use std::io;

use crate::config::{AccessTarget, NamedFile};
use crate::edge::TlsError;
use crate::handover::TakeError;
use crate::reload::Unbuildable;

/// Why the gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address could not be bound.
    #[error("cannot listen on {addr} ({setting})")]
    Listen {
        /// The address, or the path of a unix socket.
        addr: String,
        /// Where the file says so.
        setting: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A listener's certificates cannot be used.
    #[error("{setting}")]
    Tls {
        /// Where the file names them.
        setting: String,
        /// Where the file names it.
        line: u64,
        /// Why.
        #[source]
        source: TlsError,
    },
    /// The backends cannot be reached as the file says.
    #[error(transparent)]
    Backends(#[from] Unbuildable),
    /// The access log cannot be opened.
    #[error("log.access: the access log {target} cannot be opened")]
    AccessLog {
        /// Where it was to go.
        target: AccessTarget,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The usage log cannot be opened.
    #[error("log.usage: the usage log {} cannot be opened", file.path.display())]
    UsageLog {
        /// Where it was to go.
        file: NamedFile,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Lines of two kinds would stand in one file.
    #[error("log.usage: {} is the file that log.access writes into, by another name: name another file", file.path.display())]
    SameLog {
        /// The usage log.
        file: NamedFile,
    },
    /// Nothing was handed over.
    #[error(transparent)]
    TakeOver(#[from] TakeError),
    /// The runtime or the counters could not be set up.
    #[error("the process could not be set up: {0}")]
    Setup(String),
}

impl StartError {
    /// The line of the configuration that it is about.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Tls { line, .. } => Some(*line),
            Self::AccessLog { target: AccessTarget::File(file), .. }
            | Self::UsageLog { file, .. }
            | Self::SameLog { file } => Some(file.line),
            _ => None,
        }
    }

    /// Whether the configuration is wrong, rather than the moment.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Tls { source, .. } => !matches!(source, TlsError::Unreadable { .. }),
            Self::TakeOver(error) => error.is_configuration(),
            Self::SameLog { .. } => true,
            _ => false,
        }
    }
}

/// An error with all its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
