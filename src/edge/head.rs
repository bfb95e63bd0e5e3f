//! The strict check of an HTTP/1.1 request head, on its bytes.
//!
//! Whatever two readers could take for different requests is refused here, before anyone acts on it
//! (request smuggling, RFC 9112, 11.2). Pingora reads the head again afterwards: what passes here must
//! pass there, so both use httparse, and this check only ever refuses more.

use super::target::{self, is_host};
use crate::header_rules::read_as;
use crate::rejection::Rejection;

/// Most header lines that can be allowed: Pingora's own bound.
pub const HEADERS_MAX: usize = 256;

/// Bounds of a head.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of the request target.
    pub uri_bytes: usize,
    /// Bytes of the whole head.
    pub header_bytes: usize,
    /// Header lines, at most [`HEADERS_MAX`].
    pub header_count: usize,
}

/// How the end of a request's body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes; 0 where there is none.
    Length(u64),
    /// By its chunks.
    Chunked,
}

/// Where the head ends in `bytes`, of which `scanned` have been looked at already: after its blank line.
///
/// # Errors
/// A line that ends in a bare LF: readers disagree whether it ends at all (RFC 9112, 2.2).
pub(super) fn end(bytes: &[u8], scanned: usize) -> Result<Option<usize>, Rejection> {
    for at in memchr::memchr_iter(b'\n', &bytes[scanned..]).map(|at| at + scanned) {
        match &bytes[..at] {
            [.., b'\r', b'\n', b'\r'] => return Ok(Some(at + 1)),
            [.., b'\r'] => {}
            _ => return Err(bad("a line ends without a carriage return")),
        }
    }
    Ok(None)
}

/// Checks a whole head, and gives the framing of the body that follows.
///
/// # Errors
/// What the client is to be told.
pub(super) fn check(head: &[u8], limits: &Limits) -> Result<Framing, Rejection> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Rejection::HeadTooLarge),
        Err(httparse::Error::Version) => {
            return Err(bad("the request line is not one of HTTP/1.1 or HTTP/1.0"));
        }
        Ok(httparse::Status::Partial) | Err(_) => return Err(bad("the request head is not valid HTTP/1.1")),
    }
    let target = request.path.unwrap_or_default();
    if target.len() > limits.uri_bytes {
        return Err(Rejection::UriTooLong);
    }
    if request.headers.len() > limits.header_count {
        return Err(Rejection::HeadTooLarge);
    }
    let is_current = request.version == Some(1);
    host(request.headers, is_current)?;
    if request.method == Some("CONNECT") {
        return Err(bad("this is no forward proxy: CONNECT is not served"));
    }
    target::check(target, values(request.headers, "host"))?;
    framing(request.headers, is_current)
}

/// One length, told in one way.
fn framing(headers: &[httparse::Header<'_>], is_current: bool) -> Result<Framing, Rejection> {
    if headers.iter().any(|header| is_disguised(header.name)) {
        return Err(bad("Content-Length and Transfer-Encoding are written with a hyphen"));
    }
    let mut lengths = values(headers, "content-length");
    let mut codings = values(headers, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(Framing::Length(0)),
        (Some(_), Some(_)) => Err(bad("Content-Length and Transfer-Encoding exclude each other")),
        (Some(length), None) => match (lengths.next(), number(length)) {
            (None, Some(length)) => Ok(Framing::Length(length)),
            _ => Err(bad("Content-Length must stand once and be a number")),
        },
        (None, Some(_)) if !is_current => Err(bad("HTTP/1.0 has no Transfer-Encoding")),
        (None, Some(coding)) if codings.next().is_some() || !coding.eq_ignore_ascii_case(b"chunked") => {
            Err(Rejection::CodingNotImplemented)
        }
        (None, Some(_)) => Ok(Framing::Chunked),
    }
}

/// Whether a reader to whom `_` is `-` would take this name for framing.
pub(super) fn is_disguised(name: &str) -> bool {
    let framing = |read_as: &str| {
        ["content-length", "transfer-encoding"].iter().any(|one| one.eq_ignore_ascii_case(read_as))
    };
    name.contains('_') && framing(&read_as(name))
}

/// Exactly one `Host` in HTTP/1.1 (RFC 9112, 3.2), of characters that no reader takes for a path.
fn host(headers: &[httparse::Header<'_>], is_current: bool) -> Result<(), Rejection> {
    let mut hosts = values(headers, "host");
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host) => Ok(()),
        (None, None) if !is_current => Ok(()),
        _ => Err(bad("Host must stand once and name a host")),
    }
}

fn values<'a>(headers: &'a [httparse::Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value.trim_ascii())
}

/// Digits and nothing else; 19 of them always fit.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    let is_number = (1..=19).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}

/// Which part of a head is to blame for its size. The target may not have come whole.
pub(super) fn too_large(head: &[u8], limits: &Limits) -> Rejection {
    let mut words = head.split(|byte| matches!(byte, b' ' | b'\r'));
    match words.nth(1) {
        Some(target) if target.len() > limits.uri_bytes => Rejection::UriTooLong,
        _ => Rejection::HeadTooLarge,
    }
}

