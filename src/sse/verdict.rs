//! What becomes of an event, and how its bytes leave a batch.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// What becomes of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to the client.
    Pass,
    /// It is taken out of the stream. Has no effect on an event that is partly out.
    Cut,
    /// These bytes of [`Event::raw`](super::Event::raw) are taken out of it.
    CutPart {
        /// The first of them.
        from: usize,
        /// The one behind the last of them.
        to: usize,
    },
    /// These bytes go out in the place of [`Event::raw`](super::Event::raw). They must end with a line end, or the event
    /// would not end where it did. The blank line stays as it was: its CR and its LF may come in two chunks. Has no
    /// effect on an event without `raw`.
    Replace(Bytes),
}

/// What leaves a batch, and what stands there instead: ranges of its bytes, in order.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<(Range<usize>, Bytes)>);

impl Changes {
    /// Notes what becomes of an event: all of it is at `all`, its raw bytes, where they are to be had, at `raw`.
    pub(super) fn note(&mut self, verdict: Verdict, all: Range<usize>, raw: Option<Range<usize>>) {
        let change = match (verdict, raw) {
            (Verdict::Cut, _) => (all, Bytes::new()),
            (Verdict::CutPart { from, to }, Some(raw)) => (raw.start + from..raw.start + to, Bytes::new()),
            (Verdict::Replace(with), Some(raw)) => (raw, with),
            (Verdict::Pass | Verdict::CutPart { .. } | Verdict::Replace(_), _) => return,
        };
        self.0.push(change);
    }

    /// The batch as it is after them. It is copied only if there are some.
    pub(super) fn apply(self, batch: Bytes) -> Bytes {
        if self.0.is_empty() {
            return batch;
        }
        let grown: usize = self.0.iter().map(|(_, with)| with.len()).sum();
        let mut changed = BytesMut::with_capacity(batch.len() + grown);
        let mut from = 0;
        for (range, with) in self.0 {
            changed.extend_from_slice(&batch[from..range.start]);
            changed.extend_from_slice(&with);
            from = range.end;
        }
        changed.extend_from_slice(&batch[from..]);
        changed.freeze()
    }
}
