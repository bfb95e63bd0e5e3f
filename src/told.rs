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
        state.tell(now)
    }

    /// Gives how many events are to be told of that were not told when they happened, if it is time.
    pub fn late(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.untold == 0 { None } else { state.tell(now) }
    }
}

impl State {
    fn tell(&mut self, now: Instant) -> Option<u64> {
        if self.at.is_some_and(|at| now < at + QUIET) {
            return None;
        }
        self.at = Some(now);
        Some(std::mem::take(&mut self.untold))
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

    #[test]
    fn the_last_event_is_told_when_no_other_follows() {
        let told = Told::default();
        let start = Instant::now();
        assert_eq!((told.late(start), told.note(start), told.note(start)), (None, Some(1), None));
        assert_eq!((told.late(start), told.late(start + QUIET)), (None, Some(1)));
        assert_eq!(told.late(start + QUIET * 2), None);
    }
}