pub(super) fn bad(message: &'static str) -> Rejection {
    Rejection::invalid(message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { uri_bytes: 64, header_bytes: 1024, header_count: 4 };

    fn told(lines: &str) -> u16 {
        let head = format!("{}\r\n\r\n", lines.replace('\n', "\r\n"));
        assert_eq!(end(head.as_bytes(), 0), Ok(Some(head.len())));
        check(head.as_bytes(), &LIMITS).map_or_else(|rejection| rejection.status(), |_| 200)
    }

    #[test]
    fn the_end_of_a_body_is_told_in_one_way() {
        let framing =
            |line: &str| check(format!("POST / HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n").as_bytes(), &LIMITS);
        assert_eq!(framing("a: b"), Ok(Framing::Length(0)));
        assert_eq!(framing("content-length: 0012 "), Ok(Framing::Length(12)));
        assert_eq!(framing("transfer-encoding: Chunked"), Ok(Framing::Chunked));
    }

    #[test]
    fn heads_that_two_readers_could_read_differently_are_refused() {
        let table = [
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3", 200),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked", 200),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: Chunked", 200),
            ("GET / HTTP/1.0", 200),
            ("GET /a?b=c/{d} HTTP/1.1\nHost: x", 200),
            ("OPTIONS * HTTP/1.1\nHost: x", 200),
            ("GET http://x:80/a HTTP/1.1\nHost: x:80", 200),
            ("GET HTTPS://x?a HTTP/1.1\nHost: x", 200),
            ("GET http://x/ HTTP/1.0", 200),
            ("GET http://x/ HTTP/1.1\nHost: y", 400),
            ("GET http://x:80/ HTTP/1.1\nHost: x", 400),
            ("GET http://u@x/ HTTP/1.0", 400),
            ("GET http:/\\x/ HTTP/1.1\nHost: x", 400),
            ("GET http:///a HTTP/1.0", 400),
            ("GET x:443 HTTP/1.1\nHost: x", 400),
            ("GET a HTTP/1.1\nHost: x", 400),
            ("GET /<a> HTTP/1.1\nHost: x", 400),
            ("CONNECT x:443 HTTP/1.1\nHost: x:443", 400),
            ("CONNECT / HTTP/1.1\nHost: x", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3\nTransfer-Encoding: chunked", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3\nContent-Length: 3", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3, 3", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: +3", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length:", 400),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: gzip, chunked", 501),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: ,chunked", 501),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked", 501),
            ("POST / HTTP/1.0\nTransfer-Encoding: chunked", 400),
            ("POST / HTTP/1.1\nHost: x\nTransfer_Encoding: chunked", 400),
            ("POST / HTTP/1.1\nHost: x\nContent_length: 3", 400),
            ("POST / HTTP/1.1\nHost: x\nSession_Id: 3", 200),
            ("GET / HTTP/1.1", 400),
            ("GET / HTTP/1.1\nHost: x\nHost: x", 400),
            ("GET / HTTP/1.1\nHost: x/?", 400),
            ("GET / HTTP/1.1\nHost: a b", 400),
            ("GET / HTTP/1.1\nHost: x\n folded: 1", 400),
            ("GET / HTTP/1.1\nHost : x", 400),
            ("GET / HTTP/2.0\nHost: x", 400),
            ("GET / HTTP/1.2\nHost: x", 400),
            ("GET /", 400),
            ("PRI * HTTP/2.0", 400),
            ("GET /a b HTTP/1.1\nHost: x", 400),
            ("\u{16}\u{3}\u{1}", 400),
        ];
        for (head, status) in table {
            assert_eq!(told(head), status, "{head:?}");
        }
    }

    #[test]
    fn bounds_have_their_own_statuses() {
        assert_eq!(told(&format!("GET /{} HTTP/1.1\nHost: x", "a".repeat(64))), 414);
        assert_eq!(told(&format!("GET / HTTP/1.1\nHost: x{}", "\na: 1".repeat(4))), 431);
        assert_eq!(told(&format!("GET / HTTP/1.1\nHost: x{}", "\na: 1".repeat(300))), 431);
    }

    #[test]
    fn the_end_is_found_wherever_reading_went_on() {
        let head = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nbody\n";
        for scanned in 0..26 {
            assert_eq!(end(head, scanned), Ok(Some(27)), "{scanned}");
        }
        assert_eq!(end(&head[..26], 0), Ok(None));
        assert!(end(b"GET / HTTP/1.1\nHost: x\n\n", 0).is_err());
    }

    #[test]
    fn a_head_is_too_large_by_its_target_or_its_lines() {
        let long = "a".repeat(LIMITS.uri_bytes + 1);
        for (head, rejection) in [
            (format!("GET /{long}"), Rejection::UriTooLong),
            (format!("GET /{long} HTTP/1.1\r\nHost: x"), Rejection::UriTooLong),
            (format!("GET / HTTP/1.1\r\nx: {long}"), Rejection::HeadTooLarge),
            (long, Rejection::HeadTooLarge),
        ] {
            assert_eq!(too_large(head.as_bytes(), &LIMITS), rejection);
        }
    }
}
