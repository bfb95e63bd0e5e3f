//! Writing events: the few the gateway says itself.
//!
//! What an engine sent is never written anew; these are heartbeats, errors and marks of our own.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

/// A comment that keeps an idle stream awake; stands at boundaries only.
pub static HEARTBEAT: &[u8] = b": keep-alive\n\n";

/// An event with this data, one `data:` line for each of its lines.
///
/// CR and CRLF in the data become LF for the reader: SSE has no way to carry them.
pub fn event(data: &str) -> Bytes {
    block("data: ", data)
}

/// Like [`event`], with a name, which must be one line.
pub fn named_event(name: &str, data: &str) -> Bytes {
    let mut out = BytesMut::with_capacity(name.len() + data.len() + 16);
    out.put_slice(b"event: ");
    out.put_slice(name.as_bytes());
    out.put_u8(b'\n');
    put_block(&mut out, "data: ", data);
    out.freeze()
}

/// A comment, one line for each line of the text.
pub fn comment(text: &str) -> Bytes {
    block(": ", text)
}

fn block(prefix: &str, text: &str) -> Bytes {
    let mut out = BytesMut::with_capacity(text.len() + prefix.len() + 2);
    put_block(&mut out, prefix, text);
    out.freeze()
}

fn put_block(out: &mut BytesMut, prefix: &str, text: &str) {
    for line in with_lf(text).split('\n') {
        out.put_slice(prefix.as_bytes());
        out.put_slice(line.as_bytes());
        out.put_u8(b'\n');
    }
    out.put_u8(b'\n');
}

/// The text with LF for its only line end.
fn with_lf(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_line_for_each_line() {
        assert_eq!(event("{}"), "data: {}\n\n");
        assert_eq!(event("a\nb\r\nc\rd\n"), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
        assert_eq!(event("\r"), "data: \ndata: \n\n");
        assert_eq!(event(""), "data: \n\n");
        assert_eq!(named_event("error", "{}"), "event: error\ndata: {}\n\n");
    }

    #[test]
    fn a_comment_cannot_smuggle_a_field() {
        assert_eq!(comment("x\ndata: y"), ": x\n: data: y\n\n");
        assert_eq!(comment("keep-alive"), HEARTBEAT);
    }
}
