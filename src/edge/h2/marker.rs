//! A byte-less piece of a body that tells when everything before it has left the stream's buffer.
//!
//! A reset drops what is still buffered, and a process that ends drops it too. The h2 crate has no way to
//! ask how much is left; but it lets go of a frame's bytes once they are framed for the socket, in order,
//! and bytes can have an owner that notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::task::AtomicWaker;

/// Ready once the marker has passed, or was dropped with its stream.
#[derive(Default)]
pub(super) struct Passed(Arc<Shared>);

#[derive(Default)]
struct Shared {
    passed: AtomicBool,
    waiting: AtomicWaker,
}

struct Marker(Arc<Shared>);

impl AsRef<[u8]> for Marker {
    fn as_ref(&self) -> &[u8] {
        &[]
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        self.0.passed.store(true, Ordering::Release);
        self.0.waiting.wake();
    }
}

/// A marker to send, and what tells of it.
pub(super) fn marker() -> (Bytes, Passed) {
    let passed = Passed::default();
    (Bytes::from_owner(Marker(Arc::clone(&passed.0))), passed)
}

impl Passed {
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.waiting.register(cx.waker());
        if self.0.passed.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn it_has_no_bytes_and_passes_with_its_last_reference() {
        let (marker, passed) = marker();
        let cx = Context::from_waker(Waker::noop());
        let copy = marker.clone();
        assert!(marker.is_empty());
        drop(marker);
        assert!(passed.poll(&cx).is_pending());
        drop(copy);
        assert!(passed.poll(&cx).is_ready());
    }
}
