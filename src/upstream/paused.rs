//! The idle clock stands still while nobody reads, because the client takes its time: how long it has.

use std::time::{Duration, Instant};

/// How long nobody has read since the last data event, because the client took its time.
#[derive(Default)]
pub(super) struct Paused {
    since: Option<Instant>,
    data: Option<Instant>,
    total: Duration,
}

impl Paused {
    /// Nobody reads from `now` on. A pause that runs goes on.
    pub(super) fn start(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Ends a pause, if there was one. A data event that went by during it starts the count anew.
    pub(super) fn end(&mut self, data: Option<Instant>, now: impl FnOnce() -> Instant) {
        let Some(since) = self.since.take() else { return };
        let now = now();
        if data != self.data {
            self.data = data;
            self.total = Duration::ZERO;
        }
        let from = data.map_or(since, |data| data.max(since));
        self.total += now.saturating_duration_since(from);
    }

    /// How much of the time since this data event has been a pause.
    pub(super) fn since_data(&self, data: Instant) -> Duration {
        if self.data == Some(data) { self.total } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn pauses_after_a_data_event_add_up() {
        let start = Instant::now();
        let data = Some(start);
        let mut paused = Paused::default();
        paused.start(at(start, 1));
        paused.end(data, || at(start, 4));
        paused.end(data, || at(start, 9));
        paused.start(at(start, 10));
        paused.start(at(start, 11));
        paused.end(data, || at(start, 12));
        assert_eq!(paused.total, Duration::from_secs(5));
    }

    #[test]
    fn a_data_event_during_a_pause_starts_the_count_anew() {
        let start = Instant::now();
        let mut paused = Paused::default();
        paused.start(start);
        paused.end(Some(start), || at(start, 7));
        paused.start(at(start, 8));
        paused.end(Some(at(start, 9)), || at(start, 12));
        assert_eq!(paused.total, Duration::from_secs(3));
    }
}
