//! Which headers are whose, and what a cluster sets and removes.
//!
//! The one hard idea: three kinds of headers are out of everybody's reach, in a configuration as in a
//! request: those of one connection, those the gateway asserts, and those of the body it frames.

use std::borrow::Cow;

use http::header::{HeaderName, HeaderValue};

/// Headers of one connection only (RFC 9110, 7.6.1), `Upgrade`, which we do not do, and what belongs to it.
pub const HOP_BY_HOP: [&str; 10] = [
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Request headers that the backend gets from us or not at all.
pub const OURS: [&str; 8] = [
    "host",
    "x-request-id",
    "expect",
    "content-length",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
];

/// Whether proxies tell of their clients in a header, read as [`read_as`] has it. Servers behind proxies believe it.
pub fn is_of_proxies(read_as: &str) -> bool {
    read_as.starts_with("x-forwarded-") || read_as == "x-real-ip"
}

/// Whether a header, read as [`read_as`] has it, says that another URL was meant than the one that was asked for.
pub fn meant_otherwise(read_as: &str) -> bool {
    ["x-original-url", "x-rewrite-url"].contains(&read_as)
}

/// Headers that carry a client's credentials.
pub const CREDENTIALS: [&str; 2] = ["authorization", "x-api-key"];

/// The name as a reader takes it to whom `_` is `-`, as it is to CGI: it would take one header for the other.
pub fn read_as(name: &str) -> Cow<'_, str> {
    if name.contains('_') { name.replace('_', "-").into() } else { name.into() }
}

/// Changes to the head that goes to a backend.
///
/// Values may be secrets: they are marked sensitive, so that no `Debug` output shows them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// Removed first.
    pub remove: Vec<HeaderName>,
    /// Set then, over what the client sent.
    pub set: Vec<(HeaderName, HeaderValue)>,
}

/// Why a configuration may not touch a header, as what is wrong and what to write instead.
pub fn out_of_reach(name: &HeaderName) -> Option<(&'static str, &'static str)> {
    let name = name.as_str();
    if name == "x-request-id" {
        return Some(("carries the request id of this gateway", "clients may send their own; leave it out"));
    }
    if HOP_BY_HOP.contains(&name) {
        return Some(("speaks of one connection, not of the request", "leave it out: it never passes"));
    }
    if OURS.contains(&name) {
        return Some(("is written by the gateway itself", "leave it out"));
    }
    CREDENTIALS
        .contains(&name)
        .then_some(("carries credentials", "leave it out: clusters.*.auth says what becomes of them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_value_is_never_shown() {
        let mut value = HeaderValue::from_static("s3cret");
        value.set_sensitive(true);
        let rules = Rules { remove: Vec::new(), set: vec![(HeaderName::from_static("x-team"), value)] };
        assert!(!format!("{rules:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_not_the_users_is_out_of_reach() {
        for name in [
            "Connection",
            "transfer-encoding",
            "HOST",
            "content-length",
            "x-request-id",
            "authorization",
            "X-Api-Key",
        ] {
            let name: HeaderName = name.parse().expect("a name");
            assert!(out_of_reach(&name).is_some(), "{name}");
        }
        for name in ["x-team", "cookie", "accept-encoding", "x-session-id"] {
            assert_eq!(out_of_reach(&HeaderName::from_static(name)), None, "{name}");
        }
    }
}
