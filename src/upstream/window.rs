//! The window: how many response bytes of one stream may be under way inside the gateway.
//!
//! A chunk is charged when it is read from the engine and given back when its last byte has been
//! handed to the client's socket: the charge lives in the very memory of the chunk, so no path can
//! forget it. While nothing is left the session does not read, and TCP stops the engine.
//!
//! A chunk can wait in two places: as a chunk in Pingora's channel, where it is charged, and as a copy
//! in the buffer of a write that the client holds up, where it no longer is. So half of the window is
//! charged; both places together hold no more than all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::task::AtomicWaker;

use crate::memory::{Level, Memory};

/// Chunks below this many bytes are not charged: at most nine of them are under way (Pingora's
/// channel holds four tasks, its writer five), which is less than the slack of one batch, and a
/// token must not cost a second allocation.
const FREE: usize = 1024;

/// Bytes of one stream that may be under way.
#[derive(Debug)]
pub struct Credit {
    limit: usize,
    used: AtomicUsize,
    /// Knows how much there is of it, and counts all streams together.
    memory: Arc<Memory>,
    reader: AtomicWaker,
}

impl Credit {
    /// A credit of `window` bytes, all of it free; while memory is short it is that of one batch. What is used is
    /// counted in `memory` too.
    pub fn new(window: usize, memory: Arc<Memory>) -> Self {
        Self { limit: window / 2, used: AtomicUsize::new(0), memory, reader: AtomicWaker::new() }
    }

    /// Bytes that are under way.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Ready when at least one byte is free; otherwise wakes when one is.
    pub(super) fn poll_free(&self, cx: &Context<'_>) -> Poll<()> {
        let limit = if self.memory.level() >= Level::Short { 1 } else { self.limit };
        if self.used() < limit {
            return Poll::Ready(());
        }
        self.reader.register(cx.waker());
        // A chunk may have been given back between the first look and the registration.
        if self.used() < limit { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Charges `chunk`; its bytes are given back when the last reference to them is dropped.
    pub(super) fn charge(self: &Arc<Self>, chunk: BytesMut) -> Bytes {
        if chunk.len() < FREE {
            return chunk.freeze();
        }
        self.used.fetch_add(chunk.len(), Ordering::AcqRel);
        self.memory.streams().fetch_add(chunk.len(), Ordering::Relaxed);
        Bytes::from_owner(Charged { chunk, credit: Arc::clone(self) })
    }
}

struct Charged {
    chunk: BytesMut,
    credit: Arc<Credit>,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.chunk
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.credit.used.fetch_sub(self.chunk.len(), Ordering::AcqRel);
        self.credit.memory.streams().fetch_sub(self.chunk.len(), Ordering::Relaxed);
        self.credit.reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::memory::Reading;

    fn is_free(credit: &Credit) -> bool {
        credit.poll_free(&Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_slice_keeps_the_charge_of_its_chunk() {
        let credit = Arc::new(Credit::new(8192, Arc::new(Memory::new(1 << 30))));
        let chunk = credit.charge(BytesMut::from(&[7u8; 5000][..]));
        assert!(!is_free(&credit));
        let tail = chunk.slice(4999..);
        drop(chunk);
        assert!(!is_free(&credit));
        drop(tail);
        assert!(is_free(&credit));
        assert_eq!(credit.used(), 0);
    }

    #[test]
    fn while_memory_is_short_a_second_batch_waits_for_the_first() {
        let memory = Arc::new(Memory::new(1 << 30));
        let credit = Arc::new(Credit::new(1 << 20, Arc::clone(&memory)));
        let first = credit.charge(BytesMut::from(&[7u8; FREE][..]));
        assert!(is_free(&credit));
        memory.note(Reading { used: 80, promised: 0, limit: 100 });
        assert!(!is_free(&credit));
        drop(first);
        assert!(is_free(&credit));
        assert_eq!(memory.streams().load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_token_is_not_charged() {
        let credit = Arc::new(Credit::new(8192, Arc::new(Memory::new(1 << 30))));
        let chunk = credit.charge(BytesMut::from(&b"data: x\n\n"[..]));
        assert_eq!((credit.used(), &chunk[..]), (0, &b"data: x\n\n"[..]));
    }
}
