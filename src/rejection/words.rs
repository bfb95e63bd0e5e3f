//! What a client is told of a rejection: status, code, kind, and a sentence that says what to do.

use super::{Class, Refusal, Rejection};
use crate::admission::Limit;

// The kinds of error that OpenAI's clients tell apart.
pub(super) const INVALID: &str = "invalid_request_error";
pub(super) const SERVER: &str = "server_error";
pub(super) const TIMEOUT: &str = "timeout_error";
pub(super) const LIMIT: &str = "rate_limit_error";

impl Rejection {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::InvalidRequest { .. } | Self::MissingSession { .. } => 400,
            Self::Unauthorized => 401,
            Self::ModelNotAllowed { .. } => 403,
            Self::NotFound | Self::NoRoute | Self::ModelNotFound { .. } => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::RequestTimeout | Self::HeadTimeout => 408,
            Self::BodyTooLarge { .. } => 413,
            Self::UriTooLong => 414,
            Self::EncodedBody | Self::NotJson => 415,
            Self::ExpectationFailed => 417,
            Self::WrongKeys { .. } | Self::RateLimited { .. } => 429,
            Self::HeadTooLarge => 431,
            Self::Refused(refusal) => match refusal.class {
                Class::Invalid => 400,
                Class::Unauthorized => 401,
                Class::Forbidden => 403,
                Class::TooMany => 429,
                Class::Unavailable => 503,
            },
            Self::Internal => 500,
            Self::CodingNotImplemented => 501,
            Self::UpstreamUnreachable
            | Self::UpstreamUnanswered
            | Self::UpstreamDisconnected
            | Self::UpstreamEmpty
            | Self::UpstreamNotHttp
            | Self::UpstreamNoStream
            | Self::UpstreamStatus(_)
            | Self::Withheld => 502,
            Self::Overloaded
            | Self::ConnectionsFull
            | Self::ConnectionsOfAddress
            | Self::Starved
            | Self::QueueFull
            | Self::QueueTimeout
            | Self::NoBackend
            | Self::ShuttingDown
            | Self::BackendRemoved => 503,
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
            Self::Unauthorized => "unauthorized",
            Self::WrongKeys { .. } | Self::RateLimited { .. } => "rate_limited",
            Self::ModelNotAllowed { .. } => "model_not_allowed",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::InvalidRequest { .. }
            | Self::ExpectationFailed
            | Self::HeadTooLarge
            | Self::UriTooLong
            | Self::EncodedBody
            | Self::NotJson
            | Self::CodingNotImplemented => "invalid_request",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::RequestTimeout | Self::HeadTimeout => "request_timeout",
            Self::Overloaded
            | Self::ConnectionsFull
            | Self::ConnectionsOfAddress
            | Self::Starved
            | Self::QueueFull => "overloaded",
            Self::QueueTimeout => "queue_timeout",
            Self::NoBackend => "no_backend",
            Self::ConnectTimeout => "connect_timeout",
            Self::FirstEventTimeout => "first_event_timeout",
            Self::UnaryTimeout => "unary_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::TotalTimeout => "total_timeout",
            Self::UpstreamUnanswered | Self::UpstreamDisconnected => "upstream_disconnected",
            Self::UpstreamUnreachable
            | Self::UpstreamEmpty
            | Self::UpstreamNotHttp
            | Self::UpstreamNoStream
            | Self::UpstreamStatus(_) => "upstream_error",
            Self::ShuttingDown => "shutting_down",
            Self::BackendRemoved => "backend_removed",
            Self::Refused(Refusal { code: Some(code), .. }) => code,
            Self::Refused(refusal) => match refusal.class {
                Class::Invalid => "invalid_request",
                Class::Unauthorized => "unauthorized",
                Class::Forbidden => "forbidden",
                Class::TooMany => "rate_limited",
                Class::Unavailable => "overloaded",
            },
            Self::Withheld => "withheld",
            Self::Internal => "internal",
        }
    }

    /// `error.type`.
    pub fn kind(&self) -> &'static str {
        match self.status() {
            408 | 504 => TIMEOUT,
            429 => LIMIT,
            400..=499 | 501 => INVALID,
            _ => SERVER,
        }
    }

    /// `error.param`: the field that is wrong, if it is one.
    pub fn param(&self) -> Option<&str> {
        match self {
            Self::InvalidRequest { param, .. } => param.as_deref(),
            Self::ModelNotFound { .. } | Self::ModelNotAllowed { .. } => Some("model"),
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
            Self::Unauthorized => {
                "this needs an API key: send one as `Authorization: Bearer KEY` or as `x-api-key: KEY`".into()
            }
            Self::WrongKeys { .. } => {
                "too many wrong API keys came from this address; try again later".into()
            }
            Self::RateLimited { denial, retry_after } => limited(denial.limit, retry_after),
            Self::ModelNotAllowed { model: Some(model) } => {
                format!("this API key may not use the model `{model}`")
            }
            Self::ModelNotAllowed { model: None } => {
                "this API key may use some models only: name the one that is meant".into()
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
            Self::EncodedBody => "a request body is taken without Content-Encoding only".into(),
            Self::NotJson => "this path takes JSON: send Content-Type: application/json".into(),
            Self::BodyTooLarge { limit } => format!("the request body is larger than {limit} bytes"),
            Self::RequestTimeout => "the request body did not arrive in time".into(),
            Self::Overloaded => "the gateway is holding as many requests as it can; try again shortly".into(),
            Self::ConnectionsFull => {
                "the gateway has as many connections open as it can; try again shortly".into()
            }
            Self::ConnectionsOfAddress => {
                "this address has as many connections open as it may have at once: use them, or close some"
                    .into()
            }
            Self::Starved => {
                "the gateway has as many connections to backends as it can; try again shortly".into()
            }
            Self::QueueFull => {
                "every backend is busy, and the queue for them is full; try again shortly".into()
            }
            Self::QueueTimeout => {
                "every backend was busy for as long as a request may wait; try again shortly".into()
            }
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
            Self::UpstreamEmpty => "the backend ended its answer without sending any of it".into(),
            Self::UpstreamNotHttp => "the backend sent an answer that is not valid HTTP".into(),
            Self::UpstreamNoStream => "the backend's answer is no event stream".into(),
            Self::UpstreamStatus(status) => format!("the backend answered with status {status}"),
            Self::ShuttingDown => "the gateway is shutting down; try again".into(),
            Self::BackendRemoved => {
                "the backend was taken out of service before its answer was complete; try again".into()
            }
            Self::Refused(refusal) => refusal.message.clone(),
            Self::Withheld => "the backend's answer may not be passed on".into(),
            Self::Internal => "internal error".into(),
        }
    }
}

fn limited(limit: Limit, seconds: &str) -> String {
    let what = match limit {
        Limit::Requests => "this API key has had as many requests as it may have in this time",
        Limit::Tokens => "this API key has used as many tokens as it may use in this time",
        Limit::Concurrent => "this API key has as many requests under way as it may have at once",
        Limit::EarlyCancels => "too many answers to this API key were given up before their first token",
        Limit::Connections => "this API key is used on as many connections as it may be at once",
        Limit::PerIp => "this address has had as many requests as it may have in this time",
    };
    format!("{what}; try again in {seconds} s")
}
