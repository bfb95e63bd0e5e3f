//! Where events end in a stream of chunks.
//!
//! The [`Scanner`] reads every byte once, keeps a few bytes of state whatever the event's size, and
//! says after which bytes an event is complete and what sort it was. It does not keep bytes and does
//! not read values.
//!
//! The one hard idea: a CR ends its line at once, and the LF that may follow belongs to it even
//! when it arrives a chunk later. So an event is never late by one byte, and a CRLF cut in two
//! never makes a phantom blank line.
//!
//! ```text
//! Bom --first byte that is not part of a BOM--> Empty
//! Empty --":"--> Comment      Empty --"data:"--> Data      Empty --other--> Field
//! any --line end--> Empty; a line that was Empty ends the event
//! ```

use memchr::memchr2;

/// What sort of event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It has a `data` line: a client dispatches it.
    Data,
    /// One comment line that stood alone.
    Comment,
    /// Fields, but no `data` among them (WHATWG 9.2.6: such a block is not dispatched).
    Other,
}

/// A place in the stream where no event is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundary {
    /// Offset in the chunk just after the last byte of what ended.
    pub at: usize,
    /// The event that ended here; `None` for a blank line that ends nothing, and for the LF of a
    /// CRLF whose CR had ended the event in an earlier chunk.
    pub event: Option<EventKind>,
    /// The event was one `data` line, as nearly all of an LLM stream are: its data need not be looked for.
    pub single: bool,
}

/// A resumable scanner for event ends: LF, CRLF and CR, any mix, any split.
#[derive(Debug, Clone)]
pub struct Scanner {
    line: Line,
    event: Pending,
    /// The last byte of the former chunk was a CR: a LF that comes first now belongs to it.
    after_cr: bool,
}

impl Scanner {
    /// A scanner at the start of a stream, where a BOM may stand.
    pub fn new() -> Self {
        Self { line: Line::Bom(0), event: Pending::Nothing, after_cr: false }
    }

