//! What became of all requests: counts, samples, the first answers that were wrong.
//!
//! A stream adds its times from time to time, not each: what it has not added yet is bounded ([`Notes`]), and so is
//! what is kept here. Only the count of tokens is added to at once, for the progress line.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::judge::Brought;
use super::lot::Manner;
use super::sample::Sample;
use super::wrong::Wrong;

/// Wrong answers that are told one by one.
const TOLD_MAX: usize = 10;
/// Cancelled requests whose end is looked for at the engines: as many as an engine remembers.
const LEFT_MAX: usize = 20_000;
/// Times that a stream collects before it adds them.
const NOTES_MAX: usize = 256;

/// The counts of a run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests that have begun.
    pub(super) begun: AtomicU64,
    /// Arrivals that found no place.
    pub(super) left_out: AtomicU64,
    /// Tokens that have come.
    pub(super) tokens: AtomicU64,
    state: Mutex<State>,
}

/// What has ended.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) first: Sample,
    pub(super) gaps: Sample,
    pub(super) streams: Sample,
    pub(super) unary: Sample,
    pub(super) added: Sample,
    pub(super) counts: Counts,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) told: Vec<Told>,
    /// The ids of cancelled requests, with the time at which they were left in microseconds since 1970.
    pub(super) left: BTreeMap<String, u64>,
}

/// Requests by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Streams that were read to their end.
    pub(super) streams: u64,
    /// Of those, the ones that were read slowly.
    pub(super) slow: u64,
    /// Whole answers that were no streams.
    pub(super) unary: u64,
    /// Streams that were left.
    pub(super) cancelled: u64,
    /// Answers that were wrong.
    pub(super) wrong: u64,
}

impl Counts {
    /// All that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.streams + self.unary + self.cancelled + self.wrong
    }
}

/// A wrong answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Told {
    pub(super) request_id: String,
    pub(super) kind: String,
    pub(super) what: String,
}

/// How a request ended that was not wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Read whole.
    Whole,
    /// Left at this time, in microseconds since 1970.
    Left(u64),
}

impl Tally {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what a stream has noted.
    pub(super) fn add(&self, notes: &mut Notes) {
        let mut state = self.state();
        state.gaps.extend(notes.gaps.drain(..));
        state.added.extend(notes.added.drain(..));
        state.first.extend(notes.first.take());
    }
}

impl State {
    /// Counts a request that has ended `took` after it began. Times of slow readers are their own doing.
    pub(super) fn ended(&mut self, id: &str, manner: Manner, took: Duration, end: Result<End, Wrong>) {
        match (end, manner) {
            (Err(wrong), _) => self.wrong(id, &wrong),
            (Ok(End::Left(at_us)), _) => {
                self.counts.cancelled += 1;
                if self.left.len() < LEFT_MAX {
                    self.left.insert(id.to_owned(), at_us);
                }
            }
            (Ok(End::Whole), Manner::Unary) => {
                self.counts.unary += 1;
                self.unary.add(micros(took));
            }
            (Ok(End::Whole), Manner::Slow { .. }) => {
                self.counts.streams += 1;
                self.counts.slow += 1;
            }
            (Ok(End::Whole), Manner::Stream | Manner::Cancel { .. }) => {
                self.counts.streams += 1;
                self.streams.add(micros(took));
            }
        }
    }

    fn wrong(&mut self, id: &str, wrong: &Wrong) {
        let kind = wrong.kind();
        self.counts.wrong += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(Told { request_id: id.to_owned(), kind: kind.clone(), what: wrong.to_string() });
        }
        *self.errors.entry(kind).or_default() += 1;
    }
}

/// The times of one stream that are not yet added.
#[derive(Debug)]
pub(super) struct Notes {
    began: Instant,
    /// Whether times are of interest: not those of a slow reader.
    timed: bool,
    had_first: bool,
    first: Option<u32>,
    last_text: Option<Instant>,
    gaps: Vec<u32>,
    added: Vec<u32>,
    /// Events with text so far.
    pub(super) texts: u64,
}

