//! Who may ask the admin listener.
//!
//! It listens where only this machine comes, or wants a token. A browser on this machine comes as well, sent by any
//! web page. A page whose name was made to lead here (DNS rebinding) asks by that name, so `Host` must be an address
//! or `localhost`; a page that only sends a form asks with an `Origin`, and no tool of an operator does, but for the
//! live page. That one acts with the token, in a header which no page of another origin can send, and its origin
//! is the very listener that it asks.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use openssl::memcmp;
use pingora_http::RequestHeader;

use crate::config::{Admin, AdminListen};

/// Why somebody is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The listener was asked by a name that is not its own.
    Host,
    /// A web page asks.
    Origin,
    /// The token is missing or another.
    Token,
}

/// Judges a request; `acts` says that it changes something, `is_open` that it needs no token.
///
/// # Errors
/// Why it is refused.
pub(super) fn check(head: &RequestHeader, acts: bool, is_open: bool, admin: &Admin) -> Result<(), Refusal> {
    // What the whole network may read, Prometheus asks for by whatever name it has for this machine.
    if let AdminListen::Tcp(address) = &admin.listen
        && (!is_open || address.ip().is_loopback())
        && !hosts(head).all(|host| is_ours(host, address.ip()))
    {
        return Err(Refusal::Host);
    }
    if acts && head.headers.contains_key(ORIGIN) && (admin.token.is_none() || !is_own_page(head)) {
        return Err(Refusal::Origin);
    }
    if is_open {
        return Ok(());
    }
    match &admin.token {
        Some(token) if !has(head, token.header_value().as_bytes()) => Err(Refusal::Token),
        _ => Ok(()),
    }
}

/// Every name it was asked by; none where a client of HTTP/1.0 says none.
fn hosts(head: &RequestHeader) -> impl Iterator<Item = &str> {
    let lines = head.headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    lines.chain(head.uri.host())
}

/// Whether the page that asks came from where it asks. Something that encrypts may stand before us, so either
/// scheme will do.
fn is_own_page(head: &RequestHeader) -> bool {
    let mut origins = head.headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next().and_then(|origin| origin.to_str().ok()), origins.next())
    else {
        return false;
    };
    let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let mut asked = hosts(head);
    from.is_some_and(|from| asked.next() == Some(from) && asked.next().is_none())
}

/// Whether `host`, with its port or without, is an address or a name of this machine itself, or where it
/// listens. Who listens on every address is asked by any of them.
fn is_ours(host: &str, listen: IpAddr) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip == listen || listen.is_unspecified())
}

/// Whether it carries the token, in time that does not tell how much of it is right.
fn has(head: &RequestHeader, token: &[u8]) -> bool {
    let given = head.headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    given.len() == token.len() && memcmp::eq(given, token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn asked(headers: &[(&'static str, &str)]) -> RequestHeader {
        let mut head = RequestHeader::build("POST", b"/reload", None).unwrap();
        for (name, value) in headers {
            head.append_header(*name, *value).unwrap();
        }
        head
    }

    fn admin(listen: &str, token: Option<&str>) -> Admin {
        Admin {
            listen: AdminListen::Tcp(listen.parse().unwrap()),
            token_file: None,
            token: token.map(|token| Secret::bearer(token).unwrap()),
        }
    }

    #[test]
    fn names_of_others_are_refused() {
        let told = |host, listen| check(&asked(&[("host", host)]), true, false, &admin(listen, None));
        for host in ["127.0.0.1:9090", "localhost", "LocalHost:1", "[::1]:9090", "127.9.9.9"] {
            assert_eq!(told(host, "127.0.0.1:9090"), Ok(()), "{host}");
        }
        for host in [
            "evil.test",
            "evil.test:9090",
            "127.0.0.1.evil.test",
            "10.0.0.1",
            "localhost.evil.test",
            "",
            "a b",
        ] {
            assert_eq!(told(host, "127.0.0.1:9090"), Err(Refusal::Host), "{host}");
        }
        assert_eq!(told("10.0.0.1:9090", "0.0.0.0:9090"), Ok(()));
        assert_eq!(told("evil.test", "0.0.0.0:9090"), Err(Refusal::Host));
        let scrape = asked(&[("host", "gateway.llm.svc:9090")]);
        assert_eq!(check(&scrape, false, true, &admin("0.0.0.0:9090", Some("t"))), Ok(()));
        let twice = asked(&[("host", "localhost"), ("host", "evil.test")]);
        assert_eq!(check(&twice, false, true, &admin("127.0.0.1:1", None)), Err(Refusal::Host));
        let unix = Admin { listen: AdminListen::Unix("/a".into()), ..admin("127.0.0.1:1", None) };
        assert_eq!(check(&asked(&[("host", "whatever")]), true, false, &unix), Ok(()));
    }

    #[test]
    fn a_web_page_changes_nothing() {
        let page = asked(&[("host", "localhost"), ("origin", "null")]);
        let admin = admin("127.0.0.1:1", None);
        assert_eq!(check(&page, true, false, &admin), Err(Refusal::Origin));
        assert_eq!(check(&page, false, false, &admin), Ok(()));
    }

    /// The live page acts with the token, and nobody else's page does, token or not.
    #[test]
    fn the_page_of_this_listener_acts_with_the_token() {
        let (host, token) = (("host", "localhost:9090"), ("authorization", "Bearer t0ken"));
        let with_token = admin("127.0.0.1:9090", Some("t0ken"));
        let told = |headers: &[_], admin: &Admin| check(&asked(headers), true, false, admin);
        for own in ["http://localhost:9090", "https://localhost:9090"] {
            assert_eq!(told(&[host, ("origin", own), token], &with_token), Ok(()), "{own}");
            assert_eq!(told(&[host, ("origin", own)], &with_token), Err(Refusal::Token), "{own}");
            let without = admin("127.0.0.1:9090", None);
            assert_eq!(told(&[host, ("origin", own), token], &without), Err(Refusal::Origin), "{own}");
        }
        for other in
            ["http://localhost", "http://localhost:9091", "http://evil.test", "null", "localhost:9090", ""]
        {
            assert_eq!(told(&[host, ("origin", other), token], &with_token), Err(Refusal::Origin), "{other}");
        }
        let own = ("origin", "http://localhost:9090");
        assert_eq!(told(&[host, own, own, token], &with_token), Err(Refusal::Origin), "two origins");
        assert_eq!(told(&[own, token], &with_token), Err(Refusal::Origin), "no host to compare");
    }

    #[test]
    fn the_token_is_wanted_but_for_probes() {
        let admin = admin("127.0.0.1:1", Some("t0ken"));
        let with = |value| check(&asked(&[("authorization", value)]), true, false, &admin);
        assert_eq!(with("Bearer t0ken"), Ok(()));
        for value in ["Bearer t0keN", "Bearer t0ken2", "t0ken", ""] {
            assert_eq!(with(value), Err(Refusal::Token), "{value}");
        }
        assert_eq!(check(&asked(&[]), true, false, &admin), Err(Refusal::Token));
        assert_eq!(check(&asked(&[]), false, true, &admin), Ok(()));
    }
}
