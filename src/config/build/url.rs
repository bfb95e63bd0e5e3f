//! The URL of a backend: `http://HOST[:PORT][/PREFIX]`, or the same with `https`, and nothing else.
//!
//! It is strict, since what it lets through is dialled for every request. No name is resolved.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Where a backend is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) https: bool,
    /// Host and port as written.
    pub(super) authority: String,
    /// Without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Without its trailing slash; empty for none.
    pub(super) prefix: String,
}

/// What is wrong, and what to write.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(super) struct BadUrl {
    pub(super) what: &'static str,
    pub(super) fix: &'static str,
}

const fn bad(what: &'static str, fix: &'static str) -> BadUrl {
    BadUrl { what, fix }
}

/// Longest URL in bytes.
const URL_BYTES_MAX: usize = 1024;

/// Takes a URL apart (RFC 3986 3, RFC 9110 4.2.1).
pub(super) fn parse(url: &str) -> Result<Target, BadUrl> {
    if url.len() > URL_BYTES_MAX {
        return Err(bad("the URL is too long", "at most 1024 bytes"));
    }
    if !url.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(bad("the URL holds blanks or characters outside ASCII", "write it in visible ASCII"));
    }
    let (https, rest) = after_scheme(url)?;
    if rest.contains('?') {
        return Err(bad("the URL has a query", "leave it out"));
    }
    if rest.contains('#') {
        return Err(bad("the URL has a fragment", "leave it out"));
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(bad("the URL holds credentials", "leave them out; `auth` is the place for credentials"));
    }
    let (host, port) = host_and_port(authority)?;
    // The scheme's own ports, RFC 9110 4.2.1 and 4.2.2.
    let port = port.unwrap_or(if https { 443 } else { 80 });
    Ok(Target { https, authority: authority.to_owned(), host, port, prefix: prefix(path)? })
}

/// Takes `HOST:PORT` apart.
pub(super) fn authority(text: &str) -> Result<(String, u16), BadUrl> {
    let fix = "write HOST:PORT, as in vllm.llm.svc:8000";
    if text.len() > URL_BYTES_MAX || !text.bytes().all(|b| b.is_ascii_graphic()) || text.contains('/') {
        return Err(bad("not a host and a port", fix));
    }
    let (host, port) = host_and_port(text)?;
    Ok((host, port.ok_or_else(|| bad("the port is missing", fix))?))
}

fn after_scheme(url: &str) -> Result<(bool, &str), BadUrl> {
    match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok((false, rest)),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => Ok((true, rest)),
        Some(_) => Err(bad("the URL's scheme is neither http nor https", "write http://HOST:PORT")),
        None => Err(bad("the URL has no scheme", "write http://HOST:PORT")),
    }
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), BadUrl> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) =
                rest.split_once(']').ok_or(bad("\"[\" without \"]\"", "write http://[::1]:8000"))?;
            host.parse::<Ipv6Addr>()
                .map_err(|_| bad("no IPv6 address in the brackets", "write http://[::1]:8000"))?;
            (host, after)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            check_host(host, port)?;
            (host, port)
        }
    };
    Ok((host.to_owned(), port_after_colon(port)?))
}

/// Whether `host` is a name or an IPv4 address; `port` is what follows it.
pub(super) fn check_host(host: &str, port: &str) -> Result<(), BadUrl> {
    if host.is_empty() {
        return Err(bad("the URL has no host", "write http://HOST:PORT"));
    }
    if port.matches(':').count() > 1 {
        return Err(bad("an IPv6 address without brackets", "write http://[::1]:8000"));
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.len() > 253 || !name.split('.').all(label) {
        return Err(bad("the host is neither a name nor an address", "use letters, digits, \"-\" and \".\""));
    }
    // A name whose last label is a number is meant as an address (WHATWG URL 3.5).
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.bytes().all(|b| b.is_ascii_digit()) && name.parse::<Ipv4Addr>().is_err() {
        return Err(bad("the host is no valid IPv4 address", "write four numbers from 0 to 255"));
    }
    Ok(())
}

/// `None` where nothing is written.
fn port_after_colon(text: &str) -> Result<Option<u16>, BadUrl> {
    const WRONG: BadUrl = bad("the URL's port is not a number from 1 to 65535", "write http://HOST:PORT");
    match text.strip_prefix(':') {
        None if text.is_empty() => Ok(None),
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => match port.parse() {
            Ok(0) | Err(_) => Err(WRONG),
            Ok(port) => Ok(Some(port)),
        },
        _ => Err(WRONG),
    }
}

fn prefix(path: &str) -> Result<String, BadUrl> {
    let prefix = path.strip_suffix('/').unwrap_or(path);
    let sound = |segment: &str| {
        !segment.is_empty()
            && segment != "."
            && segment != ".."
            && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@".contains(&b))
    };
    if prefix.is_empty() || prefix[1..].split('/').all(sound) {
        return Ok(prefix.to_owned());
    }
    Err(bad(
        "the URL's path cannot be a prefix",
        "write plain segments, as in /llm/v2, without \"//\", \"..\", \"%\" or \"*\"",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(url: &str) -> (bool, String, String, u16, String) {
        let target = parse(url).unwrap();
        (target.https, target.authority, target.host, target.port, target.prefix)
    }

    fn parts(
        https: bool,
        authority: &str,
        host: &str,
        port: u16,
        prefix: &str,
    ) -> (bool, String, String, u16, String) {
        (https, authority.into(), host.into(), port, prefix.into())
    }

    #[test]
    fn a_url_is_taken_apart() {
        assert_eq!(target("http://10.0.0.11:8000"), parts(false, "10.0.0.11:8000", "10.0.0.11", 8000, ""));
        assert_eq!(target("HTTP://gpu-1.llm.svc"), parts(false, "gpu-1.llm.svc", "gpu-1.llm.svc", 80, ""));
        assert_eq!(target("http://[::1]:8000/"), parts(false, "[::1]:8000", "::1", 8000, ""));
        assert_eq!(target("http://gw/team/llm/"), parts(false, "gw", "gw", 80, "/team/llm"));
        assert_eq!(target("https://api.x.com"), parts(true, "api.x.com", "api.x.com", 443, ""));
        assert_eq!(target("HTTPS://[::1]:8443/v1x"), parts(true, "[::1]:8443", "::1", 8443, "/v1x"));
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        for url in [
            "",
            "gpu-1:8000",
            "http://",
            "http://:8000",
            "https://",
            "https://u:p@gpu-1",
            "ftp://gpu-1",
            "http://u:p@gpu-1",
            "http://gpu-1?x",
            "http://gpu-1#x",
            "http://gpu-1:0",
            "http://gpu-1:65536",
            "http://gpu-1:",
            "http://gpu-1:+80",
            "http://::1:8000",
            "http://[::1",
            "http://[gpu]:80",
            "http://[::1]8000",
            "http://10.0.0.256",
            "http://10.0.0",
            "http://1",
            "http://a b",
            "http://gpu\u{e9}",
            "http://gpu-1//x",
            "http://gpu-1/../x",
            "http://gpu-1/%2e",
            "http://gpu-1/*",
            "http://.gpu",
            "http:///x",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(https?://)?[a-z0-9:/@?#.%\\[\\]*-]{0,40}|.{0,40}") {
            if let Ok(target) = parse(&text) {
                prop_assert!(target.port > 0 && !target.host.is_empty() && !target.prefix.ends_with('/'));
            }
        }
    }
}
