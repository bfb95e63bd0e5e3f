//! Limits that several gateways share, on a Redis or Valkey.
//!
//! A decision is one round trip on the one connection that all requests share, with a deadline. The one hard
//! idea: nothing waits for a Redis that is away. Whoever gets no answer in time says so, the keeper connects
//! anew, and until it has, [`Store::take`] gives nothing at once, so that the asker decides by its own bucket,
//! which has followed the shared one until then. Time is Redis's own: gateways' clocks do not matter.

mod link;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use link::{CONNECT, Link};
use redis::aio::MultiplexedConnection;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use crate::admission::{Metered, Shared, Wanted};
use crate::config::Redis;
use crate::config::units::Rate;
use crate::metrics::Metrics;

/// How long a request waits for a decision: many round trips within a site, and little beside a prefill.
const DEADLINE: Duration = Duration::from_millis(50);
/// Between two tries to connect.
const AGAIN: Duration = Duration::from_millis(250);
/// Between two looks whether Redis is there, where no request asks.
const LOOK: Duration = Duration::from_secs(1);
/// Charges that wait to be told; more are dropped, and the buckets recover by themselves.
const UNTOLD_MAX: usize = 4096;
/// Charges told in one round trip.
const TOLD_AT_ONCE: usize = 128;

/// Limits on a Redis.
pub struct Store {
    link: ArcSwapOption<Link>,
    lost: Notify,
    charges: mpsc::Sender<Charge>,
    metrics: Arc<Metrics>,
}

/// What a bucket is charged beyond what was taken of it; less than 0 is given back.
struct Charge {
    bucket: String,
    rate: Rate,
    amount: i64,
}

impl Store {
    /// A store that connects from now on, and tells what it is charged.
    pub fn start(redis: Redis, metrics: &Arc<Metrics>) -> Arc<Self> {
        let (charges, waiting) = mpsc::channel(UNTOLD_MAX);
        let store = Arc::new(Self {
            link: ArcSwapOption::empty(),
            lost: Notify::new(),
            charges,
            metrics: Arc::clone(metrics),
        });
        metrics.store_begins();
        tokio::spawn(Arc::clone(&store).keep(redis));
        tokio::spawn(Arc::clone(&store).tell(waiting));
        store
    }

    /// Takes what is wanted of a key's bucket. `None`: Redis is away, or did not answer in time.
    pub async fn take(&self, key: &str, metered: Metered, wanted: Wanted) -> Option<Shared> {
        let answer = self.ask(&bucket(key, metered), wanted).await;
        self.metrics.store_decided(answer.is_some());
        answer
    }

    async fn ask(&self, bucket: &str, wanted: Wanted) -> Option<Shared> {
        let link = self.link.load_full()?;
        let answer = timeout(DEADLINE, link.take(bucket, wanted)).await;
        let Ok(Ok((is_granted, left, wait, sequence))) = answer else {
            self.give_up(&link);
            return None;
        };
        Some(Shared { is_granted, left, wait: Duration::from_micros(wait), sequence })
    }

    /// Charges a key's bucket, some time soon.
    pub fn charge(&self, key: &str, metered: Metered, rate: Rate, amount: i64) {
        let charge = Charge { bucket: bucket(key, metered), rate, amount };
        if self.charges.try_send(charge).is_err() {
            self.metrics.store_untold(1);
        }
    }

    /// Tells charges, many at once.
    async fn tell(self: Arc<Self>, mut waiting: mpsc::Receiver<Charge>) {
        let mut charges = Vec::with_capacity(TOLD_AT_ONCE);
        while waiting.recv_many(&mut charges, TOLD_AT_ONCE).await > 0 {
            let count = charges.len();
            if self.tell_all(charges.drain(..)).await.is_none() {
                self.metrics.store_untold(count);
            }
        }
    }

    async fn tell_all(&self, charges: impl Iterator<Item = Charge>) -> Option<()> {
        let link = self.link.load_full()?;
        if !matches!(timeout(CONNECT, link.charge(charges)).await, Ok(Ok(()))) {
            self.give_up(&link);
            return None;
        }
        Some(())
    }

    /// From now on nobody waits for this connection; the first to say so has another made.
    fn give_up(&self, link: &Arc<Link>) {
        let before = self.link.compare_and_swap(&Some(Arc::clone(link)), None);
        if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, link)) {
            self.lost.notify_one();
        }
    }

    /// Connects, and connects again whenever the connection is lost.
    async fn keep(self: Arc<Self>, redis: Redis) {
        let mut was_told = false;
        loop {
            match Link::to(&redis).await {
                Ok(link) => {
                    log::info!("limits are shared by the Redis at {redis}");
                    // Who gave up an earlier connection does not mean this one.
                    drop(timeout(Duration::ZERO, self.lost.notified()).await);
                    let connection = link.connection.clone();
                    self.set(Some(link));
                    let why = self.watch(connection).await;
                    self.set(None);
                    log::warn!(
                        "the Redis at {redis} is away ({why}): limits are this gateway's own until it is back"
                    );
                    was_told = true;
                }
                Err(why) if !was_told => {
                    log::warn!(
                        "the Redis at {redis} is away ({why}): limits are this gateway's own until it is there"
                    );
                    was_told = true;
                }
                Err(_) => {}
            }
            sleep(AGAIN).await;
        }
    }

    /// Returns when the connection is lost, and why.
    async fn watch(&self, mut connection: MultiplexedConnection) -> String {
        loop {
            if timeout(LOOK, self.lost.notified()).await.is_ok() {
                return format!("no answer within {} ms", DEADLINE.as_millis());
            }
            if let Err(error) = redis::cmd("PING").query_async::<()>(&mut connection).await {
                return error.to_string();
            }
        }
    }

    fn set(&self, link: Option<Link>) {
        self.metrics.store_is_up(link.is_some());
        self.link.store(link.map(Arc::new));
    }
}

fn bucket(key: &str, metered: Metered) -> String {
    format!("streamgate:{key}:{}", metered.limit().as_str())
}
