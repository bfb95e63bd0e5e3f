//! The two ends of an event that is too large to be held.
//!
//! Its middle is on its way to the client already; what is kept of it is enough to know its name, and
//! what stands last in its data. The same for every way the stream was cut into chunks.

use super::boundary::BOM;

/// Bytes kept of its beginning: the `event:` line and the first members of its data.
const HEAD: usize = 256;
/// Bytes kept of its end: the last members of its data, whatever text stood before them.
const TAIL: usize = 2048;
/// A line end, which is no part of the event, is kept until the end is known.
const KEPT: usize = TAIL + 2;

/// Beginning and end of an event, which overlap where it is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends<'a> {
    /// Its first bytes, at most 256.
    pub head: &'a [u8],
    /// Its last bytes without the end of the last line, at most 2 KiB.
    pub tail: &'a [u8],
}

impl<'a> Ends<'a> {
    /// The ends of an event that is there as a whole.
    pub(super) fn of(raw: &'a [u8]) -> Self {
        Self { head: &raw[..raw.len().min(HEAD)], tail: last(raw, TAIL) }
    }
}

/// Collects the ends of an event that passes in pieces.
#[derive(Debug, Default)]
pub(super) struct Collector {
    head: Vec<u8>,
    tail: Vec<u8>,
    length: usize,
}

impl Collector {
    /// An event begins, the first of its stream or another.
    pub(super) fn begin(&mut self, piece: &[u8], first: bool) {
        *self = Self::default();
        self.push(if first { piece.strip_prefix(&BOM).unwrap_or(piece) } else { piece });
    }

    /// It goes on.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.length += piece.len();
        let room = HEAD - self.head.len();
        self.head.extend_from_slice(&piece[..piece.len().min(room)]);
        let newest = last(piece, KEPT);
        let excess = (self.tail.len() + newest.len()).saturating_sub(KEPT);
        self.tail.drain(..excess);
        self.tail.extend_from_slice(newest);
    }

    /// It has ended with what was pushed last.
    pub(super) fn ends(&self) -> Ends<'_> {
        let tail = without_line_end(&self.tail);
        let length = self.length - (self.tail.len() - tail.len());
        Ends { head: &self.head[..self.head.len().min(length)], tail: last(tail, TAIL) }
    }
}

fn last(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(most)..]
}

/// The event without the end of its last line, whole or cut after the CR of a CRLF: so it is the
/// same for every split.
pub(super) fn without_line_end(raw: &[u8]) -> &[u8] {
    let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    raw.strip_suffix(b"\r").unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_give_the_ends_of_the_whole() {
        for length in [1, 2, HEAD - 1, HEAD, HEAD + 1, TAIL, KEPT + 1, 3 * KEPT] {
            let whole: Vec<u8> = (0..length).map(|at| b'a' + (at % 26) as u8).collect();
            let lined = [&whole[..], b"\r\n"].concat();
            for size in [1, 7, 300, KEPT + 5, 2 * KEPT] {
                let mut collector = Collector::default();
                let mut pieces = lined.chunks(size);
                collector.begin(pieces.next().expect("a piece"), true);
                pieces.for_each(|piece| collector.push(piece));
                assert_eq!(collector.ends(), Ends::of(&whole), "{length} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_bom_is_no_part_of_the_first() {
        let mut collector = Collector::default();
        collector.begin("\u{feff}data: x".as_bytes(), true);
        assert_eq!(collector.ends(), Ends::of(b"data: x"));
    }
}
