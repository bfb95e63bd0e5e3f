//! The head of a request: bytes in, the few facts the engine acts on out.
//!
//! Pure. Lenient where it costs nothing, strict on how the body is framed.

use super::plan::Wishes;

/// The largest request head, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;
/// The longest request id that is taken over.
const REQUEST_ID_MAX: usize = 256;

/// How the body of a request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

/// What the engine acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) target: String,
    /// HTTP/1.0 knows no chunks, and gets one answer for a connection.
    pub(super) http_1_0: bool,
    pub(super) keep_alive: bool,
    pub(super) body: Body,
    pub(super) expect_continue: bool,
    pub(super) request_id: Option<String>,
    /// The `x-sim-..` headers, or what is wrong with them.
    pub(super) wishes: Result<Wishes, String>,
}

/// Why a head was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadError {
    #[error("the request is not HTTP/1: {0}")]
    Syntax(#[from] httparse::Error),
    #[error("the request head has more than {HEAD_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the framing of the request body is not clear")]
    Framing,
}

impl Head {
    /// Reads a head and how many bytes it took; `None` while it is not complete.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(taken) = request.parse(bytes)? else {
            return if bytes.len() < HEAD_BYTES_MAX { Ok(None) } else { Err(HeadError::TooLarge) };
        };
        let mut head = Self::unreadable();
        request.method.unwrap_or_default().clone_into(&mut head.method);
        request.path.unwrap_or_default().clone_into(&mut head.target);
        head.http_1_0 = request.version == Some(0);
        head.keep_alive = !head.http_1_0;
        for header in request.headers.iter() {
            head.note(&header.name.to_ascii_lowercase(), header.value)?;
        }
        Ok(Some((head, taken)))
    }

    /// What stands for a head that was not understood: nothing can follow its answer.
    pub(super) fn unreadable() -> Self {
        Self {
            method: String::new(),
            target: String::new(),
            http_1_0: false,
            keep_alive: false,
            body: Body::Length(0),
            expect_continue: false,
            request_id: None,
            wishes: Ok(Wishes::default()),
        }
    }

    fn note(&mut self, name: &str, value: &[u8]) -> Result<(), HeadError> {
        let value = str::from_utf8(value).unwrap_or_default().trim();
        match name {
            "content-length" => {
                let length = value.parse().map_err(|_| HeadError::Framing)?;
                self.frame(Body::Length(length))?;
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => self.frame(Body::Chunked)?,
            "transfer-encoding" => return Err(HeadError::Framing),
            "connection" if has_token(value, "close") => self.keep_alive = false,
            "expect" => self.expect_continue = value.eq_ignore_ascii_case("100-continue"),
            "x-request-id" if is_request_id(value) => self.request_id = Some(value.to_owned()),
            _ => self.wish(name, value),
        }
        Ok(())
    }

    /// RFC 9112 6.3: a length together with chunks may be a smuggled request; refuse it.
    fn frame(&mut self, body: Body) -> Result<(), HeadError> {
        if self.body != Body::Length(0) && self.body != body {
            return Err(HeadError::Framing);
        }
        self.body = body;
        Ok(())
    }

    fn wish(&mut self, name: &str, value: &str) {
        let (Some(wish), Ok(wishes)) = (name.strip_prefix("x-sim-"), &mut self.wishes) else { return };
        if let Err(wrong) = wishes.set(wish, value) {
            self.wishes = Err(wrong);
        }
    }
}

fn has_token(value: &str, token: &str) -> bool {
    value.split(',').any(|item| item.trim().eq_ignore_ascii_case(token))
}

fn is_request_id(value: &str) -> bool {
    (1..=REQUEST_ID_MAX).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<(Head, usize)>, HeadError> {
        Head::parse(text.as_bytes())
    }

    #[test]
    fn a_head_is_read_once_it_is_complete() {
        let text = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\
                    Expect: 100-continue\r\nX-Request-Id: r1\r\nX-Sim-Tokens: 4\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Ok(None), "{end}");
        }
        let (head, taken) = parse(text).unwrap().unwrap();
        assert_eq!(taken, text.len());
        assert_eq!(head.body, Body::Length(7));
        assert!(head.keep_alive && head.expect_continue);
        assert_eq!(head.request_id.as_deref(), Some("r1"));
        assert_eq!(head.wishes.unwrap().tokens, Some(4));
    }

    #[test]
    fn connection_follows_the_version_and_the_header() {
        let keep_alive = |text: &str| parse(text).unwrap().unwrap().0.keep_alive;
        assert!(keep_alive("GET / HTTP/1.1\r\n\r\n"));
        assert!(!keep_alive("GET / HTTP/1.0\r\n\r\n"));
        assert!(!keep_alive("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n"));
    }

    #[test]
    fn unclear_framing_is_refused() {
        let both = "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(parse(both), Err(HeadError::Framing));
        assert_eq!(parse("POST / HTTP/1.1\r\nContent-Length: +3x\r\n\r\n"), Err(HeadError::Framing));
        assert!(matches!(parse("\u{16}\u{3}\u{1}"), Err(HeadError::Syntax(_))));
    }
}
