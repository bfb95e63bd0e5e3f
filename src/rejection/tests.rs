use super::words::{INVALID, LIMIT, SERVER, TIMEOUT};
use super::*;
use crate::admission::Limit;

fn refused(class: Class) -> Rejection {
    Rejection::Refused(Refusal::new(class, "no"))
}

#[test]
fn a_hook_says_the_code_and_when_to_come_back() {
    let refusal = Refusal::new(Class::TooMany, "spent")
        .code("budget")
        .retry_after(std::time::Duration::from_millis(1_001));
    let told = Rejection::Refused(refusal);
    assert_eq!((told.code(), told.message().as_str(), told.outcome()), ("budget", "spent", Outcome::Limited));
    assert_eq!(told.header(), Some(("retry-after", "2")));
    assert_eq!(refused(Class::Unauthorized).header(), Some(("www-authenticate", "Bearer")));
    assert_eq!(
        (refused(Class::Forbidden).header(), refused(Class::Forbidden).outcome()),
        (None, Outcome::Rejected)
    );
}

fn denied(limit: Limit) -> Rejection {
    Denial { limit, wait: std::time::Duration::from_millis(2_100), standing: Standing::default() }.into()
}

#[test]
fn each_limit_is_told_in_words_and_when_to_come_back() {
    let told = Limit::ALL.map(|limit| denied(limit).message());
    for (at, message) in told.iter().enumerate() {
        assert!(message.ends_with("; try again in 3 s") && !told[..at].contains(message), "{message}");
    }
    assert_eq!(denied(Limit::PerIp).header(), Some(("retry-after", "3")));
    assert_eq!(denied(Limit::PerIp).outcome(), Outcome::Limited);
}

#[test]
fn a_refusal_by_a_limit_has_its_name() {
    for (rejection, name) in [
        (denied(Limit::Tokens), Some("key.tokens")),
        (denied(Limit::PerIp), Some("per_ip.requests")),
        (Rejection::WrongKeys { retry_after: "3".into() }, Some("wrong_keys")),
        (Rejection::invalid("x", Some("n")).by("guard.n"), Some("guard.n")),
        (Rejection::Overloaded, Some("request.buffered_bytes")),
        (Rejection::QueueFull, Some("queue.max")),
        (Rejection::Refused(Refusal::new(Class::Forbidden, "x")), Some("admit")),
        (Rejection::invalid("x", None), None),
        (Rejection::Unauthorized, None),
    ] {
        assert_eq!(rejection.limit().as_deref(), name, "{rejection:?}");
    }
}

#[test]
fn every_rejection_has_its_status_and_code() {
    let table: [(Rejection, u16, &str, &str); 48] = [
        (Rejection::HeadTooLarge, 431, "invalid_request", INVALID),
        (Rejection::UriTooLong, 414, "invalid_request", INVALID),
        (Rejection::HeadTimeout, 408, "request_timeout", TIMEOUT),
        (Rejection::EncodedBody, 415, "invalid_request", INVALID),
        (Rejection::NotJson, 415, "invalid_request", INVALID),
        (Rejection::CodingNotImplemented, 501, "invalid_request", INVALID),
        (Rejection::Unauthorized, 401, "unauthorized", INVALID),
        (Rejection::WrongKeys { retry_after: "3".into() }, 429, "rate_limited", LIMIT),
        (denied(Limit::Tokens), 429, "rate_limited", LIMIT),
        (Rejection::ModelNotAllowed { model: None }, 403, "model_not_allowed", INVALID),
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
        (Rejection::ConnectionsFull, 503, "overloaded", SERVER),
        (Rejection::ConnectionsOfAddress, 503, "overloaded", SERVER),
        (Rejection::Starved, 503, "overloaded", SERVER),
        (Rejection::QueueFull, 503, "overloaded", SERVER),
        (Rejection::QueueTimeout, 503, "queue_timeout", SERVER),
        (Rejection::NoBackend, 503, "no_backend", SERVER),
        (Rejection::UpstreamUnreachable, 502, "upstream_error", SERVER),
        (Rejection::ConnectTimeout, 504, "connect_timeout", TIMEOUT),
        (Rejection::FirstEventTimeout, 504, "first_event_timeout", TIMEOUT),
        (Rejection::UnaryTimeout, 504, "unary_timeout", TIMEOUT),
        (Rejection::IdleTimeout, 504, "idle_timeout", TIMEOUT),
        (Rejection::TotalTimeout, 504, "total_timeout", TIMEOUT),
        (Rejection::UpstreamUnanswered, 502, "upstream_disconnected", SERVER),
        (Rejection::UpstreamDisconnected, 502, "upstream_disconnected", SERVER),
        (Rejection::UpstreamEmpty, 502, "upstream_error", SERVER),
        (Rejection::UpstreamNotHttp, 502, "upstream_error", SERVER),
        (Rejection::UpstreamNoStream, 502, "upstream_error", SERVER),
        (Rejection::UpstreamStatus(500), 502, "upstream_error", SERVER),
        (Rejection::ShuttingDown, 503, "shutting_down", SERVER),
        (Rejection::BackendRemoved, 503, "backend_removed", SERVER),
        (refused(Class::Invalid), 400, "invalid_request", INVALID),
        (refused(Class::Unauthorized), 401, "unauthorized", INVALID),
        (refused(Class::Forbidden), 403, "forbidden", INVALID),
        (refused(Class::TooMany), 429, "rate_limited", LIMIT),
        (refused(Class::Unavailable), 503, "overloaded", SERVER),
        (Rejection::Withheld, 502, "withheld", SERVER),
        (Rejection::Internal, 500, "internal", SERVER),
        (Rejection::invalid("x", Some("stream")), 400, "invalid_request", INVALID),
    ];
    for (rejection, status, code, kind) in table {
        assert_eq!((rejection.status(), rejection.code(), rejection.kind()), (status, code, kind));
        assert!(!rejection.message().is_empty());
    }
}
