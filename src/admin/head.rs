//! The head of an operator's request: read whole and within a bound before Pingora parses it.
//!
//! Pingora takes a MiB of a head, and closes without a word what it does not like. But what asks here is often written
//! by hand, a probe or a script, and should be told what is wrong with it.

use std::io;

use bytes::BytesMut;
use http::StatusCode;
use pingora::protocols::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::answer::{Answer, text};
use crate::edge;

/// Most bytes of a head.
const BYTES_MAX: usize = 16 * 1024;

/// Most header lines.
const LINES_MAX: usize = 100;

/// Bytes that are read at a time.
const PIECE: usize = 4 * 1024;

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It has too many bytes or lines.
    TooLarge,
    /// It names no host, or more than one (RFC 9112, 3.2).
    Host,
    /// It is none of HTTP/1.1 or HTTP/1.0.
    NotHttp,
}

impl Wrong {
    fn answer(self) -> Answer {
        match self {
            Self::TooLarge => {
                text(431, &format!("a request head has at most {BYTES_MAX} bytes and {LINES_MAX} lines\n"))
            }
            Self::Host => text(400, "a request has exactly one Host\n"),
            Self::NotHttp => text(400, "this is no request of HTTP/1.1\n"),
        }
    }
}

/// Reads until `bytes`, of which some may have come before, hold a whole head, and what came behind it; `None` where the
/// connection ends before that.
///
/// # Errors
/// The system's. What is wrong with the head is a value.
pub(super) async fn read(
    stream: &mut Stream,
    mut bytes: BytesMut,
) -> io::Result<Option<Result<BytesMut, Wrong>>> {
    loop {
        if let Some(checked) = check(&bytes) {
            return Ok(Some(checked.map(|()| bytes)));
        }
        bytes.reserve(PIECE);
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}

/// Judges the head at the beginning of `bytes`; `None` while more of it must come.
fn check(bytes: &[u8]) -> Option<Result<(), Wrong>> {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MAX];
    let mut request = httparse::Request::new(&mut lines);
    let checked = match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() <= BYTES_MAX => return None,
        Ok(httparse::Status::Complete(end)) if end <= BYTES_MAX => host(&request),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => Err(Wrong::TooLarge),
        Err(_) => Err(Wrong::NotHttp),
    };
    Some(checked)
}

/// Exactly one; HTTP/1.0 may do without.
fn host(request: &httparse::Request<'_, '_>) -> Result<(), Wrong> {
    let hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host")).count();
    let is_old = request.version == Some(0);
    if hosts == 1 || (hosts == 0 && is_old) { Ok(()) } else { Err(Wrong::Host) }
}

/// Tells what is wrong, and closes.
pub(super) async fn refuse(stream: &mut Stream, wrong: Wrong) -> io::Result<()> {
    stream.write_all(&wire(&wrong.answer())).await?;
    stream.flush().await?;
    edge::close(stream).await;
    Ok(())
}

/// An answer as it goes over the wire, before there is anything of Pingora's to write it.
fn wire(answer: &Answer) -> Vec<u8> {
    let status: StatusCode = answer.status();
    let mut wire =
        format!("HTTP/1.1 {} {}\r\n", status.as_u16(), status.canonical_reason().unwrap_or("Error"))
            .into_bytes();
    for (name, value) in answer.headers() {
        wire.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    wire.extend_from_slice(b"connection: close\r\n\r\n");
    wire.extend_from_slice(answer.body());
    wire
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_one_host() {
        let told = |lines: &str| check(format!("{lines}\r\n\r\n").as_bytes());
        assert_eq!(told("GET / HTTP/1.1\r\nHost: a"), Some(Ok(())));
        assert_eq!(told("GET / HTTP/1.1\r\nhOST: a\r\nA: b"), Some(Ok(())));
        assert_eq!(told("GET / HTTP/1.0"), Some(Ok(())));
        for wrong in
            ["GET / HTTP/1.1", "GET / HTTP/1.1\r\nHost: a\r\nHost: a", "GET / HTTP/1.0\r\nHost: a\r\nhost: b"]
        {
            assert_eq!(told(wrong), Some(Err(Wrong::Host)), "{wrong}");
        }
        for wrong in ["GET / HTTP/2.0", "hello", "\x16\x03\x01"] {
            assert_eq!(told(wrong), Some(Err(Wrong::NotHttp)), "{wrong:?}");
        }
    }

    #[test]
    fn a_head_is_bounded_whether_it_ends_or_not() {
        let of = |value: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(value)).into_bytes();
        let frame = of(0).len();
        let whole = |value: usize| [&of(value)[..], b"\r\n\r\n"].concat();
        assert_eq!(check(&whole(BYTES_MAX - frame - 4)), Some(Ok(())));
        assert_eq!(check(&whole(BYTES_MAX - frame - 3)), Some(Err(Wrong::TooLarge)));
        assert_eq!(check(&of(BYTES_MAX - frame)), None, "it may end yet");
        assert_eq!(check(&of(BYTES_MAX - frame + 1)), Some(Err(Wrong::TooLarge)));
        // What comes behind a head is not of it.
        assert_eq!(check(&[&whole(9)[..], &[b'x'; 2 * BYTES_MAX]].concat()), Some(Ok(())));
        let lines =
            |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(count - 1));
        assert_eq!(check(lines(LINES_MAX).as_bytes()), Some(Ok(())));
        assert_eq!(check(lines(LINES_MAX + 1).as_bytes()), Some(Err(Wrong::TooLarge)));
    }
}
