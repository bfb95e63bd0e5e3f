//! A buffer that all connections of a thread read into, so that one that waits holds none.

use std::cell::RefCell;

/// Bytes of one read: a head and what comes with it.
const SIZE: usize = 16 * 1024;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; SIZE].into_boxed_slice());
}

/// Lends the buffer. What it holds is of no meaning before it has been written.
pub(super) fn with<T>(read: impl FnOnce(&mut [u8]) -> T) -> T {
    BUFFER.with_borrow_mut(|buffer| read(buffer))
}
