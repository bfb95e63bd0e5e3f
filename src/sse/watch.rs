//! Has the first data event come?
//!
//! While an upstream 200 is held back, its bytes only have to be watched: the first data event
//! commits the answer, a comment does not. The bytes themselves stay with the caller.

use super::{EventKind, Scanner};

/// Watches a stream for its first data event.
#[derive(Debug, Clone)]
pub struct DataWatch {
    scanner: Scanner,
    event_hold: usize,
    /// Bytes since the last boundary.
    pending: usize,
}

impl DataWatch {
    /// A watch at the start of a stream; an event that grows over `event_hold` bytes counts as
    /// begun, since nobody will hold it until its end.
    pub fn new(event_hold: usize) -> Self {
        Self { scanner: Scanner::new(), event_hold, pending: 0 }
    }

    /// Reads one chunk. `Some` when the wait is over: the offset after the first data event, or the
    /// whole chunk's length where an event has outgrown `event_hold`. The watch is spent then.
    pub fn push(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(boundary) = self.scanner.next(chunk, at) {
            at = boundary.at;
            self.pending = 0;
            if boundary.event == Some(EventKind::Data) {
                return Some(at);
            }
        }
        self.pending += chunk.len() - at;
        (self.pending > self.event_hold).then_some(chunk.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_fields_do_not_end_the_wait() {
        let mut watch = DataWatch::new(64);
        assert_eq!(watch.push(b": keep-alive\n\n"), None);
        assert_eq!(watch.push(b"event: ping\n\n"), None);
        assert_eq!(watch.push(b"data: a"), None);
        assert_eq!(watch.push(b"\n\ndata: b"), Some(2));
    }

    #[test]
    fn an_event_over_the_hold_ends_the_wait() {
        let mut watch = DataWatch::new(8);
        assert_eq!(watch.push(b"data: ab"), None);
        assert_eq!(watch.push(b"cd"), Some(2));
    }

    #[test]
    fn many_comments_never_add_up_to_an_event() {
        let mut watch = DataWatch::new(8);
        for _ in 0..100 {
            assert_eq!(watch.push(b": hi\n\n"), None);
        }
    }
}
