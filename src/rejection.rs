//! What we tell a client: the only place that knows status codes.
//!
//! A closed list. Its words are for clients: no address, no key, nothing of another client.
//! The log has the cause.

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
        param: Option<&'static str>,
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
    /// The body is longer than allowed.
    BodyTooLarge {
        /// The largest body in bytes.
        limit: u64,
    },
    /// The body did not come in time.
    RequestTimeout,
    /// This gateway holds as many request bytes as it may.
    Overloaded,
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
    /// See [`crate::failure::Failure::NotHttp`].
    UpstreamNotHttp,
    /// The engine failed after the stream was committed early, so that its status could not pass.
    UpstreamStatus(u16),
    /// This gateway is shutting down.
    ShuttingDown,
    /// A fault of our own.
    Internal,
}

/// The three kinds of error that OpenAI's clients tell apart.
const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";
const TIMEOUT: &str = "timeout_error";

impl Rejection {
    /// A wrong field of the request.
    pub fn invalid(message: impl Into<String>, param: Option<&'static str>) -> Self {
        Self::InvalidRequest { message: message.into(), param }
    }

    /// A chunked body that is not framed as it must be.
    pub fn malformed_body() -> Self {
        Self::invalid("the body's chunked framing is wrong", None)
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::InvalidRequest { .. } | Self::MissingSession { .. } => 400,
            Self::NotFound | Self::NoRoute | Self::ModelNotFound { .. } => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::RequestTimeout | Self::HeadTimeout => 408,
            Self::BodyTooLarge { .. } => 413,
            Self::UriTooLong => 414,
            Self::ExpectationFailed => 417,
            Self::HeadTooLarge => 431,
            Self::Internal => 500,
            Self::CodingNotImplemented => 501,
            Self::UpstreamUnreachable
            | Self::UpstreamUnanswered
            | Self::UpstreamDisconnected
            | Self::UpstreamNotHttp
            | Self::UpstreamStatus(_) => 502,
            Self::Overloaded | Self::NoBackend | Self::ShuttingDown => 503,
            Self::ConnectTimeout
            | Self::FirstEventTimeout
            | Self::UnaryTimeout
            | Self::IdleTimeout
            | Self::TotalTimeout => 504,
        }
    }

    /// `error.code`: the stable word that programs read.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound | Self::NoRoute => "not_found",
            Self::MissingSession { .. } => "missing_session",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::InvalidRequest { .. }
            | Self::ExpectationFailed
            | Self::HeadTooLarge
            | Self::UriTooLong
            | Self::CodingNotImplemented => "invalid_request",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::RequestTimeout | Self::HeadTimeout => "request_timeout",
            Self::Overloaded => "overloaded",
            Self::NoBackend => "no_backend",
            Self::ConnectTimeout => "connect_timeout",
            Self::FirstEventTimeout => "first_event_timeout",
            Self::UnaryTimeout => "unary_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::TotalTimeout => "total_timeout",
            Self::UpstreamUnanswered | Self::UpstreamDisconnected => "upstream_disconnected",
            Self::UpstreamUnreachable | Self::UpstreamNotHttp | Self::UpstreamStatus(_) => "upstream_error",
            Self::ShuttingDown => "shutting_down",
            Self::Internal => "internal",
        }
    }

    /// `error.type`.
    pub fn kind(&self) -> &'static str {
        match self.status() {
            408 | 504 => TIMEOUT,
            400..=499 | 501 => INVALID,
            _ => SERVER,
        }
    }

    /// `error.param`: the field that is wrong, if it is one.
    pub fn param(&self) -> Option<&'static str> {
        match self {
            Self::InvalidRequest { param, .. } => *param,
            Self::ModelNotFound { .. } => Some("model"),
            _ => None,
        }
    }

    /// `error.message`: what happened and, where it helps, what to do.
    pub fn message(&self) -> String {
        match self {
            Self::NotFound => "there is no such path here".into(),
            Self::NoRoute => "no route on this path takes the headers of this request".into(),
            Self::MissingSession { places } => {
                format!(
                    "the request has no session id: send one of up to 256 visible ASCII characters in {places}"
                )
            }
            Self::MethodNotAllowed { allow } => format!("this path takes {allow}"),
            Self::ModelNotFound { model: Some(model) } => format!("the model `{model}` is not served here"),
            Self::ModelNotFound { model: None } => {
                "the request names no model, and this path needs one".into()
            }
            Self::InvalidRequest { message, .. } => message.clone(),
            Self::ExpectationFailed => "the only expectation understood is 100-continue".into(),
            Self::HeadTooLarge => "the request head has too many bytes or lines".into(),
            Self::UriTooLong => "the request target is too long".into(),
            Self::HeadTimeout => "the request head did not arrive in time".into(),
            Self::CodingNotImplemented => "the only Transfer-Encoding understood is chunked".into(),
            Self::BodyTooLarge { limit } => format!("the request body is larger than {limit} bytes"),
            Self::RequestTimeout => "the request body did not arrive in time".into(),
            Self::Overloaded => "the gateway is holding as many requests as it can; try again shortly".into(),
            Self::NoBackend => "no backend is available; try again shortly".into(),
            Self::UpstreamUnreachable => "the backend could not be reached".into(),
            Self::ConnectTimeout => "connecting to the backend timed out".into(),
            Self::FirstEventTimeout => "the backend did not begin to answer in time".into(),
            Self::UnaryTimeout => "the backend did not answer in time".into(),
            Self::IdleTimeout => "the backend went silent in the middle of its answer".into(),
            Self::TotalTimeout => "the request took longer than is allowed".into(),
            Self::UpstreamUnanswered => "the backend closed the connection before it answered".into(),
            Self::UpstreamDisconnected => {
                "the backend closed the connection before its answer was complete".into()
            }
            Self::UpstreamNotHttp => "the backend sent an answer that is not valid HTTP".into(),
            Self::UpstreamStatus(status) => format!("the backend answered with status {status}"),
            Self::ShuttingDown => "the gateway is shutting down; try again".into(),
            Self::Internal => "internal error".into(),
        }
    }

    /// What the client is told; the caller keeps the message.
    pub fn told<'a>(&'a self, message: &'a str, about: About<'a>) -> Told<'a> {
        Told { code: self.code(), kind: self.kind(), message, param: self.param(), about }
    }

    /// The header that goes with it: when to come back, in seconds, or what would do instead.
    pub fn header(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Overloaded | Self::NoBackend | Self::ShuttingDown => Some(("retry-after", "1")),
            Self::MethodNotAllowed { allow } => Some(("allow", allow)),
            _ => None,
        }
    }

    /// How an exchange that ends with it before any attempt is counted.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::ShuttingDown => Outcome::Shutdown,
            Self::RequestTimeout | Self::HeadTimeout => Outcome::Timeout,
            _ => Outcome::Rejected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rejection_has_its_status_and_code() {
        let table: [(Rejection, u16, &str, &str); 28] = [
            (Rejection::HeadTooLarge, 431, "invalid_request", INVALID),
            (Rejection::UriTooLong, 414, "invalid_request", INVALID),
            (Rejection::HeadTimeout, 408, "request_timeout", TIMEOUT),
            (Rejection::CodingNotImplemented, 501, "invalid_request", INVALID),
            (Rejection::NotFound, 404, "not_found", INVALID),
            (Rejection::NoRoute, 404, "not_found", INVALID),
            (Rejection::MissingSession { places: "a".into() }, 400, "missing_session", INVALID),
            (Rejection::MethodNotAllowed { allow: "GET".into() }, 405, "method_not_allowed", INVALID),
            (Rejection::ModelNotFound { model: None }, 404, "model_not_found", INVALID),
            (Rejection::invalid("x", None), 400, "invalid_request", INVALID),
            (Rejection::ExpectationFailed, 417, "invalid_request", INVALID),
            (Rejection::BodyTooLarge { limit: 1 }, 413, "body_too_large", INVALID),
            (Rejection::RequestTimeout, 408, "request_timeout", TIMEOUT),
            (Rejection::Overloaded, 503, "overloaded", SERVER),
            (Rejection::NoBackend, 503, "no_backend", SERVER),
            (Rejection::UpstreamUnreachable, 502, "upstream_error", SERVER),
            (Rejection::ConnectTimeout, 504, "connect_timeout", TIMEOUT),
            (Rejection::FirstEventTimeout, 504, "first_event_timeout", TIMEOUT),
            (Rejection::UnaryTimeout, 504, "unary_timeout", TIMEOUT),
            (Rejection::IdleTimeout, 504, "idle_timeout", TIMEOUT),
            (Rejection::TotalTimeout, 504, "total_timeout", TIMEOUT),
            (Rejection::UpstreamUnanswered, 502, "upstream_disconnected", SERVER),
            (Rejection::UpstreamDisconnected, 502, "upstream_disconnected", SERVER),
            (Rejection::UpstreamNotHttp, 502, "upstream_error", SERVER),
            (Rejection::UpstreamStatus(500), 502, "upstream_error", SERVER),
            (Rejection::ShuttingDown, 503, "shutting_down", SERVER),
            (Rejection::Internal, 500, "internal", SERVER),
            (Rejection::invalid("x", Some("stream")), 400, "invalid_request", INVALID),
        ];
        for (rejection, status, code, kind) in table {
            assert_eq!((rejection.status(), rejection.code(), rejection.kind()), (status, code, kind));
            assert!(!rejection.message().is_empty());
        }
    }
}
