//! What an upstream did wrong, seen from one attempt.
//!
//! A [`Failure`] knows nothing of HTTP statuses: [`crate::rejection`] turns it into what the client
//! is told, [`crate::retry`] decides whether another node may try, [`crate::outcome`] how the
//! exchange is counted.

use crate::outcome::Outcome;
use crate::rejection::Rejection;

/// Why an attempt ended without its whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Refused, unreachable, or closed before the handshake was done.
    #[error("the backend could not be reached")]
    Connect,
    /// The gateway itself lacks what any connection takes: a descriptor, or memory of the kernel's.
    #[error("the gateway has no means left for a connection")]
    Starved,
    /// The gateway has no port left for one more connection to this backend.
    #[error("the gateway has no port left for a connection to the backend")]
    NoPort,
    /// No connection within `timeouts.connect`.
    #[error("connecting to the backend timed out")]
    ConnectTimeout,
    /// No data event within `timeouts.first_event`.
    #[error("the backend sent no event in time")]
    FirstEventTimeout,
    /// No whole answer within `timeouts.unary`.
    #[error("the backend did not answer in time")]
    UnaryTimeout,
    /// No data event for `timeouts.idle`.
    #[error("the backend went silent in the middle of its answer")]
    IdleTimeout,
    /// `timeouts.total` has passed.
    #[error("the request took longer than is allowed in total")]
    TotalTimeout,
    /// Reset, or closed before a single byte of an answer.
    #[error("the backend closed the connection before it answered")]
    Unanswered,
    /// Reset, or closed before the answer was complete.
    #[error("the backend closed the connection before its answer was complete")]
    Disconnected,
    /// Ended in its framing, but in the middle of an event or of a JSON text; or with its connection alone, before it
    /// had said that it was over.
    #[error("the backend ended its answer in the middle")]
    Unfinished,
    /// An event stream that ended without an event.
    #[error("the backend ended its answer without an event")]
    Empty,
    /// What came was not HTTP, or HTTP we refuse (an unasked 101, endless interim answers).
    #[error("the backend answered with something that is not HTTP")]
    NotHttp,
    /// A success that is no event stream, or one that is compressed, behind a head that promised a stream.
    #[error("the backend's answer is no event stream")]
    NoStream,
    /// An answer with this status, where a success was needed.
    #[error("the backend answered with status {0}")]
    Status(u16),
    /// This gateway is shutting down and its time to drain is over.
    #[error("the gateway is shutting down")]
    ShuttingDown,
    /// The backend was taken out of the configuration, and the time to drain it is over.
    #[error("the backend was removed, and its time to drain is over")]
    BackendRemoved,
}

impl Failure {
    /// Whether it is a want of the gateway's own, which says nothing of the backend.
    pub fn is_own_want(self) -> bool {
        matches!(self, Self::Starved | Self::NoPort)
    }

    /// What the client is told of it, as a status or as an error event.
    pub fn rejection(self) -> Rejection {
        match self {
            Self::Connect => Rejection::UpstreamUnreachable,
            Self::Starved | Self::NoPort => Rejection::Starved,
            Self::ConnectTimeout => Rejection::ConnectTimeout,
            Self::FirstEventTimeout => Rejection::FirstEventTimeout,
            Self::UnaryTimeout => Rejection::UnaryTimeout,
            Self::IdleTimeout => Rejection::IdleTimeout,
            Self::TotalTimeout => Rejection::TotalTimeout,
            Self::Unanswered => Rejection::UpstreamUnanswered,
            Self::Disconnected | Self::Unfinished => Rejection::UpstreamDisconnected,
            Self::Empty => Rejection::UpstreamEmpty,
            Self::NotHttp => Rejection::UpstreamNotHttp,
            Self::NoStream => Rejection::UpstreamNoStream,
            Self::Status(status) => Rejection::UpstreamStatus(status),
            Self::ShuttingDown => Rejection::ShuttingDown,
            Self::BackendRemoved => Rejection::BackendRemoved,
        }
    }

    /// How an exchange that ended with it is counted.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::ConnectTimeout
            | Self::FirstEventTimeout
            | Self::UnaryTimeout
            | Self::IdleTimeout
            | Self::TotalTimeout => Outcome::Timeout,
            Self::Connect
            | Self::Unanswered
            | Self::Disconnected
            | Self::Unfinished
            | Self::Empty
            | Self::NotHttp
            | Self::NoStream
            | Self::Status(_) => Outcome::UpstreamError,
            Self::Starved | Self::NoPort => Outcome::Rejected,
            Self::ShuttingDown | Self::BackendRemoved => Outcome::Shutdown,
        }
    }

    /// A label for metrics: one word, from this list only.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Starved => "starved",
            Self::NoPort => "no_port",
            Self::ConnectTimeout => "connect_timeout",
            Self::FirstEventTimeout => "first_event_timeout",
            Self::UnaryTimeout => "unary_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::TotalTimeout => "total_timeout",
            Self::Unanswered | Self::Disconnected => "disconnected",
            Self::Unfinished => "unfinished",
            Self::Empty => "empty",
            Self::NotHttp => "not_http",
            Self::NoStream => "no_stream",
            Self::Status(429) => "status_429",
            Self::Status(502) => "status_502",
            Self::Status(503) => "status_503",
            Self::Status(504) => "status_504",
            Self::Status(_) => "status",
            Self::ShuttingDown => "shutting_down",
            Self::BackendRemoved => "backend_removed",
        }
    }
}
