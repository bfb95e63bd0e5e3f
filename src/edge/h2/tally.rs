//! The streams of a connection, counted: none means idle, and many that are given up early mean abuse.
//!
//! A reset costs a client one small frame and an engine a prefill ("rapid reset", CVE-2023-44487). The h2
//! crate ends a connection whose streams are reset before they are accepted; one that waits a few
//! milliseconds passes there. So early ends are counted here, in two ways. A connection most of whose streams
//! end at once is closed (the measure is Envoy's, envoyproxy/envoy#30055). And whatever else goes on, streams
//! that are given up before they are answered have a budget that fills up slowly: it bounds a client that
//! resets at a low, steady rate, or hides its resets among requests that it lets finish.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::super::client::Client;

/// Streams that must have ended before they are judged by their share.
const JUDGED: usize = 200;

/// A stream that its client gives up sooner than this was hardly meant.
const HASTY: Duration = Duration::from_secs(1);

/// Early ends that a connection may have at once: more than its streams, which may all time out together.
const EARLY_MAX: u32 = 200;

/// Time after which one of them is forgotten: so many a minute go on for ever.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// Counts of one connection.
#[derive(Default)]
pub(super) struct Tally {
    open: AtomicUsize,
    ended: AtomicUsize,
    hasty: AtomicUsize,
    /// When the last early end will be forgotten; `None` for a proxy, whose clients are many.
    early: Option<Mutex<Option<Instant>>>,
    told: Notify,
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abuse {
    /// Most streams are given up at once, or refused by their heads.
    MostlyHasty,
    /// More streams are given up unanswered than may be.
    TooManyEarly,
}

impl Abuse {
    /// In words, for the log.
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::MostlyHasty => "most of its streams were given up at once or refused",
            Self::TooManyEarly => "too many of its streams were given up before they were answered",
        }
    }
}

/// One open stream.
pub(super) struct Open {
    tally: Arc<Tally>,
    client: Arc<Client>,
    since: Instant,
}

impl Tally {
    /// For a connection; one of a trusted proxy has no budget of early ends.
    pub(super) fn of(is_proxy: bool) -> Self {
        Self { early: (!is_proxy).then(Mutex::default), ..Self::default() }
    }

    pub(super) fn open(self: &Arc<Self>, client: Arc<Client>, since: Instant) -> Open {
        self.open.fetch_add(1, Ordering::AcqRel);
        Open { tally: Arc::clone(self), client, since }
    }

    /// Counts a stream that was refused by its head.
    pub(super) fn refused(&self) {
        self.hasty.fetch_add(1, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when no stream has been open for `length`. Streams that open meanwhile are the caller's to
    /// notice.
    pub(super) async fn quiet_for(&self, length: Duration) {
        loop {
            let told = self.told.notified();
            if self.open.load(Ordering::Acquire) == 0 {
                break;
            }
            told.await;
        }
        tokio::time::sleep(length).await;
    }

    /// Whether the client gives up more than anybody needs to.
    pub(super) fn abuse(&self, now: Instant) -> Option<Abuse> {
        let ended = self.ended.load(Ordering::Relaxed);
        if ended >= JUDGED && self.hasty.load(Ordering::Relaxed) * 2 > ended {
            return Some(Abuse::MostlyHasty);
        }
        let forgotten = (*self.early.as_ref()?.lock())?;
        let is_over = forgotten.saturating_duration_since(now) > FORGOTTEN * EARLY_MAX;
        is_over.then_some(Abuse::TooManyEarly)
    }

    fn end(&self, open: &Open, now: Instant) {
        let is_gone = open.client.gone().is_some();
        let is_hasty = is_gone && now.saturating_duration_since(open.since) < HASTY;
        self.hasty.fetch_add(usize::from(is_hasty), Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
        if let Some(early) = &self.early
            && (is_hasty || (is_gone && !open.client.is_answered()))
        {
            let mut forgotten = early.lock();
            *forgotten = Some(forgotten.map_or(now, |at| at.max(now)) + FORGOTTEN);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tally.end(self, Instant::now());
        if self.tally.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.tally.told.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::door::Entry;
    use super::*;
    use crate::forwarded::Peer;

    /// How a stream ends.
    #[derive(Clone, Copy)]
    enum How {
        Served,
        Reset { answered: bool },
    }

    const RESET: How = How::Reset { answered: false };

    fn end(tally: &Arc<Tally>, times: u32, how: How, age: Duration, now: Instant) {
        let entry = Entry { peer: Peer::Unknown, redirect_https: None };
        let connection = Arc::new(Client::new(entry));
        for _ in 0..times {
            let client = Arc::new(Client::stream_of(&connection));
            if let How::Reset { answered } = how {
                client.mark_gone(now);
                if answered {
                    client.mark_answered();
                }
            }
            let since = now.checked_sub(age).unwrap();
            tally.end(&Open { tally: Arc::default(), client, since }, now);
        }
    }

    #[test]
    fn only_many_and_mostly_hasty_resets_are_abuse() {
        let (tally, now) = (Arc::new(Tally::of(true)), Instant::now());
        end(&tally, 100, RESET, Duration::ZERO, now);
        assert_eq!(tally.abuse(now), None, "too few to judge");
        end(&tally, 100, How::Served, Duration::ZERO, now);
        assert_eq!(tally.abuse(now), None, "half of them were served");
        end(&tally, 1, RESET, HASTY * 2, now);
        assert_eq!(tally.abuse(now), None, "a stream that was waited for counts for good");
        end(&tally, 2, RESET, Duration::ZERO, now);
        assert_eq!(tally.abuse(now), Some(Abuse::MostlyHasty));
    }

    #[test]
    fn early_ends_have_a_budget_whatever_else_goes_on() {
        let (tally, start) = (Arc::new(Tally::of(false)), Instant::now());
        end(&tally, 10_000, How::Served, HASTY * 9, start);
        end(&tally, 10_000, How::Reset { answered: true }, HASTY * 9, start);
        assert_eq!(tally.abuse(start), None, "whoever reads for a while may leave when he likes");
        end(&tally, EARLY_MAX, RESET, HASTY * 9, start);
        assert_eq!(tally.abuse(start), None);
        end(&tally, 1, RESET, HASTY * 9, start);
        assert_eq!(tally.abuse(start), Some(Abuse::TooManyEarly));
        let mut now = start + FORGOTTEN;
        assert_eq!(tally.abuse(now), None, "one is forgotten");
        for _ in 0..1000 {
            now += FORGOTTEN;
            end(&tally, 1, RESET, HASTY * 9, now);
            assert_eq!(tally.abuse(now), None, "a steady rate that the budget keeps up with");
        }
        end(&tally, 2, RESET, HASTY * 9, now);
        assert_eq!(tally.abuse(now), Some(Abuse::TooManyEarly));
    }

    #[test]
    fn a_proxy_has_many_clients_and_no_such_budget() {
        let (tally, now) = (Arc::new(Tally::of(true)), Instant::now());
        end(&tally, 10_000, RESET, HASTY * 9, now);
        assert_eq!(tally.abuse(now), None);
    }
}
