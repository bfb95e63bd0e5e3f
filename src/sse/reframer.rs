//! Chunks in, whole events out, with the bytes they came in.
//!
//! The [`Reframer`] lets nothing of an event out before its end is there, so that a heartbeat or an
//! error event can stand between any two deliveries. It does not rewrite, and it is not a gate: what
//! the observer makes of an event changes nothing unless its [`Verdict`] says so.
//!
//! The one hard idea: an event that outgrows `event_hold` changes from held to *partly out*. From
//! there its bytes pass as they arrive, and until its end nothing else may be written.
//!
//! ```text
//! at boundary --rest of a chunk--> held --its end--> at boundary
//!                                  held --over event_hold--> partly out --its end--> at boundary
//! ```
//!
//! Memory: at most `event_hold` bytes are kept between two calls, and one chunk more during a call; while
//! an event is partly out, the two ends of it.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::boundary::BOM;
use super::ends::{Collector, Ends, without_line_end};
use super::verdict::Changes;
use super::{EventKind, Scanner, Verdict, decode};

/// A complete event, as the observer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// What sort of event it is.
    pub kind: EventKind,
    /// Its lines as they came, without the blank line at the end and without a BOM; `None` for an
    /// event larger than `event_hold`. The same for every way the stream was cut into chunks.
    pub raw: Option<&'a [u8]>,
    /// It is one `data` line and nothing else: see [`Boundary::single`](super::Boundary).
    pub single: bool,
    /// What there is to see of an event larger than `event_hold`; `None` where `raw` has it all.
    pub ends: Option<Ends<'a>>,
}

impl<'a> Event<'a> {
    /// Its data, joined as a client would; `None` without a `data` line or without `raw`.
    pub fn data(&self) -> Option<Cow<'a, [u8]>> {
        let raw = self.raw?;
        match raw.strip_prefix(b"data:") {
            Some(value) if self.single => {
                let value = without_line_end(value);
                Some(Cow::Borrowed(value.strip_prefix(b" ").unwrap_or(value)))
            }
            _ => decode::data(raw),
        }
    }
}

/// Turns chunks into batches of whole events.
#[derive(Debug)]
pub struct Reframer {
    scanner: Scanner,
    event_hold: usize,
    /// The beginning of an unfinished event. Invariant: at most `event_hold` bytes, and empty while
    /// `partly_out`.
    held: BytesMut,
    /// Some of the unfinished event has been delivered.
    partly_out: bool,
    /// The ends of the event that is partly out.
    ends: Collector,
    /// No boundary has been seen: the first line may begin with a BOM.
    first: bool,
}

impl Reframer {
    /// A reframer at the start of a stream; an event is held until whole up to `event_hold` bytes.
    pub fn new(event_hold: usize) -> Self {
        let (scanner, held, ends) = (Scanner::new(), BytesMut::new(), Collector::default());
        Self { scanner, event_hold, held, partly_out: false, ends, first: true }
    }

