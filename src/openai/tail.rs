//! Whether an event that its stream ended within is there as a whole.
//!
//! By the rules of SSE it is none (WHATWG 9.2.6: without its blank line it is dropped), but sloppy engines leave the end
//! of their last event out, and readers of lines take it. The one hard idea: a cut strikes anywhere, so that a JSON text
//! which is whole was hardly cut.

use serde::de::IgnoredAny;

use super::lax;
use crate::sse::{Event, EventKind};

/// Whether all of it is there but its blank line.
pub fn is_whole(event: &Event<'_>) -> bool {
    if event.kind != EventKind::Data {
        return false;
    }
    match (event.raw, event.data()) {
        (Some(raw), Some(data)) => last_line_is_data(raw) && is_whole_data(data.trim_ascii(), ends_line(raw)),
        // Of one that was too large to be held.
        _ => event.ends.is_some_and(|ends| ends_in_bracket(ends.tail)),
    }
}

/// The last line may want its end, but must be more than the beginning of a name.
fn last_line_is_data(raw: &[u8]) -> bool {
    let last = raw.rsplit(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
    last.is_empty() || last.starts_with(b"data:")
}

fn ends_line(raw: &[u8]) -> bool {
    raw.last().is_some_and(|byte| b"\r\n".contains(byte))
}

fn is_whole_data(data: &[u8], ends_line: bool) -> bool {
    match data.first() {
        _ if data == b"[DONE]" => true,
        Some(b'{' | b'[') => match serde_json::from_str::<IgnoredAny>(&lax::utf8(data)) {
            Ok(_) => true,
            // What no JSON reader takes (a bare NaN) may be whole all the same.
            Err(error) => !error.is_eof() && ends_in_bracket(data),
        },
        _ => ends_line,
    }
}

fn ends_in_bracket(data: &[u8]) -> bool {
    data.last().is_some_and(|byte| b"}]".contains(byte))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::sse::Reframer;

    /// Of the last event of a stream, held whole up to `hold` bytes; `None` where it ends behind one.
    fn tail_is_whole(stream: &str, hold: usize) -> Option<bool> {
        let mut reframer = Reframer::new(hold);
        reframer.push(Bytes::copy_from_slice(stream.as_bytes()), &mut |_| {});
        reframer.tail().map(|event| is_whole(&event))
    }

    #[test]
    fn what_is_whole_may_want_its_blank_line() {
        for whole in [
            "data: [DONE]",
            "data: [DONE]\r\n",
            "data: {}",
            "\u{feff}data:{\"a\": [1]}\n",
            "data: 1\n\nevent: a\ndata: {\"a\":\ndata: 1}\r",
            "data: {\"a\": NaN}",
            "data: x\n",
            ": c\n\ndata: {} ",
        ] {
            assert_eq!(tail_is_whole(whole, 64), Some(true), "{whole:?}");
        }
    }

    #[test]
    fn what_was_cut_is_not() {
        for half in [
            "data: {\"a\":\n",
            "data: {\"a\": {}",
            "data: {\"a\": {}\n",
            "data: {\"a\": nu",
            "data: {}\ndat",
            "data: {}\ndata: {",
            "data: [DON",
            "data: 1\n\nd",
            "data: x",
            "event: message_stop\n",
            ": comm",
        ] {
            assert_eq!(tail_is_whole(half, 64), Some(false), "{half:?}");
        }
    }

    #[test]
    fn a_large_one_ends_in_a_bracket() {
        let large = format!("data: {{\"a\": \"{}", "x".repeat(100));
        assert_eq!(tail_is_whole(&large, 64), Some(false));
        assert_eq!(tail_is_whole(&format!("{large}\n"), 64), Some(false));
        assert_eq!(tail_is_whole(&format!("{large}\"}}"), 64), Some(true));
        assert_eq!(tail_is_whole(&format!("{large}\"}}\r\n"), 64), Some(true));
    }

    #[test]
    fn behind_an_event_there_is_none() {
        for at_boundary in ["", "data: 1\n\n", "data: 1\r\n\r", ": comment\n", "\u{feff}"] {
            assert_eq!(tail_is_whole(at_boundary, 64), None, "{at_boundary:?}");
        }
    }
}
