//! How near the process is to the end of its memory, and what is done about it, step by step.
//!
//! ```text
//! Calm --80 %--> Short: heads, bodies and idle connections have a tenth of their time, answers one batch of window
//!      --90 %--> Refuse: no new connection, no new request; who streams goes on
//!      --95 %--> Cut: the largest uploads and stalled streams end, until it is 90 %
//! ```
//! The one hard idea is to ask two different witnesses. *How much* is what the killer of processes looks at
//! (`meter`), since half of what a stream costs is in libraries and in no count of ours. *Whom to cut* is what we
//! count ourselves: each upload and each attempt stands in a table while it lasts (`Entry`), and tells what it
//! holds when it is asked. What is asked all the time is one atomic, the level.

mod choose;
mod heads;
mod kept;
mod leaving;
mod level;
mod meter;
mod purge;
mod watch;
mod young;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use slab::Slab;
use tokio::sync::watch as channel;

pub use choose::{Holding, Kind};
pub use heads::HeadBytes;
use leaving::Leaving;
pub use level::{Level, Reading};
pub use meter::Meter;
pub use watch::start;
use young::Young;

/// Every timeout that waits for a client's bytes is divided by this while memory is short.
const HASTE: u32 = 10;

/// Somebody who holds memory for a client and can be made to let go of it.
pub trait Holder: Send + Sync {
    /// What it holds now; `None` if it is none to be cut: its client takes what it is given, or it has been cut.
    fn holding(&self, now: Instant) -> Option<Holding>;

    /// Has it end.
    fn cut(&self);
}

type Table = Slab<Arc<dyn Holder>>;

/// What is known of the process's memory.
pub struct Memory {
    level: AtomicU8,
    /// Wakes when the level rises: a flood of connections waits for that, and is not to be woken for more.
    risen: channel::Sender<Level>,
    /// Wakes when it changes.
    changed: channel::Sender<Level>,
    reading: Mutex<Reading>,
    /// All that is to be looked at could be read the last time.
    seen: AtomicBool,
    heads: AtomicU64,
    heads_max: u64,
    streams: AtomicUsize,
    holders: Mutex<Table>,
    begun: AtomicU64,
}

impl Memory {
    /// Nothing is held by anybody; the process may have `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            level: AtomicU8::new(Level::Calm as u8),
            risen: channel::Sender::new(Level::Calm),
            changed: channel::Sender::new(Level::Calm),
            reading: Mutex::default(),
            seen: AtomicBool::new(true),
            heads: AtomicU64::new(0),
            heads_max: limit / heads::PART,
            streams: AtomicUsize::new(0),
            holders: Mutex::default(),
            begun: AtomicU64::new(0),
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("level", &self.level()).finish_non_exhaustive()
    }
}

impl Memory {
    /// The level: one relaxed load.
    pub fn level(&self) -> Level {
        Level::of(self.level.load(Ordering::Relaxed))
    }

    /// The last reading; of nothing while there is none.
    pub fn reading(&self) -> Reading {
        *self.reading.lock()
    }

    /// Whether all that is to be looked at could be read the last time; if not, what is used may be more than is known.
    pub fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Notes whether all could be read, and says if that has changed.
    fn note_sight(&self, seen: bool) -> bool {
        self.seen.swap(seen, Ordering::Relaxed) != seen
    }

    /// Bytes of request heads that are not whole yet.
    pub fn heads(&self) -> u64 {
        self.heads.load(Ordering::Relaxed)
    }

    /// Bytes of answers that are under way to clients, all streams together.
    pub fn streams(&self) -> &AtomicUsize {
        &self.streams
    }

    /// Notes a reading, and gives the levels before and behind it.
    pub(crate) fn note(&self, reading: Reading) -> (Level, Level) {
        *self.reading.lock() = reading;
        let before = self.level();
        let now = before.next(reading);
        if now != before {
            self.level.store(now as u8, Ordering::Relaxed);
            self.risen.send_if_modified(|level| std::mem::replace(level, now) < now);
            self.changed.send_replace(now);
        }
        (before, now)
    }

    /// Returns when the level is above `known`, with what it is then.
    pub async fn above(&self, known: Level) -> Level {
        let mut risen = self.risen.subscribe();
        let level = risen.wait_for(|level| *level > known).await.map(|level| *level);
        match level {
            Ok(level) => level,
            // The sender is ours: it is there as long as we are.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns when the level is below this one.
    pub async fn below(&self, level: Level) {
        if self.level() < level {
            return;
        }
        // The sender is ours: it is there as long as we are.
        drop(self.changed.subscribe().wait_for(|now| *now < level).await);
    }

    /// What is left of a timeout at the level that there is now.
    pub fn shortened(&self, timeout: Duration) -> Duration {
        if self.level() >= Level::Short { timeout / HASTE } else { timeout }
    }

    /// Returns when a client has had its time: `timeout`, or a tenth of it from the moment when memory is short.
    pub async fn patience(&self, timeout: Duration) {
        let hasty = async {
            self.above(Level::Calm).await;
            tokio::time::sleep(timeout / HASTE).await;
        };
        tokio::select! {
            () = tokio::time::sleep(timeout) => {}
            () = hasty => {}
        }
    }

    /// The same for something that is done meanwhile; `None` if it was not done in time.
    pub async fn within<T>(&self, timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.patience(timeout) => None,
        }
    }

    /// Puts somebody into the table of those who can be cut, as long as the guard lives.
    pub fn enter(self: &Arc<Self>, holder: Arc<dyn Holder>) -> Entry {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let at = self.holders.lock().insert(holder);
        Entry { memory: Arc::clone(self), at }
    }

    /// What those in the table will take yet.
    fn promised(&self, young: &mut Young, now: Instant) -> u64 {
        let now_there = self.holders.lock().len() as u64;
        young.promised(self.begun.load(Ordering::Relaxed), now_there, now)
    }

    /// Cuts the largest until enough can be hoped to come back, also from those who are `leaving` already.
    fn cut(&self, reading: Reading, leaving: &mut Leaving, now: Instant) -> Vec<Holding> {
        let excess = reading.excess().saturating_sub(leaving.pending(now));
        let all = self.holders.lock();
        let held = all.iter().filter_map(|(_, holder)| Some((holder.holding(now)?, Arc::clone(holder))));
        let (holdings, holders): (Vec<_>, Vec<_>) = held.unzip();
        drop(all);
        let chosen = choose::choose(&holdings, excess, reading.percent());
        for &at in &chosen {
            holders[at].cut();
            leaving.add(Arc::downgrade(&holders[at]), holdings[at].cost(), now);
        }
        chosen.into_iter().map(|at| holdings[at]).collect()
    }
}

/// One holder's place in the table.
pub struct Entry {
    memory: Arc<Memory>,
    at: usize,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let holder = self.memory.holders.lock().try_remove(self.at);
        // What it holds may come back here, which is no matter of the table's.
        drop(holder);
    }
}

#[cfg(test)]
mod tests;
