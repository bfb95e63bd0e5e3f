//! Sending clients of a plain listener to https.
//!
//! The location is built from what the client wrote in `Host`, so that is read strictly: a name or an address,
//! and nothing that a browser could take for a path or for another host: to it `0x7f.1` is 127.0.0.1.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::HOST;
use pingora_http::RequestHeader;

use super::head::origin_form;
use super::respond::Reply;
use crate::rejection::Rejection;

/// The port that https has without saying so.
const HTTPS: u16 = 443;

/// Longest name of a host (RFC 1035, 2.3.4).
const NAME_MAX: usize = 253;

/// The answer that sends the client to `port`.
///
/// # Errors
/// There is no `Host`, or it is none that one can be sent to.
pub(super) fn to_https(head: &RequestHeader, port: u16) -> Result<Reply, Rejection> {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(name);
    let host = host.ok_or_else(|| {
        Rejection::invalid("this port only sends you to https, and Host does not say to which name", None)
    })?;
    let target = Some(origin_form(head)).filter(|target| target.starts_with('/')).unwrap_or("/");
    let port = if port == HTTPS { String::new() } else { format!(":{port}") };
    Ok(Reply::redirect(format!("https://{host}{port}{target}")))
}

/// The name or address in a `Host`, without its port.
fn name(host: &str) -> Option<&str> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_address = address.parse::<Ipv6Addr>().is_ok() && is_port(port);
        return is_address.then(|| &host[..address.len() + 2]);
    }
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let relative = name.strip_suffix('.').unwrap_or(name);
    let is_name = relative.len() <= NAME_MAX && relative.split('.').all(is_label);
    let is_read_once = !ends_in_a_number(relative) || relative.parse::<Ipv4Addr>().is_ok();
    (is_name && is_read_once && is_port(port)).then_some(name)
}

/// Whether a browser takes a host for an IPv4 address, in however few parts, octal or hexadecimal (the URL standard,
/// 3.5). One way to write it is enough.
fn ends_in_a_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let is_hex = hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hex || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Nothing, or a colon and a port.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_nothing_else() {
        let table = [
            ("llm.example.com", Some("llm.example.com")),
            ("llm.example.com:8080", Some("llm.example.com")),
            ("llm.example.com.", Some("llm.example.com.")),
            ("192.0.2.7:80", Some("192.0.2.7")),
            ("[2001:db8::7]:80", Some("[2001:db8::7]")),
            ("[2001:db8::7]", Some("[2001:db8::7]")),
            ("192.0.2.7.", Some("192.0.2.7.")),
            ("my_host", Some("my_host")),
            ("7up.example", Some("7up.example")),
            ("1.2.3.4.example", Some("1.2.3.4.example")),
            ("0xg.example", Some("0xg.example")),
            ("0x7f.1", None),
            ("0x7f000001", None),
            ("a.0X7f", None),
            ("a.0x", None),
            ("2130706433", None),
            ("127.1", None),
            ("0177.0.0.1", None),
            ("127.0.0.1.5", None),
            ("example.1", None),
            ("127.0.0.256", None),
            ("", None),
            (":80", None),
            ("a..b", None),
            ("a:b", None),
            ("a:65536", None),
            ("2001:db8::7", None),
            ("[2001:db8::7", None),
            ("[evil]", None),
            ("[::1]evil", None),
            ("a%2fb", None),
            ("a~b", None),
            ("a/b", None),
            ("a@b", None),
            ("a\\b", None),
        ];
        for (host, wanted) in table {
            assert_eq!(name(host), wanted, "{host:?}");
        }
        assert_eq!(name(&"a.".repeat(200)), None);
    }
}