    /// The next boundary in `chunk`, looking from offset `from`; `None` when the chunk is used up.
    ///
    /// Call it with 0 first and then with each boundary's `at`, until it answers `None`; then go on
    /// with the next chunk.
    pub fn next(&mut self, chunk: &[u8], from: usize) -> Option<Boundary> {
        let mut at = from;
        if self.after_cr && at < chunk.len() {
            self.after_cr = false;
            if chunk[at] == b'\n' {
                at += 1;
                if self.between() {
                    return Some(Boundary { at, event: None, single: false });
                }
            }
        }
        loop {
            at = self.classify(chunk, at);
            // Half of all lines are blank: no search for those.
            at += match chunk.get(at)? {
                b'\n' | b'\r' => 1,
                _ => memchr2(b'\n', b'\r', &chunk[at..])? + 1,
            };
            if chunk[at - 1] == b'\r' {
                match chunk.get(at) {
                    Some(b'\n') => at += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            let single = self.event == Pending::Single;
            if let Some(event) = self.end_line() {
                return Some(Boundary { at, event, single });
            }
        }
    }

    /// Whether no byte of an unfinished event has been seen.
    fn between(&self) -> bool {
        matches!(self.line, Line::Empty | Line::Bom(0)) && self.event == Pending::Nothing
    }

    /// Reads on until the line's kind is settled; returns the offset of the first byte not read.
    fn classify(&mut self, chunk: &[u8], from: usize) -> usize {
        // Nearly every line of an LLM stream is of this form.
        if self.line == Line::Empty && chunk[from..].starts_with(b"data:") {
            self.line = Line::Data;
            return from + DATA.len() + 1;
        }
        let mut at = from;
        while let Some(&byte) = chunk.get(at) {
            if self.line.settled() || byte == b'\n' || byte == b'\r' {
                break;
            }
            self.line = self.line.with(byte);
            at += 1;
        }
        at
    }

    /// Takes the line's end into account; `Some` when it is a boundary.
    fn end_line(&mut self) -> Option<Option<EventKind>> {
        match std::mem::replace(&mut self.line, Line::Empty) {
            Line::Empty | Line::Bom(0) => {
                return Some(std::mem::replace(&mut self.event, Pending::Nothing).kind());
            }
            Line::Comment if self.event == Pending::Nothing => return Some(Some(EventKind::Comment)),
            Line::Data if self.event == Pending::Nothing => self.event = Pending::Single,
            Line::Comment => self.event = self.event.with_comment(),
            // WHATWG 9.2.6: a line without a colon is a field name with an empty value.
            Line::Data | Line::Name(4) => self.event = Pending::Data,
            Line::Bom(_) | Line::Name(_) | Line::Field => {
                self.event = match self.event {
                    Pending::Nothing | Pending::Fields => Pending::Fields,
                    Pending::Single | Pending::Data => Pending::Data,
                };
            }
        }
        None
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

/// What the current line has shown so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// The first line of the stream: so many bytes, all of them a BOM's first ones.
    Bom(u8),
    /// No byte yet.
    Empty,
    /// So many bytes, all of them the first ones of `data`.
    Name(u8),
    /// It began with a colon.
    Comment,
    /// It began with `data:`.
    Data,
    /// Any other field.
    Field,
}

impl Line {
    /// Whether more bytes cannot change it.
    fn settled(self) -> bool {
        matches!(self, Self::Comment | Self::Data | Self::Field)
    }

    /// The line with one more byte, which is neither CR nor LF.
    fn with(self, byte: u8) -> Self {
        match self {
            // WHATWG 9.2.6: one BOM at the start of the stream is ignored.
            Self::Bom(n) if byte == BOM[usize::from(n)] => {
                if n == 2 {
                    Self::Empty
                } else {
                    Self::Bom(n + 1)
                }
            }
            Self::Bom(0) | Self::Empty => match byte {
                b':' => Self::Comment,
                b'd' => Self::Name(1),
                _ => Self::Field,
            },
            Self::Name(4) if byte == b':' => Self::Data,
            Self::Name(n) if DATA.get(usize::from(n)) == Some(&byte) => Self::Name(n + 1),
            Self::Bom(_) | Self::Name(_) | Self::Field => Self::Field,
            Self::Comment => Self::Comment,
            Self::Data => Self::Data,
        }
    }
}

/// What the complete lines of the unfinished event were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    Fields,
    /// One line, which begins with `data:`.
    Single,
    /// More than that, data among them.
    Data,
}

impl Pending {
    fn with_comment(self) -> Self {
        if self == Self::Single { Self::Data } else { self }
    }

    fn kind(self) -> Option<EventKind> {
        match self {
            Self::Nothing => None,
            Self::Fields => Some(EventKind::Other),
            Self::Single | Self::Data => Some(EventKind::Data),
        }
    }
}

/// The UTF-8 byte order mark.
pub(super) const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
const DATA: &[u8] = b"data";

#[cfg(test)]
mod tests {
    use super::*;
    use EventKind::{Comment, Data, Other};

    /// Boundaries as (offset in the whole input, event), for chunks given one by one.
    fn scan(chunks: &[&str]) -> Vec<(usize, Option<EventKind>)> {
        let mut scanner = Scanner::new();
        let mut base = 0;
        let mut found = Vec::new();
        for chunk in chunks {
            let mut at = 0;
            while let Some(boundary) = scanner.next(chunk.as_bytes(), at) {
                at = boundary.at;
                found.push((base + at, boundary.event));
            }
            base += chunk.len();
        }
        found
    }

    #[test]
    fn every_line_end_ends_an_event() {
        assert_eq!(scan(&["data: a\n\ndata: b\n\n"]), [(9, Some(Data)), (18, Some(Data))]);
        assert_eq!(scan(&["data: a\r\n\r\n"]), [(11, Some(Data))]);
        assert_eq!(scan(&["data: a\r\rdata: b\r\r"]), [(9, Some(Data)), (18, Some(Data))]);
        assert_eq!(scan(&["data: a\n\r\n"]), [(10, Some(Data))]);
    }

    #[test]
    fn cr_at_chunk_end_is_a_line_end_and_its_lf_is_no_second_one() {
        assert_eq!(scan(&["data: a\r", "\n"]), []);
        assert_eq!(scan(&["data: a\r", "\r"]), [(9, Some(Data))]);
        assert_eq!(scan(&["data: a\r\n\r", "\n"]), [(10, Some(Data)), (11, None)]);
        assert_eq!(scan(&["data: a\r\n\r", "", "data: b\n\n"]), [(10, Some(Data)), (19, Some(Data))]);
    }

    #[test]
    fn a_lone_comment_line_is_a_boundary() {
        assert_eq!(scan(&[": keep-alive\n"]), [(13, Some(Comment))]);
        assert_eq!(scan(&[":\n\n"]), [(2, Some(Comment)), (3, None)]);
        assert_eq!(scan(&["data: a\n: inside\n\n"]), [(18, Some(Data))]);
    }

    #[test]
    fn fields_without_data_are_another_kind() {
        assert_eq!(scan(&["event: ping\n\n"]), [(13, Some(Other))]);
        assert_eq!(scan(&["dat: x\n\n", "data\n\n"]), [(8, Some(Other)), (14, Some(Data))]);
        assert_eq!(scan(&["database: x\n\n"]), [(13, Some(Other))]);
    }

    #[test]
    fn a_bom_is_not_part_of_the_first_name_only() {
        assert_eq!(scan(&["\u{feff}data: a\n\n"]), [(12, Some(Data))]);
        assert_eq!(scan(&["data: a\n\n\u{feff}data: b\n\n"]), [(9, Some(Data)), (21, Some(Other))]);
        assert_eq!(scan(&["\u{feff}: hi\n"]), [(8, Some(Comment))]);
        assert_eq!(scan(&["\u{feff}\n"]), [(4, None)]);
    }
}
