//! A line of the log for many events: at most one a second, with the number of those it stands for.
//!
//! What happens to each request while a node is down, or to each client in a flood, must be told, and
//! must not fill a disk.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Least time between two lines.
const QUIET: Duration = Duration::from_secs(1);

/// Events that the log has not told yet, and when it told the last ones.
#[derive(Debug, Default)]
pub struct Told(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    untold: u64,
    at: Option<Instant>,
}

impl Told {
    /// Notes an event; gives how many to tell of, this one among them, if it is time.
    pub fn note(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        state.untold += 1;
        if state.at.is_some_and(|at| now < at + QUIET) {
            return None;
        }
        state.at = Some(now);
        Some(std::mem::take(&mut state.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_once_a_second() {
        let told = Told::default();
        let start = Instant::now();
        assert_eq!(told.note(start), Some(1));
        assert_eq!((told.note(start), told.note(start + QUIET / 2)), (None, None));
        assert_eq!(told.note(start + QUIET), Some(3));
    }
}
