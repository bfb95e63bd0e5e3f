//! Heads that are not whole: what they hold is bounded beforehand, whatever the level.
//!
//! Thousands of clients can send one at once, and whoever is to be told that there is no room must be polled first.

use std::sync::atomic::Ordering;

use super::{Level, Memory};

/// All heads that are not whole may have this part of the memory together.
pub(super) const PART: u64 = 16;

impl Memory {
    /// A count of the bytes of one head that is not whole yet: none so far.
    pub fn head(&self) -> HeadBytes<'_> {
        HeadBytes { memory: self, bytes: 0 }
    }
}

/// Bytes of one head that is being read; not counted any more when this is dropped.
pub struct HeadBytes<'a> {
    memory: &'a Memory,
    bytes: u64,
}

impl HeadBytes<'_> {
    /// There are so many by now; says whether there is room for them.
    #[must_use]
    pub fn fit(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let more = bytes.wrapping_sub(self.bytes);
        let all = self.memory.heads.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        self.bytes = bytes;
        all <= self.memory.heads_max && self.memory.level() < Level::Refuse
    }
}

impl Drop for HeadBytes<'_> {
    fn drop(&mut self) {
        self.memory.heads.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