    /// Takes a chunk and gives what may go out now: the original bytes of every event that is whole,
    /// in one piece. `observe` sees each event once, when it is complete.
    pub fn push(&mut self, chunk: Bytes, observe: &mut impl FnMut(Event<'_>)) -> Option<Bytes> {
        self.filter(chunk, &mut |event| {
            observe(event);
            Verdict::Pass
        })
    }

    /// Like [`push`](Self::push), with a say for each event.
    pub fn filter(&mut self, chunk: Bytes, judge: &mut impl FnMut(Event<'_>) -> Verdict) -> Option<Bytes> {
        let mut batch = self.scan(&chunk, judge);
        let unfinished = chunk.len() - batch.end + if batch.end == 0 { self.held.len() } else { 0 };
        if batch.end < chunk.len() && (self.partly_out || unfinished > self.event_hold) {
            self.let_out(&chunk, batch.end);
            batch.end = chunk.len();
        }
        let out = self.deliver(chunk, &batch);
        debug_assert!(self.held.len() <= self.event_hold && (self.held.is_empty() || !self.partly_out));
        Some(batch.changes.apply(out)).filter(|out| !out.is_empty())
    }

    /// The unfinished event, of which `chunk` has what comes after `from`, goes out before its end.
    fn let_out(&mut self, chunk: &[u8], from: usize) {
        if !self.partly_out {
            // What is held belongs to it only where no event has ended in this chunk.
            let held = if from == 0 { &self.held[..] } else { &[] };
            self.ends.begin(held, self.first);
        }
        self.ends.push(&chunk[from..]);
        self.partly_out = true;
    }

    /// The upstream ended its body cleanly: the unfinished tail, as it is.
    pub fn finish(&mut self) -> Option<Bytes> {
        Some(std::mem::take(&mut self.held).freeze()).filter(|tail| !tail.is_empty())
    }

    /// The same with a say: the tail is shown as the event that it would be with a blank line behind it.
    pub fn finish_with(&mut self, judge: &mut impl FnMut(Event<'_>) -> Verdict) -> Option<Bytes> {
        let tail = self.finish()?;
        let lead = if self.first && tail.starts_with(&BOM) { BOM.len() } else { 0 };
        let Some(boundary) = self.scanner.next(b"\n\n", 0) else { return Some(tail) };
        let Some(kind) = boundary.event else { return Some(tail) };
        let event = Event { kind, raw: Some(&tail[lead..]), single: boundary.single, ends: None };
        let mut changes = Changes::default();
        changes.note(judge(event), 0..tail.len(), Some(lead..tail.len()));
        Some(changes.apply(tail)).filter(|tail| !tail.is_empty())
    }

    /// The unfinished event as it would be with a blank line behind it; `None` where no event is unfinished.
    pub fn tail(&self) -> Option<Event<'_>> {
        if self.held.is_empty() && !self.partly_out {
            return None;
        }
        let boundary = self.scanner.clone().next(b"\n\n", 0)?;
        let lead = if self.first && self.held.starts_with(&BOM) { BOM.len() } else { 0 };
        let (raw, ends) = match self.partly_out {
            true => (None, Some(self.ends.ends())),
            false => (Some(&self.held[lead..]), None),
        };
        Some(Event { kind: boundary.event?, raw, single: boundary.single, ends })
    }

    /// The upstream was cut: drops the held beginning of an event and says how many bytes it had.
    pub fn discard(&mut self) -> usize {
        std::mem::take(&mut self.held).len()
    }

    /// Whether an event of our own may stand here: nothing of an unfinished event has gone out.
    pub fn at_boundary(&self) -> bool {
        !self.partly_out
    }

    /// Bytes held back, at most `event_hold`.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Finds the events that end in this chunk and shows them.
    fn scan(&mut self, chunk: &[u8], judge: &mut impl FnMut(Event<'_>) -> Verdict) -> Batch {
        let carried = self.held.len();
        let mut batch = Batch { end: 0, joined: 0, changes: Changes::default() };
        while let Some(boundary) = self.scanner.next(chunk, batch.end) {
            let (start, end) = (batch.end, boundary.at);
            let whole = !self.partly_out;
            if let Some(kind) = boundary.event {
                let (mut event, lead) = self.view(kind, chunk, start..end, &mut batch.joined);
                event.single = boundary.single;
                // What is held goes in front of the chunk, so the first event begins at 0.
                let first = if start == 0 { 0 } else { carried + start };
                let raw = event.raw.map(|raw| first + lead..first + lead + raw.len());
                let verdict = judge(event);
                if whole {
                    batch.changes.note(verdict, first..carried + end, raw);
                }
            }
            self.partly_out = false;
            self.first = false;
            batch.end = end;
        }
        batch
    }

    /// The event that ends with `chunk[span]`, as far as it is not too large to look at, and how many bytes stand
    /// before it that are no part of it.
    fn view<'a>(
        &'a mut self,
        kind: EventKind,
        chunk: &'a [u8],
        span: Range<usize>,
        joined: &mut usize,
    ) -> (Event<'a>, usize) {
        if self.partly_out {
            self.ends.push(&chunk[span]);
            return (Event { kind, raw: None, single: false, ends: Some(self.ends.ends()) }, 0);
        }
        let raw = if span.start == 0 && !self.held.is_empty() {
            self.held.reserve(chunk.len());
            self.held.extend_from_slice(&chunk[span.clone()]);
            *joined = span.end;
            &self.held[..]
        } else {
            &chunk[span]
        };
        let raw = without_line_end(raw);
        let fits = raw.len() <= self.event_hold;
        let lead = if self.first && raw.starts_with(&BOM) { BOM.len() } else { 0 };
        let raw = &raw[lead..];
        let event = if fits {
            Event { kind, raw: Some(raw), single: false, ends: None }
        } else {
            Event { kind, raw: None, single: false, ends: Some(Ends::of(raw)) }
        };
        (event, lead)
    }

    /// Takes `batch.end` bytes of the chunk, with what was held before them, and holds the rest.
    fn deliver(&mut self, mut chunk: Bytes, batch: &Batch) -> Bytes {
        if batch.end == 0 {
            self.held.extend_from_slice(&chunk);
            return Bytes::new();
        }
        let mut before = std::mem::take(&mut self.held);
        self.held.extend_from_slice(&chunk[batch.end..]);
        if before.is_empty() {
            chunk.truncate(batch.end);
            return chunk;
        }
        before.extend_from_slice(&chunk[batch.joined..batch.end]);
        before.freeze()
    }
}

/// What one chunk brought.
struct Batch {
    /// Offset in the chunk after its last boundary; 0 without one.
    end: usize,
    /// Bytes of the chunk that have been joined to those held.
    joined: usize,
    /// What becomes of its events, in bytes of held and chunk together.
    changes: Changes,
}

#[cfg(test)]
mod tests;
