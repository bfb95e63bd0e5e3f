//! What a hook makes of an answer, and the form that keeps events whole.

use bytes::{Bytes, BytesMut};

/// What becomes of an event, or of a JSON answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It goes to the client byte for byte.
    Pass,
    /// It does not go to the client.
    Drop,
    /// The client gets this instead. Of an event these are its lines: what it must end with is seen to, and a blank line
    /// among them makes two events of it. Nothing but line ends is the same as [`Change::Drop`].
    Replace(Bytes),
    /// The answer is broken off: its framing is broken, so that no client takes it for a whole one, and the engine is
    /// told to stop. The access log says `withheld`.
    Break,
}

/// What becomes of an answer that a hook does not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// It passes: the hook looks on, and what it misses harms nobody.
    Pass,
    /// It is refused with 502 and the code `withheld` where its head already says that it cannot be seen, and else
    /// broken off before a byte of it has gone out: the hook protects somebody.
    Break,
}

/// `with` as the lines of an event whose raw lines were `raw`: they end as those did, so that the blank line behind
/// them ends the event as it did before. `None` where nothing is left.
///
/// A CR at the end would be taken together with a blank line's LF, and the event would not end.
pub(crate) fn as_lines(with: Bytes, raw: &[u8]) -> Option<Bytes> {
    let line_end: &[u8] = match raw {
        [.., b'\r', b'\n'] => b"\r\n",
        [.., b'\r'] => b"\r",
        // A lone comment has none of its own here, and what takes its place may not be a lone comment.
        _ => b"\n",
    };
    let length = with.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'))? + 1;
    if with[length..] == *line_end {
        return Some(with);
    }
    let mut lines = BytesMut::with_capacity(length + line_end.len());
    lines.extend_from_slice(&with[..length]);
    lines.extend_from_slice(line_end);
    Some(lines.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_those_did_that_they_stand_for() {
        let lines =
            |with: &'static str, raw: &str| as_lines(Bytes::from_static(with.as_bytes()), raw.as_bytes());
        let is = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
        assert_eq!(lines("data: b\n", "data: a\n"), is("data: b\n"));
        assert_eq!(lines("data: b", "data: a\n"), is("data: b\n"));
        assert_eq!(lines("data: b\r", "data: a\n"), is("data: b\n"));
        assert_eq!(lines("data: b\n\n", "data: a\r\n"), is("data: b\r\n"));
        assert_eq!(lines("data: b", "data: a\r"), is("data: b\r"));
        assert_eq!(lines("data: b\n\ndata: c", "data: a\n"), is("data: b\n\ndata: c\n"));
        assert_eq!(lines(": b", ": a"), is(": b\n"));
        assert_eq!(lines("\r\n\n", "data: a\n"), None);
        assert_eq!(lines("", "data: a\n"), None);
    }
}
