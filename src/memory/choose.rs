//! Who is cut: the largest first, and nobody whose client takes what it is given.

use std::time::Duration;

/// What a stalled stream costs beside the bytes that are counted on it: its task, both its connections, their
/// buffers and what waits in them. Measured: 203 KiB in all, 32 of them counted (docs/benchmark.md).
pub(super) const STREAM: u64 = 160 * 1024;

/// How long a write must have waited for its client before the stream counts as stalled. A client that reads fast
/// and is only behind for a moment is none.
const STALLED: Duration = Duration::from_secs(1);

/// The same at the very end, where the alternative is that all streams end. A client that takes what it is given is
/// still none: its writes wait for milliseconds, if at all.
const HELD_UP: Duration = Duration::from_millis(100);

/// Percent of the memory at which that is.
const VERY_END: u64 = 97;

/// What memory is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request body that is being sent.
    Upload,
    /// An answer that its client does not take.
    Stream,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Upload, Self::Stream];

    /// The label in the metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Stream => "stream",
        }
    }
}

/// What one client has us hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// What for.
    pub kind: Kind,
    /// Bytes of the client's own.
    pub bytes: u64,
    /// How long it has waited for its client.
    waited: Duration,
}

impl Holding {
    /// An upload of which this much has come.
    pub fn upload(bytes: u64) -> Self {
        Self { kind: Kind::Upload, bytes, waited: Duration::MAX }
    }

    /// A stream with this much under way, whose write has waited for its client so long.
    pub fn stream(bytes: u64, waited: Duration) -> Self {
        Self { kind: Kind::Stream, bytes, waited }
    }

    /// Bytes that can be hoped to come back when it is cut.
    pub(super) fn cost(self) -> u64 {
        match self.kind {
            Kind::Upload => self.bytes,
            Kind::Stream => self.bytes + STREAM,
        }
    }
}

/// Chooses whom to cut so that `excess` bytes come back, when so many percent are used: the fewest, the largest
/// first. Gives their places in `held`; all that can be cut where all are not enough.
pub(super) fn choose(held: &[Holding], excess: u64, percent: u64) -> Vec<usize> {
    let least = if percent >= VERY_END { HELD_UP } else { STALLED };
    let mut places: Vec<usize> = (0..held.len()).filter(|&at| held[at].waited >= least).collect();
    places.sort_by_key(|&at| std::cmp::Reverse(held[at].cost()));
    let mut freed = 0;
    let enough = |at: &usize| {
        let goes_on = freed < excess;
        freed += held[*at].cost();
        goes_on
    };
    places.into_iter().take_while(enough).collect()
}
