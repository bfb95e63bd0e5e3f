//! What we tell a client: the only place that knows status codes.
//!
//! A closed list. Its words are for clients: no address, no key, nothing of another client.
//! The log has the cause.

mod limit;
mod refusal;
mod words;

use std::borrow::Cow;

pub use refusal::{Class, Refusal};

use crate::admission::{Denial, Standing};
use crate::openai::{About, Told};
use crate::outcome::Outcome;

/// An answer of the gateway's own, or the error event of a stream that is already committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// No route has this path.
    NotFound,
    /// The path and the method are known, but no route takes what the headers say.
    NoRoute,
    /// There is no session id, and the configuration wants one.
    MissingSession {
        /// The places where it was looked for.
        places: String,
    },
    /// There is no key, or one that is not known; both are told the same.
    Unauthorized,
    /// Too many wrong keys came from the client's address.
    WrongKeys {
        /// When to come back, in whole seconds.
        retry_after: String,
    },
    /// A limit of the key, or of the client's address, is reached.
    RateLimited {
        /// Which one, and where the key stands.
        denial: Denial,
        /// When to come back, in whole seconds.
        retry_after: String,
    },
    /// The key may not use the model.
    ModelNotAllowed {
        /// The model the client named, shortened.
        model: Option<String>,
    },
    /// The path is known, the method is not; `allow` is the value of the `Allow` header.
    MethodNotAllowed {
        /// The methods that would do.
        allow: String,
    },
    /// The path is known, but no route serves this model.
    ModelNotFound {
        /// The model the client named, shortened.
        model: Option<String>,
    },
    /// The request is wrong; the text says how.
    InvalidRequest {
        /// What is wrong and what would be right.
        message: String,
        /// The field it is about.
        param: Option<Cow<'static, str>>,
        /// The rule of a guard that it breaks; for the access log.
        rule: Option<&'static str>,
    },
    /// An `Expect` header other than `100-continue` (RFC 9110, 10.1.1).
    ExpectationFailed,
    /// The request head has too many bytes or lines.
    HeadTooLarge,
    /// The request target is too long.
    UriTooLong,
    /// The request head did not come in time.
    HeadTimeout,
    /// A `Transfer-Encoding` other than `chunked`.
    CodingNotImplemented,
    /// A `Content-Encoding` on a request.
    EncodedBody,
    /// A body that is not JSON by its type, where JSON is to be guarded.
    NotJson,
    /// The body is longer than allowed.
    BodyTooLarge {
        /// The largest body in bytes.
        limit: u64,
    },
    /// The body did not come in time.
    RequestTimeout,
    /// This gateway holds as many request bytes as it may.
    Overloaded,
    /// As many connections are open as may be.
    ConnectionsFull,
    /// The same from the client's address.
    ConnectionsOfAddress,
    /// See [`crate::failure::Failure::Starved`].
    Starved,
    /// Every node is full, and as many wait for one as may.
    QueueFull,
    /// No node had room in `timeouts.queue`.
    QueueTimeout,
    /// The cluster has no node that could be tried.
    NoBackend,
    /// Refused or unreachable.
    UpstreamUnreachable,
    /// See [`crate::failure::Failure::ConnectTimeout`].
    ConnectTimeout,
    /// See [`crate::failure::Failure::FirstEventTimeout`].
    FirstEventTimeout,
    /// See [`crate::failure::Failure::UnaryTimeout`].
    UnaryTimeout,
    /// See [`crate::failure::Failure::IdleTimeout`].
    IdleTimeout,
    /// See [`crate::failure::Failure::TotalTimeout`].
    TotalTimeout,
    /// See [`crate::failure::Failure::Unanswered`].
    UpstreamUnanswered,
    /// See [`crate::failure::Failure::Disconnected`].
    UpstreamDisconnected,
    /// See [`crate::failure::Failure::Empty`].
    UpstreamEmpty,
    /// See [`crate::failure::Failure::NotHttp`].
    UpstreamNotHttp,
    /// See [`crate::failure::Failure::NoStream`].
    UpstreamNoStream,
    /// The engine failed after the stream was committed early, so that its status could not pass.
    UpstreamStatus(u16),
    /// This gateway is shutting down.
    ShuttingDown,
    /// See [`crate::failure::Failure::BackendRemoved`].
    BackendRemoved,
    /// A hook of the program that embeds the gateway does not let it in.
    Refused(Refusal),
    /// The answer may not pass: a hook cannot see it, or says so.
    Withheld,
    /// A fault of our own.
    Internal,
}

impl From<Denial> for Rejection {
    fn from(denial: Denial) -> Self {
        Self::RateLimited { denial, retry_after: denial.retry_after().to_string() }
    }
}

impl Rejection {
    /// A wrong field of the request.
    pub fn invalid(message: impl Into<String>, param: Option<&'static str>) -> Self {
        Self::InvalidRequest { message: message.into(), param: param.map(Cow::Borrowed), rule: None }
    }

    /// The same of a field that the configuration names.
    pub fn field(message: String, param: String) -> Self {
        Self::InvalidRequest { message, param: Some(Cow::Owned(param)), rule: None }
    }

    /// The same where it is a guard that refuses, by this rule.
    #[must_use]
    pub fn by(mut self, name: &'static str) -> Self {
        if let Self::InvalidRequest { rule, .. } = &mut self {
            *rule = Some(name);
        }
        self
    }

    /// A chunked body that is not framed as it must be.
    pub fn malformed_body() -> Self {
        Self::invalid("the body's chunked framing is wrong", None)
    }

    /// What the client is told; the caller keeps the message.
    pub fn told<'a>(&'a self, message: &'a str, about: About<'a>) -> Told<'a> {
        Told { code: self.code(), kind: self.kind(), message, param: self.param(), about }
    }

    /// The header that goes with it: when to come back, in seconds, or what would do instead.
    pub fn header(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Overloaded
            | Self::ConnectionsFull
            | Self::ConnectionsOfAddress
            | Self::Starved
            | Self::QueueFull
            | Self::QueueTimeout
            | Self::NoBackend
            | Self::ShuttingDown
            | Self::BackendRemoved => Some(("retry-after", "1")),
            Self::Refused(Refusal { retry_after: Some(seconds), .. }) => Some(("retry-after", seconds)),
            Self::Refused(Refusal { class: Class::Unauthorized, .. }) => Some(("www-authenticate", "Bearer")),
            Self::Unauthorized => Some(("www-authenticate", "Bearer")),
            Self::WrongKeys { retry_after } | Self::RateLimited { retry_after, .. } => {
                Some(("retry-after", retry_after))
            }
            Self::MethodNotAllowed { allow } => Some(("allow", allow)),
            // What would do instead (RFC 9110, 15.5.16).
            Self::EncodedBody => Some(("accept-encoding", "identity")),
            _ => None,
        }
    }

    /// The headers by which a client may pace itself.
    pub fn standing(&self) -> Standing {
        match self {
            Self::RateLimited { denial, .. } => denial.standing,
            _ => Standing::default(),
        }
    }

    /// How an exchange that ends with it before any attempt is counted.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::ShuttingDown | Self::BackendRemoved => Outcome::Shutdown,
            Self::RequestTimeout | Self::HeadTimeout | Self::QueueTimeout | Self::TotalTimeout => {
                Outcome::Timeout
            }
            Self::WrongKeys { .. } | Self::RateLimited { .. } | Self::ConnectionsOfAddress => {
                Outcome::Limited
            }
            Self::Refused(Refusal { class: Class::TooMany, .. }) => Outcome::Limited,
            _ => Outcome::Rejected,
        }
    }
}

#[cfg(test)]
mod tests;
