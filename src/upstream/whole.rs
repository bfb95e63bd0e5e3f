//! Whether a body that has ended in its framing has ended for its reader, too.
//!
//! An engine that dies may leave an end that is clean: a process in front of it closes its chunks, or the body has no
//! end but that of its connection (RFC 9112, 6.3), and such an end must not become a proper one at the client. The hard
//! idea is to see from a few bytes, without a look at what stands between them, where there is a doubt at all. A JSON
//! text that begins with a bracket ends with one (it is looked at only where the connection's end is its own: a length is
//! the engine's word). An event stream ends behind a blank line, in a framing of its own. Any other end of one is for
//! those to judge who have read it (`Link::word`).

use http::StatusCode;
use pingora_http::ResponseHeader;

use super::{is_event_stream, is_json, is_plain};

/// The ends of a body that goes by, as far as they say something.
#[derive(Debug, Default)]
pub(super) enum Whole {
    /// Its end says nothing.
    #[default]
    Other,
    /// An event stream.
    Events {
        /// Only the end of its connection ends it.
        is_open: bool,
        /// Its last bytes, zeros in front of the first.
        last: [u8; 3],
    },
    /// A JSON text that only the end of its connection ends: its first byte and its last that are not blank.
    Json {
        /// The first.
        first: Option<u8>,
        /// The last.
        last: Option<u8>,
    },
}

/// What an end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// That of the answer.
    Whole,
    /// A cut.
    Half,
    /// One or the other: that depends on what its events said.
    InDoubt,
}

impl Whole {
    /// Of a body with this head.
    pub(super) fn of(head: &ResponseHeader) -> Self {
        if !has_content(head.status) {
            Self::Other
        } else if is_event_stream(head) {
            Self::Events { is_open: is_endless(head), last: [0; 3] }
        } else if is_plain(head) && is_endless(head) && is_json(head) {
            Self::Json { first: None, last: None }
        } else {
            Self::Other
        }
    }

    /// A chunk goes by.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::Other => {}
            Self::Events { last, .. } => {
                for &byte in &chunk[chunk.len().saturating_sub(3)..] {
                    *last = [last[1], last[2], byte];
                }
            }
            Self::Json { first, last } => {
                let seen = chunk.trim_ascii();
                *first = first.or_else(|| seen.first().copied());
                *last = seen.last().copied().or(*last);
            }
        }
    }

    /// Whether it is an event stream that has a body.
    pub(super) fn is_events(&self) -> bool {
        matches!(self, Self::Events { .. })
    }

    /// Whether it is an event stream that only the end of its connection ends.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Events { is_open: true, .. })
    }

    /// What its end is, if it is here.
    pub(super) fn end(&self) -> End {
        let is_whole = match self {
            Self::Other => true,
            Self::Events { is_open: false, last } if is_blank_line(*last) => true,
            Self::Events { .. } => return End::InDoubt,
            Self::Json { first: Some(b'{'), last } => *last == Some(b'}'),
            Self::Json { first: Some(b'['), last } => *last == Some(b']'),
            // No JSON text is empty (RFC 8259, 2).
            Self::Json { first, .. } => first.is_some(),
        };
        if is_whole { End::Whole } else { End::Half }
    }
}

/// Whether a stream that ends with these bytes ends with a blank line.
fn is_blank_line(last: [u8; 3]) -> bool {
    matches!(last, [_, b'\n', b'\n' | b'\r'] | [_, b'\r', b'\r'] | [b'\n' | b'\r', b'\r', b'\n'])
}

/// Whether an answer with this status is a success that has a body (RFC 9110, 15.3.5 and 15.3.6).
fn has_content(status: StatusCode) -> bool {
    status.is_success() && !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT)
}

/// Whether only the end of the connection ends the body.
fn is_endless(head: &ResponseHeader) -> bool {
    let framings = [http::header::CONTENT_LENGTH, http::header::TRANSFER_ENCODING];
    framings.iter().all(|name| !head.headers.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(headers: &[(&'static str, &str)], chunks: &[&str]) -> End {
        let mut head = ResponseHeader::build(200, None).expect("200 is a status");
        for (name, value) in headers {
            head.insert_header(*name, *value).expect("a header");
        }
        let mut whole = Whole::of(&head);
        chunks.iter().for_each(|chunk| whole.push(chunk.as_bytes()));
        whole.end()
    }

    #[test]
    fn an_event_stream_ends_behind_a_blank_line() {
        let framed = [("content-type", "Text/Event-Stream; charset=utf-8"), ("transfer-encoding", "chunked")];
        for whole in
            ["data: 1\n\n", "data: 1\r\n\r\n", "data: 1\r\r", "data: 1\n\r\n", "\n\r", "data: 1\r\r\n"]
        {
            let by_byte: Vec<String> = whole.chars().map(String::from).collect();
            let by_byte: Vec<&str> = by_byte.iter().map(String::as_str).collect();
            assert_eq!(
                (end_of(&framed, &[whole]), end_of(&framed, &by_byte)),
                (End::Whole, End::Whole),
                "{whole:?}"
            );
            assert_eq!(end_of(&framed[..1], &[whole]), End::InDoubt, "{whole:?}, which its connection ends");
        }
        for other in ["", "\n", "data: 1\r\n", "data: {}\n", "data: {}", "data: 1\n\nd", "\n\n: c\n"] {
            assert_eq!(end_of(&framed, &[other]), End::InDoubt, "{other:?}");
        }
    }

    #[test]
    fn a_json_text_ends_with_the_bracket_of_its_kind() {
        let kind = [("content-type", "application/json; charset=utf-8")];
        for whole in [&["{}"][..], &[" \n", "{\"a\": [1]", "}", "\r\n"], &["[1]"], &["\"ok\""], &["17"]] {
            assert_eq!(end_of(&kind, whole), End::Whole, "{whole:?}");
        }
        for half in [&["{"][..], &["{\"a\": [1]"], &["{\"a\": 1", "  \n"], &["[1, {}", ""], &[""], &[]] {
            assert_eq!(end_of(&kind, half), End::Half, "{half:?}");
        }
    }

    #[test]
    fn other_bodies_end_as_they_like() {
        for kind in ["audio/mpeg", "application/json-seq", "text/event-streams"] {
            assert_eq!(end_of(&[("content-type", kind)], &["{"]), End::Whole, "{kind}");
        }
        for header in
            [("content-encoding", "gzip"), ("content-length", "1"), ("transfer-encoding", "chunked")]
        {
            let headers = [("content-type", "application/json"), header];
            assert_eq!(end_of(&headers, &["{"]), End::Whole, "{header:?}");
        }
        for status in [500, 204] {
            for kind in ["application/json", "text/event-stream"] {
                let mut head = ResponseHeader::build(status, None).expect("a status");
                head.insert_header("content-type", kind).expect("a header");
                assert_eq!(Whole::of(&head).end(), End::Whole, "{status} {kind}");
            }
        }
    }
}
