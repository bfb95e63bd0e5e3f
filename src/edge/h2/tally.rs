//! The streams of a connection, counted: none means idle, and many that are given up at once mean abuse.
//!
//! A reset costs a client one small frame and an engine a prefill ("rapid reset", CVE-2023-44487). The h2
//! crate ends a connection whose streams are reset before they are accepted; one that waits a few
//! milliseconds passes there. So resets soon after the request are counted here, and a connection most of
//! whose streams end like that is closed (the measure is Envoy's, envoyproxy/envoy#30055).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::super::client::Client;

/// Streams that must have ended before they are judged.
const JUDGED: usize = 200;

/// A stream that its client gives up sooner than this was hardly meant.
const HASTY: Duration = Duration::from_secs(1);

/// Counts of one connection.
#[derive(Default)]
pub(super) struct Tally {
    open: AtomicUsize,
    ended: AtomicUsize,
    hasty: AtomicUsize,
    told: Notify,
}

/// One open stream.
pub(super) struct Open {
    tally: Arc<Tally>,
    client: Arc<Client>,
    since: Instant,
}

impl Tally {
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

    /// Whether more than half of a good number of streams were given up at once.
    pub(super) fn is_abusive(&self) -> bool {
        let ended = self.ended.load(Ordering::Relaxed);
        ended >= JUDGED && self.hasty.load(Ordering::Relaxed) * 2 > ended
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let is_hasty = self.client.gone().is_some() && self.since.elapsed() < HASTY;
        self.tally.hasty.fetch_add(usize::from(is_hasty), Ordering::Relaxed);
        self.tally.ended.fetch_add(1, Ordering::Relaxed);
        if self.tally.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.tally.told.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(tally: &Arc<Tally>, times: usize, reset: bool, age: Duration) {
        let connection = Arc::new(Client::new());
        for _ in 0..times {
            let client = Arc::new(Client::stream_of(&connection));
            let now = Instant::now();
            if reset {
                client.mark_gone(now);
            }
            drop(tally.open(client, now.checked_sub(age).unwrap()));
        }
    }

    #[test]
    fn only_many_and_mostly_hasty_resets_are_abuse() {
        let tally = Arc::default();
        end(&tally, 100, true, Duration::ZERO);
        assert!(!tally.is_abusive(), "too few to judge");
        end(&tally, 100, false, Duration::ZERO);
        assert!(!tally.is_abusive(), "half of them were served");
        end(&tally, 1, true, HASTY * 2);
        assert!(!tally.is_abusive(), "a stream that was read for a while counts for good");
        end(&tally, 2, true, Duration::ZERO);
        assert!(tally.is_abusive());
    }
}
