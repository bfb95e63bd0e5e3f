//! The two that hold most for a client and can be made to let go of it: a body that is being sent, and an answer
//! that is not taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

use crate::edge::Client;
use crate::memory::{Entry, Holder, Holding, Memory};
use crate::upstream::Credit;

/// A body of which something has come and something is to come.
pub(super) struct Upload {
    body: Arc<Incoming>,
    _entry: Entry,
}

#[derive(Default)]
struct Incoming {
    bytes: AtomicU64,
    is_cut: AtomicBool,
    told: Notify,
}

impl Upload {
    /// A body that may be cut, as long as this lives.
    pub(super) fn begin(memory: &Arc<Memory>) -> Self {
        let body = Arc::new(Incoming::default());
        let entry = memory.enter(Arc::<Incoming>::clone(&body));
        Self { body, _entry: entry }
    }

    /// So many bytes of it have come.
    pub(super) fn has(&self, bytes: usize) {
        self.body.bytes.store(bytes as u64, Ordering::Relaxed);
    }

    /// Returns when it is cut.
    pub(super) async fn cut(&self) {
        self.body.told.notified().await;
    }
}

impl Holder for Incoming {
    fn holding(&self, _now: Instant) -> Option<Holding> {
        let is_cut = self.is_cut.load(Ordering::Relaxed);
        (!is_cut).then(|| Holding::upload(self.bytes.load(Ordering::Relaxed)))
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        self.told.notify_one();
    }
}

/// The answer of an attempt.
pub(super) struct Answering {
    client: Arc<Client>,
    credit: Arc<Credit>,
}

impl Answering {
    /// An answer that may be cut while its client does not take it, as long as what this gives lives.
    pub(super) fn begin(memory: &Arc<Memory>, client: &Arc<Client>, credit: &Arc<Credit>) -> Entry {
        memory.enter(Arc::new(Self { client: Arc::clone(client), credit: Arc::clone(credit) }))
    }
}

impl Holder for Answering {
    fn holding(&self, now: Instant) -> Option<Holding> {
        let waited = now.saturating_duration_since(self.client.blocked_since()?);
        (!self.client.is_cut_off()).then(|| Holding::stream(self.credit.used() as u64, waited))
    }

    fn cut(&self) {
        self.client.cut_off();
    }
}
