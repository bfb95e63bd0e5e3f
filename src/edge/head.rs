//! The strict check of an HTTP/1.1 request head, on its bytes.
//!
//! Whatever two readers could take for different requests is refused here, before anyone acts on it
//! (request smuggling, RFC 9112, 11.2). Pingora reads the head again afterwards: what passes here must
//! pass there, so both use httparse, and this check only ever refuses more.

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

/// Checks a whole head.
///
/// # Errors
/// What the client is to be told.
pub(super) fn check(head: &[u8], limits: &Limits) -> Result<(), Rejection> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Rejection::HeadTooLarge),
        Ok(httparse::Status::Partial) | Err(_) => return Err(bad("the request head is not valid HTTP/1.1")),
    }
    if request.path.is_some_and(|target| target.len() > limits.uri_bytes) {
        return Err(Rejection::UriTooLong);
    }
    if request.headers.len() > limits.header_count {
        return Err(Rejection::HeadTooLarge);
    }
    let is_current = request.version == Some(1);
    framing(request.headers, is_current)?;
    host(request.headers, is_current)
}

/// One length, told in one way.
fn framing(headers: &[httparse::Header<'_>], is_current: bool) -> Result<(), Rejection> {
    let mut lengths = values(headers, "content-length");
    let mut codings = values(headers, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(()),
        (Some(_), Some(_)) => Err(bad("Content-Length and Transfer-Encoding exclude each other")),
        (Some(length), None) if lengths.next().is_some() || !is_number(length) => {
            Err(bad("Content-Length must stand once and be a number"))
        }
        (Some(_), None) => Ok(()),
        (None, Some(_)) if !is_current => Err(bad("HTTP/1.0 has no Transfer-Encoding")),
        (None, Some(coding)) if codings.next().is_some() || !coding.eq_ignore_ascii_case(b"chunked") => {
            Err(Rejection::CodingNotImplemented)
        }
        (None, Some(_)) => Ok(()),
    }
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

/// Whether no reader takes any part of it for a path.
pub(super) fn is_host(host: &[u8]) -> bool {
    host.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]%~".contains(byte))
}

fn values<'a>(headers: &'a [httparse::Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value.trim_ascii())
}

pub(super) fn is_number(value: &[u8]) -> bool {
    (1..=19).contains(&value.len()) && value.iter().all(u8::is_ascii_digit)
}

fn bad(message: &'static str) -> Rejection {
    Rejection::invalid(message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { uri_bytes: 64, header_bytes: 1024, header_count: 4 };

    fn told(lines: &str) -> u16 {
        let head = format!("{}\r\n\r\n", lines.replace('\n', "\r\n"));
        assert_eq!(end(head.as_bytes(), 0), Ok(Some(head.len())));
        check(head.as_bytes(), &LIMITS).map_or_else(|rejection| rejection.status(), |()| 200)
    }

    #[test]
    fn heads_that_two_readers_could_read_differently_are_refused() {
        let table = [
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3", 200),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked", 200),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: Chunked", 200),
            ("GET / HTTP/1.0", 200),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3\nTransfer-Encoding: chunked", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3\nContent-Length: 3", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: 3, 3", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length: +3", 400),
            ("POST / HTTP/1.1\nHost: x\nContent-Length:", 400),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: gzip, chunked", 501),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: ,chunked", 501),
            ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked", 501),
            ("POST / HTTP/1.0\nTransfer-Encoding: chunked", 400),
            ("GET / HTTP/1.1", 400),
            ("GET / HTTP/1.1\nHost: x\nHost: x", 400),
            ("GET / HTTP/1.1\nHost: x/?", 400),
            ("GET / HTTP/1.1\nHost: a b", 400),
            ("GET / HTTP/1.1\nHost: x\n folded: 1", 400),
            ("GET / HTTP/1.1\nHost : x", 400),
            ("GET / HTTP/2.0\nHost: x", 400),
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
}