impl Notes {
    /// Of a stream that was asked for at this moment.
    pub(super) fn new(began: Instant, manner: Manner) -> Self {
        let timed = !matches!(manner, Manner::Slow { .. });
        let (gaps, added) = (Vec::new(), Vec::new());
        Self { began, timed, had_first: false, first: None, last_text: None, gaps, added, texts: 0 }
    }

    /// Notes what one read brought at `now`, which is `now_us` microseconds since 1970. True when it is time to add.
    pub(super) fn note(&mut self, brought: &Brought, now: Instant, now_us: u64) -> bool {
        self.texts += u64::from(brought.texts);
        if !self.timed {
            return false;
        }
        if brought.events > 0 && !self.had_first {
            self.had_first = true;
            self.first = Some(micros(now - self.began));
        }
        for _ in 0..brought.texts {
            let gap = self.last_text.replace(now).map(|last| micros(now - last));
            self.gaps.extend(gap);
        }
        let late = |sent: &u64| u32::try_from(now_us.saturating_sub(*sent)).unwrap_or(u32::MAX);
        self.added.extend(brought.sent.iter().map(late));
        self.gaps.len().max(self.added.len()) >= NOTES_MAX
    }
}

/// A time as it is sampled; 71 minutes and more are the same.
pub(super) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn brought(events: u32, texts: u32, sent: &[u64]) -> Brought {
        Brought { events, texts, sent: sent.to_vec() }
    }

    #[test]
    fn times_of_a_stream_are_noted_and_added() {
        let (tally, began) = (Tally::default(), Instant::now());
        let mut notes = Notes::new(began, Manner::Stream);
        assert!(!notes.note(&brought(0, 0, &[]), began + MS, 1_000));
        notes.note(&brought(1, 0, &[]), began + 3 * MS, 3_000);
        notes.note(&brought(2, 2, &[2_500, 4_000]), began + 5 * MS, 5_000);
        notes.note(&brought(1, 1, &[9_000]), began + 9 * MS, 8_000);
        tally.add(&mut notes);
        let state = tally.state();
        let spreads = [&state.first, &state.gaps, &state.added].map(|sample| sample.spread().unwrap());
        assert_eq!(spreads.map(|spread| (spread.count, spread.max)), [(1, 3_000), (2, 4_000), (3, 2_500)]);
        assert_eq!(notes.texts, 3);
    }

    #[test]
    fn a_long_stream_adds_now_and_then_and_a_slow_one_never() {
        let began = Instant::now();
        let mut notes = Notes::new(began, Manner::Stream);
        assert!(notes.note(&brought(300, 300, &[]), began, 0));
        let mut slow = Notes::new(began, Manner::Slow { rate: 1 });
        assert!(!slow.note(&brought(300, 300, &[1]), began, 0));
        assert!(slow.gaps.is_empty() && slow.added.is_empty() && slow.first.is_none());
    }

    #[test]
    fn requests_are_counted_once_by_how_they_ended() {
        let mut state = State::default();
        let cancel = Manner::Cancel { at: 5 };
        state.ended("a", Manner::Stream, MS, Ok(End::Whole));
        state.ended("b", Manner::Unary, MS, Ok(End::Whole));
        state.ended("c", Manner::Slow { rate: 1 }, MS, Ok(End::Whole));
        state.ended("d", cancel, MS, Ok(End::Left(7)));
        state.ended("e", cancel, MS, Ok(End::Whole));
        for id in 0..20 {
            state.ended(&id.to_string(), Manner::Stream, MS, Err(Wrong::Order { got: id, due: 0 }));
        }
        let counts = Counts { streams: 3, slow: 1, unary: 1, cancelled: 1, wrong: 20 };
        assert_eq!((state.counts, state.counts.ended()), (counts, 25));
        assert_eq!(state.errors, BTreeMap::from([("order".to_owned(), 20)]));
        assert_eq!(state.left, BTreeMap::from([("d".to_owned(), 7)]));
        assert_eq!(state.told.len(), TOLD_MAX);
        assert_eq!(
            (state.told[1].request_id.as_str(), state.told[1].what.as_str()),
            ("1", "token 1 came where 0 was due")
        );
        assert_eq!(state.streams.spread().unwrap().count, 2, "a slow reader's time is its own doing");
    }
}
