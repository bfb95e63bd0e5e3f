//! Where a request says it goes: its `Host` and its target, each in a form that has one reading.
//!
//! Servers that put a URL together from both have let a `Host` with a `/`, a `?` or an `@` in it choose the
//! path (CVE-2026-48746, CVE-2026-49468), and there are readers to whom a backslash is a slash and behind whom a
//! `#` ends the target. Nothing of that is decoded or mended here: it is refused.

use std::net::Ipv6Addr;

use http::uri::{PathAndQuery, Uri};

use super::head::bad;
use crate::rejection::Rejection;

/// Longest name of a host in bytes (RFC 1035, 2.3.4).
const HOST_BYTES_MAX: usize = 255;

/// Whether it is a name or an address and at most a port (RFC 9110, 7.2): letters, digits, `.`, `-` and `_`, or an
/// IPv6 address in brackets.
pub(super) fn is_host(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (is_name, rest) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address.parse::<Ipv6Addr>().is_ok(), rest),
        None => {
            let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            ((1..=HOST_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_letter), rest)
        }
    };
    is_name && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

fn is_port(port: &str) -> bool {
    (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether every reader takes all of it for a path and a query: no bytes but visible ASCII, no fragment, no
/// backslash.
pub(super) fn is_path(target: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"#\\".contains(&byte);
    (target.starts_with('/') || target == "*")
        && target.bytes().all(is_plain)
        && PathAndQuery::try_from(target).is_ok()
}

/// Checks a target of HTTP/1.1: a path, `*`, or a URL whose host is the one of `Host`.
///
/// # Errors
/// What the client is to be told.
pub(super) fn check<'h>(target: &str, mut hosts: impl Iterator<Item = &'h [u8]>) -> Result<(), Rejection> {
    let url = ["http://", "https://"].iter().find_map(|scheme| behind(target, scheme));
    let is_url = if let Some(rest) = url {
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') || hosts.any(|host| host != authority.as_bytes()) {
            return Err(bad("the host of the request target and Host must be the same"));
        }
        is_host(authority.as_bytes()) && is_path(&format!("/{path}")) && Uri::try_from(target).is_ok()
    } else if target.starts_with('/') || target == "*" {
        is_path(target)
    } else {
        return Err(bad("the request target must be a path"));
    };
    if is_url { Ok(()) } else { Err(bad("the request target is no URL")) }
}

/// What stands behind a scheme, which has no case.
fn behind<'a>(target: &'a str, scheme: &str) -> Option<&'a str> {
    let (begin, rest) = target.split_at_checked(scheme.len())?;
    begin.eq_ignore_ascii_case(scheme).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_a_port() {
        for host in ["a", "a:80", "A.b-c_d.example", "127.0.0.1:65535", "[::1]", "[2001:db8::1]:443", "a."] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            ":80",
            "a:",
            "a:x",
            "a:123456",
            "a:80:80",
            "a/b",
            "a?b",
            "a#b",
            "u@a",
            "a b",
            "a,b",
            "a%2f",
            "a\\b",
            "[]",
            "[a]",
            "[::1",
            "::1]",
            "[::1]x",
            "[::1]:",
            "[fe80::1%25eth0]",
            "2001:db8::1",
            "é",
            "a~b",
            "a;b",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
        assert!(is_host("a".repeat(255).as_bytes()) && !is_host("a".repeat(256).as_bytes()));
        assert!(!is_host(b"\xff"));
    }

    #[test]
    fn a_path_has_one_reading() {
        for target in ["/", "*", "/a?b=c/{d}", "/a//b/../%2e;x", "/?", "/a??"] {
            assert!(is_path(target), "{target}");
        }
        for target in ["", "a", "**", "/a#b", "/a?b#c", "/a\\b", "/é", "/a b", "/\u{7f}", "/<a>", "?a"] {
            assert!(!is_path(target), "{target}");
        }
    }
}
