//! A wedged engine: it holds requests, answers `/health`, and generates nothing.
//!
//! Two or more streams without a data event for so long are wedged. Where the engine's step counter is read
//! it decides: one request of any kind is enough where the counter stands still, and however many there are,
//! an engine whose counter moves is busy.

use std::time::{Duration, Instant};

use super::flights::Flight;
use crate::cluster::Reading;

/// Streams in silence that it takes where no step counter is read: one may be a prompt without end.
const STREAMS: usize = 2;

/// Readings older than so many intervals say nothing of now.
const FRESH: u32 = 3;

/// The step counter as it was last read.
#[derive(Debug, Clone, Copy)]
struct Steps {
    count: u64,
    moved_at: Instant,
    read_at: Instant,
}

/// What is known of a backend's steps and silence.
#[derive(Debug, Default)]
pub(super) struct Wedge {
    steps: Option<Steps>,
    /// Since when it has been holding requests without a sign of work.
    stuck_since: Option<Instant>,
}

/// How the cluster is watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    /// So long a silence is one of a wedged engine.
    pub(super) after: Duration,
    /// Time between two readings, if any are taken.
    pub(super) every: Option<Duration>,
}

impl Wedge {
    /// Notes a reading.
    pub(super) fn read(&mut self, reading: &Reading) {
        let Some(count) = reading.steps else { return };
        let moved_at = match self.steps {
            // An engine that was started anew counts from 0.
            Some(known) if known.count == count => known.moved_at,
            _ => reading.at,
        };
        self.steps = Some(Steps { count, moved_at, read_at: reading.at });
    }

    /// When the step counter was last seen to move.
    pub(super) fn moved_at(&self) -> Option<Instant> {
        self.steps.map(|steps| steps.moved_at)
    }

    /// Whether the counter has been read lately.
    fn is_read(&self, now: Instant, watch: &Watch) -> bool {
        let fresh = |steps: Steps, every: Duration| now <= steps.read_at + every.saturating_mul(FRESH);
        self.steps.zip(watch.every).is_some_and(|(steps, every)| fresh(steps, every))
    }

    /// Looks at what is under way; `progress` is when the backend last sent data. Whether it is wedged.
    pub(super) fn look(
        &mut self,
        flights: &[Flight],
        progress: Option<Instant>,
        watch: &Watch,
        now: Instant,
    ) -> bool {
        let is_read = self.is_read(now, watch);
        let mut waiting: Vec<Instant> = flights
            .iter()
            .filter(|flight| flight.seen.reading && (flight.streaming || is_read))
            .filter_map(|flight| flight.seen.sent)
            .collect();
        let needed = if is_read { 1 } else { STREAMS };
        if waiting.len() < needed {
            self.stuck_since = None;
            return false;
        }
        waiting.sort_unstable();
        let worked = progress.max(self.moved_at());
        let enough_since = worked.map_or(waiting[needed - 1], |worked| worked.max(waiting[needed - 1]));
        // Clients come and go in the silence: the one that began it need not be there any more.
        let known = self.stuck_since.filter(|since| worked.is_none_or(|worked| *since >= worked));
        let since = known.map_or(enough_since, |known| known.min(enough_since));
        self.stuck_since = Some(since);
        now >= since + watch.after
    }

    /// Forgets the silence.
    pub(super) fn forget(&mut self) {
        self.stuck_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::flights::Seen;
    use super::*;

    const AFTER: Duration = Duration::from_secs(120);
    const BLIND: Watch = Watch { after: AFTER, every: None };
    const READ: Watch = Watch { after: AFTER, every: Some(Duration::from_secs(2)) };

    fn flight(streaming: bool, sent: Instant) -> Flight {
        Flight { streaming, seen: Seen { sent: Some(sent), last_data: None, reading: true } }
    }

    fn reading(at: Instant, steps: u64) -> Reading {
        Reading { at, running: 0, waiting: 0, kv_usage: None, steps: Some(steps) }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn two_silent_streams_are_wedged_and_one_is_not() {
        let start = Instant::now();
        let two = [flight(true, start), flight(true, start + secs(5))];
        let look = |flights: &[Flight], at| Wedge::default().look(flights, None, &BLIND, start + secs(at));
        assert!(!look(&two, 124));
        assert!(look(&two, 125), "since the second one came");
        assert!(!look(&two[..1], 10_000));
    }

    #[test]
    fn a_data_event_of_any_stream_ends_the_silence() {
        let start = Instant::now();
        let two = [flight(true, start), flight(true, start)];
        let mut wedge = Wedge::default();
        assert!(!wedge.look(&two, Some(start + secs(100)), &BLIND, start + secs(219)));
        assert!(wedge.look(&two, Some(start + secs(100)), &BLIND, start + secs(220)));
    }

    #[test]
    fn calls_that_do_not_stream_and_clients_that_do_not_read_say_nothing() {
        let start = Instant::now();
        let unary = [flight(false, start), flight(false, start), flight(true, start)];
        assert!(!Wedge::default().look(&unary, None, &BLIND, start + secs(10_000)));
        let mut slow = [flight(true, start), flight(true, start)];
        slow[0].seen.reading = false;
        assert!(!Wedge::default().look(&slow, None, &BLIND, start + secs(10_000)));
    }

    #[test]
    fn the_silence_outlasts_the_clients_that_give_up() {
        let start = Instant::now();
        let mut wedge = Wedge::default();
        let wedged = (0..121).any(|second| {
            // Each client gives up after 30 seconds, and others come.
            let sent = start + secs(second / 30 * 30);
            wedge.look(&[flight(true, sent), flight(true, sent)], None, &BLIND, start + secs(second))
        });
        assert!(wedged);
    }

    #[test]
    fn a_moving_step_counter_is_a_busy_engine() {
        let start = Instant::now();
        let mut wedge = Wedge::default();
        let many: Vec<Flight> = (0..100).map(|_| flight(true, start)).collect();
        for second in (0..1_000).step_by(2) {
            wedge.read(&reading(start + secs(second), second));
            assert!(!wedge.look(&many, None, &READ, start + secs(second)), "{second}");
        }
    }

    #[test]
    fn one_call_is_enough_where_the_counter_stands_still() {
        let start = Instant::now();
        let mut wedge = Wedge::default();
        let unary = [flight(false, start + secs(10))];
        let wedged_at = (0..200).find(|second| {
            wedge.read(&reading(start + secs(*second), 7));
            wedge.look(&unary, None, &READ, start + secs(*second))
        });
        assert_eq!(wedged_at, Some(130));
    }

    #[test]
    fn readings_that_fail_leave_the_streams_to_go_by() {
        let start = Instant::now();
        let mut wedge = Wedge::default();
        wedge.read(&reading(start, 7));
        assert!(!wedge.look(&[flight(true, start)], None, &READ, start + secs(500)), "one stream");
        assert!(wedge.look(&[flight(true, start), flight(true, start)], None, &READ, start + secs(500)));
    }
}
