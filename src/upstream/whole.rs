//! Whether a body that has ended in its framing has ended for its reader, too.
//!
//! An engine that dies may leave an end that is clean: a process in front of it closes its chunks, or the body has no
//! end but that of its connection (RFC 9112, 6.3), and such an end must not become a proper one at the client. The hard idea is to see it from two bytes, without a look at
//! what stands between them. A JSON text that begins with a bracket ends with one (it is looked at only where the
//! connection's end is its own: a length is the engine's word). An event stream ends behind a line;
//! or behind a bracket, where a sloppy engine leaves the end of its last line out: readers of lines take that for
//! whole, be it a frame or `[DONE]`. Half an answer that happens to be cut behind a bracket is not seen.

use http::StatusCode;
use pingora_http::ResponseHeader;

use super::{is_event_stream, is_json, is_plain};

/// What a body is, by its head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    /// Its end says nothing.
    #[default]
    Other,
    Events,
    Json,
}

/// The ends of a body that goes by.
#[derive(Debug, Default)]
pub(super) struct Whole {
    kind: Kind,
    /// Its first byte that is not blank.
    first: Option<u8>,
    /// Its last one; of an event stream, the last of all.
    last: Option<u8>,
}

impl Whole {
    /// Of a body with this head.
    pub(super) fn of(head: &ResponseHeader) -> Self {
        let kind = if is_event_stream(head) {
            Kind::Events
        } else if has_content(head.status) && is_plain(head) && is_endless(head) && is_json(head) {
            Kind::Json
        } else {
            Kind::Other
        };
        Self { kind, first: None, last: None }
    }

    /// A chunk goes by.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let seen = match self.kind {
            Kind::Other => return,
            Kind::Events => chunk,
            Kind::Json => chunk.trim_ascii(),
        };
        self.first = self.first.or_else(|| seen.first().copied());
        self.last = seen.last().copied().or(self.last);
    }

    /// Whether it may end here.
    pub(super) fn may_end(&self) -> bool {
        match (self.kind, self.first, self.last) {
            (Kind::Events, _, Some(last)) => matches!(last, b'\n' | b'\r' | b'}' | b']'),
            (Kind::Json, Some(b'{'), last) => last == Some(b'}'),
            (Kind::Json, Some(b'['), last) => last == Some(b']'),
            // No JSON text is empty (RFC 8259, 2).
            (Kind::Json, None, _) => false,
            _ => true,
        }
    }
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

    fn ends_well(kind: &str, chunks: &[&str]) -> bool {
        let mut head = ResponseHeader::build(200, None).expect("200 is a status");
        head.insert_header("content-type", kind).expect("a header");
        let mut whole = Whole::of(&head);
        chunks.iter().for_each(|chunk| whole.push(chunk.as_bytes()));
        whole.may_end()
    }

    #[test]
    fn an_event_stream_ends_behind_a_line_or_a_bracket() {
        let kind = "Text/Event-Stream; charset=utf-8";
        for whole in
            ["", "data: 1\n\n", "data: 1\r\n\r\n", "data: 1\r\r", "data: {}\n", "data: {}", "data: [DONE]"]
        {
            assert!(ends_well(kind, &[whole]), "{whole:?}");
        }
        for half in ["data: {\"a", "data: 1\n\nd", "data: 1\n\ndata: [DON", "data: {} "] {
            assert!(!ends_well(kind, &[half]), "{half:?}");
        }
        assert!(!ends_well(kind, &["data: 1\n\n", "data: {\"a"]), "in another chunk");
    }

    #[test]
    fn a_json_text_ends_with_the_bracket_of_its_kind() {
        let kind = "application/json; charset=utf-8";
        for whole in [&["{}"][..], &[" \n", "{\"a\": [1]", "}", "\r\n"], &["[1]"], &["\"ok\""], &["17"]] {
            assert!(ends_well(kind, whole), "{whole:?}");
        }
        for half in [&["{"][..], &["{\"a\": [1]"], &["{\"a\": 1", "  \n"], &["[1, {}", ""], &[""], &[]] {
            assert!(!ends_well(kind, half), "{half:?}");
        }
    }

    #[test]
    fn other_bodies_end_as_they_like() {
        for kind in ["audio/mpeg", "application/json-seq", "text/event-streams"] {
            assert!(ends_well(kind, &["{"]), "{kind}");
        }
        for (status, header) in [
            (500, ("via", "no success")),
            (204, ("via", "no content")),
            (200, ("content-encoding", "gzip")),
            (200, ("content-length", "1")),
            (200, ("transfer-encoding", "chunked")),
        ] {
            let mut head = ResponseHeader::build(status, None).expect("a status");
            head.insert_header("content-type", "application/json").expect("a header");
            head.insert_header(header.0, header.1).expect("a header");
            let mut whole = Whole::of(&head);
            whole.push(b"{");
            assert!(whole.may_end(), "{header:?}");
        }
    }
}
