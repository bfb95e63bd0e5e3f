//! Chunks in, whole events out, with the bytes they came in.
//!
//! The [`Reframer`] lets nothing of an event out before its end is there, so that a heartbeat or an
//! error event can stand between any two deliveries. It does not rewrite, and it is not a gate: what
//! the observer makes of an event changes nothing unless it says [`Verdict::Cut`].
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
use super::{EventKind, Scanner, decode};

/// A complete event, as the observer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// What sort of event it is.
    pub kind: EventKind,
    /// Its lines as they came, without the blank line at the end and without a BOM; `None` for an
    /// event larger than `event_hold`. The same for every way the stream was cut into chunks.
    pub raw: Option<&'a [u8]>,
    /// What there is to see of an event larger than `event_hold`; `None` where `raw` has it all.
    pub ends: Option<Ends<'a>>,
}

impl<'a> Event<'a> {
    /// Its data, joined as a client would; `None` without a `data` line or without `raw`.
    pub fn data(&self) -> Option<Cow<'a, [u8]>> {
        decode::data(self.raw?)
    }
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to the client.
    Pass,
    /// It is taken out of the stream. Has no effect on an event that is partly out.
    Cut,
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
        Some(excise(out, &batch.cut)).filter(|out| !out.is_empty())
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
        let mut batch = Batch { end: 0, joined: 0, cut: Vec::new() };
        while let Some(boundary) = self.scanner.next(chunk, batch.end) {
            let (start, end) = (batch.end, boundary.at);
            let whole = !self.partly_out;
            if let Some(kind) = boundary.event {
                let event = self.view(kind, chunk, start..end, &mut batch.joined);
                if judge(event) == Verdict::Cut && whole {
                    // What is held goes in front of the chunk, so the first event begins at 0.
                    let from = if start == 0 { 0 } else { carried + start };
                    batch.cut.push(from..carried + end);
                }
            }
            self.partly_out = false;
            self.first = false;
            batch.end = end;
        }
        batch
    }

    /// The event that ends with `chunk[span]`, as far as it is not too large to look at.
    fn view<'a>(
        &'a mut self,
        kind: EventKind,
        chunk: &'a [u8],
        span: Range<usize>,
        joined: &mut usize,
    ) -> Event<'a> {
        if self.partly_out {
            self.ends.push(&chunk[span]);
            return Event { kind, raw: None, ends: Some(self.ends.ends()) };
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
        let raw = if self.first { raw.strip_prefix(&BOM).unwrap_or(raw) } else { raw };
        if fits {
            Event { kind, raw: Some(raw), ends: None }
        } else {
            Event { kind, raw: None, ends: Some(Ends::of(raw)) }
        }
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
    /// Ranges to leave out, in bytes of held and chunk together; in order.
    cut: Vec<Range<usize>>,
}

fn excise(out: Bytes, cut: &[Range<usize>]) -> Bytes {
    if cut.is_empty() {
        return out;
    }
    let mut kept = BytesMut::with_capacity(out.len());
    let mut from = 0;
    for range in cut {
        kept.extend_from_slice(&out[from..range.start]);
        from = range.end;
    }
    kept.extend_from_slice(&out[from..]);
    kept.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes chunks and gives what went out after each.
    fn push_all(reframer: &mut Reframer, chunks: &[&str]) -> Vec<Option<Bytes>> {
        let chunks = chunks.iter().map(|chunk| Bytes::copy_from_slice(chunk.as_bytes()));
        chunks.map(|chunk| reframer.push(chunk, &mut |_| {})).collect()
    }

    fn some(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_chunk_of_whole_events_is_not_copied() {
        let chunk = Bytes::from_static(b"data: a\n\ndata: b\n\n");
        let out = Reframer::new(64).push(chunk.clone(), &mut |_| {}).expect("two whole events");
        assert_eq!(out.as_ptr(), chunk.as_ptr());
        assert_eq!(out, chunk);
    }

    #[test]
    fn a_partial_event_waits_for_its_end() {
        let mut reframer = Reframer::new(64);
        let out = push_all(&mut reframer, &["data: a\n\nda", "ta: b\n", "\ndata: c"]);
        assert_eq!(out, [some("data: a\n\n"), None, some("data: b\n\n")]);
        assert!(reframer.at_boundary());
        assert_eq!((reframer.held(), reframer.finish()), (7, some("data: c")));
        assert_eq!(reframer.finish(), None);
    }

    #[test]
    fn a_cut_upstream_drops_the_partial_event() {
        let mut reframer = Reframer::new(64);
        push_all(&mut reframer, &["data: a\n\ndata: ha"]);
        assert_eq!((reframer.discard(), reframer.held(), reframer.finish()), (8, 0, None));
    }

    #[test]
    fn an_event_over_the_hold_streams_through() {
        let mut reframer = Reframer::new(8);
        let mut seen = Vec::new();
        let mut states = Vec::new();
        for chunk in ["data: ab", "cd", "ef", "\n\n", "data: x\n\n"] {
            let out = reframer.push(Bytes::from_static(chunk.as_bytes()), &mut |event| {
                seen.push((event.kind, event.raw.map(<[u8]>::len)));
            });
            states.push((out, reframer.at_boundary()));
        }
        assert_eq!(
            states,
            [
                (None, true),
                (some("data: abcd"), false),
                (some("ef"), false),
                (some("\n\n"), true),
                (some("data: x\n\n"), true),
            ]
        );
        assert_eq!(seen, [(EventKind::Data, None), (EventKind::Data, Some(8))]);
    }

    #[test]
    fn cr_cr_goes_out_at_once_and_a_late_lf_is_no_event() {
        let mut reframer = Reframer::new(64);
        let mut events = 0;
        let mut push = |chunk: &'static str| {
            let out = reframer.push(Bytes::from_static(chunk.as_bytes()), &mut |_| events += 1);
            (out, reframer.at_boundary())
        };
        assert_eq!(push("data: a\r\n\r"), (some("data: a\r\n\r"), true));
        assert_eq!(push("\n"), (some("\n"), true));
        assert_eq!(push("data: b\r\r"), (some("data: b\r\r"), true));
        assert_eq!(events, 2);
    }

    #[test]
    fn a_comment_line_passes_at_once() {
        let mut reframer = Reframer::new(64);
        let out = push_all(&mut reframer, &[": keep-alive\n", "\n", "data: a\n: no\n"]);
        assert_eq!(out, [some(": keep-alive\n"), some("\n"), None]);
    }

    #[test]
    fn a_cut_event_leaves_its_neighbours_alone() {
        let mut reframer = Reframer::new(64);
        let mut judge = |event: Event<'_>| match event.data() {
            Some(data) if data.starts_with(b"no") => Verdict::Cut,
            _ => Verdict::Pass,
        };
        let mut push =
            |chunk: &'static str| reframer.filter(Bytes::from_static(chunk.as_bytes()), &mut judge);
        assert_eq!(push("data: a\n\ndata: n"), some("data: a\n\n"));
        assert_eq!(push("o\n\ndata: b\n\ndata: no\n\ndata: c\n\nda"), some("data: b\n\ndata: c\n\n"));
        assert_eq!(push("ta: no\n\n"), None);
    }

    #[test]
    fn raw_has_no_bom_and_no_blank_line() {
        let mut raws = Vec::new();
        let chunk = Bytes::from_static("\u{feff}data: a\r\n\r\ndata: b\n\n".as_bytes());
        Reframer::new(64).push(chunk, &mut |event| raws.push(event.raw.unwrap_or_default().to_vec()));
        assert_eq!(raws, [&b"data: a\r\n"[..], b"data: b\n"]);
    }
}
