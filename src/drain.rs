//! The end of the process: who is still at work, and when that must stop.
//!
//! ```text
//! Serving --SIGTERM--> LameDuck --lame_duck--> Draining --idle, or drain is over--> Cut
//! ```
//! A lame duck still accepts but is not ready; a draining gateway lets its exchanges finish; at the
//! cut every exchange that is left ends with an error its client can read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::cluster::BackendState;

/// Shared state of the drain.
#[derive(Debug, Default)]
pub struct Drain {
    leaving: AtomicBool,
    cut: AtomicBool,
    cut_told: Arc<Notify>,
    /// How often all were told to look.
    looks: AtomicUsize,
    /// Held while all are told, and while one begins to wait: so each wait is before a word or behind it.
    order: Mutex<()>,
    working: AtomicUsize,
    idle_told: Notify,
}

impl Drain {
    /// A gateway that serves.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The gateway is on its way out: not ready, connections are not kept.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// Begins the lame duck.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Whether exchanges must end now.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    /// Ends every exchange that is left.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.look();
    }

    /// Counts one exchange for as long as the guard lives.
    pub fn begin(self: &Arc<Self>) -> Working {
        self.working.fetch_add(1, Ordering::AcqRel);
        Working(Arc::clone(self))
    }

    /// Exchanges at work.
    pub fn working(&self) -> usize {
        self.working.load(Ordering::Acquire)
    }

    /// Returns when no exchange is at work.
    pub async fn idle(&self) {
        loop {
            let told = self.idle_told.notified();
            if self.working() == 0 {
                return;
            }
            told.await;
        }
    }

    /// Has every exchange look whether it must end: the backend of some has been cut. Rare, so that none
    /// needs a place to wait for its backend alone.
    pub fn look(&self) {
        let _order = self.order.lock();
        self.looks.fetch_add(1, Ordering::AcqRel);
        self.cut_told.notify_waiters();
    }

    /// A signal that is ready once exchanges must end.
    pub fn cut_signal(self: &Arc<Self>) -> CutSignal {
        CutSignal { drain: Arc::clone(self), backend: None, told: self.told(), seen: 0, waker: None }
    }

    /// The same for an attempt, which also ends once its backend must have no more of them.
    pub fn cut_signal_on(self: &Arc<Self>, backend: Arc<BackendState>) -> CutSignal {
        CutSignal { backend: Some(backend), ..self.cut_signal() }
    }

    fn told(&self) -> Pin<Box<OwnedNotified>> {
        Box::pin(Arc::clone(&self.cut_told).notified_owned())
    }
}

/// One exchange at work.
#[derive(Debug)]
pub struct Working(Arc<Drain>);

impl Drop for Working {
    fn drop(&mut self) {
        if self.0.working.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle_told.notify_waiters();
        }
    }
}

/// Ready once exchanges must end. Asked often: it takes its lock only when the task has changed.
#[derive(Debug)]
pub struct CutSignal {
    drain: Arc<Drain>,
    backend: Option<Arc<BackendState>>,
    told: Pin<Box<OwnedNotified>>,
    /// The word that is waited for comes after so many.
    seen: usize,
    waker: Option<Waker>,
}

impl CutSignal {
    /// Ready at the cut; otherwise wakes the task then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_cut() {
            return Poll::Ready(());
        }
        let is_waiting = self.seen == self.drain.looks.load(Ordering::Acquire);
        if is_waiting && self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        self.wait(cx);
        // The cut may have come between the first look and the registration.
        if self.is_cut() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Has the task woken by the next word.
    fn wait(&mut self, cx: &mut Context<'_>) {
        let drain = Arc::clone(&self.drain);
        let _order = drain.order.lock();
        self.seen = drain.looks.load(Ordering::Acquire);
        self.told = drain.told();
        self.waker = Some(cx.waker().clone());
        let told = self.told.as_mut().poll(cx);
        debug_assert!(told.is_pending(), "no word comes while the order is held");
    }

    fn is_cut(&self) -> bool {
        self.drain.is_cut() || self.backend.as_ref().is_some_and(|backend| backend.leaving.is_cut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cut_wakes_who_waits_and_who_comes_late() {
        let drain = Drain::new();
        let mut waiting = drain.cut_signal();
        let task = tokio::spawn(async move { std::future::poll_fn(|cx| waiting.poll(cx)).await });
        tokio::task::yield_now().await;
        drain.cut();
        task.await.unwrap();
        let mut late = drain.cut_signal();
        std::future::poll_fn(|cx| late.poll(cx)).await;
    }

    #[tokio::test]
    async fn a_cut_backend_wakes_its_own_and_nobody_else() {
        let drain = Drain::new();
        let backends: [Arc<BackendState>; 2] = Default::default();
        let mut signals = backends.clone().map(|backend| drain.cut_signal_on(backend));
        let [mut first, mut second] = signals.each_mut().map(|signal| {
            let mut signal = std::mem::replace(signal, drain.cut_signal());
            tokio::spawn(async move { std::future::poll_fn(|cx| signal.poll(cx)).await })
        });
        // The first word is for nobody, and must not use up what they wait by.
        for cut in [None, Some(0), Some(1)] {
            tokio::task::yield_now().await;
            if let Some(at) = cut {
                backends[at].leaving.cut(true);
            }
            drain.look();
            match cut {
                None => {}
                Some(0) => (&mut first).await.unwrap(),
                Some(_) => (&mut second).await.unwrap(),
            }
            assert_eq!(second.is_finished(), cut == Some(1));
        }
    }

    #[tokio::test]
    async fn idle_comes_with_the_last_exchange() {
        let drain = Drain::new();
        let working = drain.begin();
        assert_eq!(drain.working(), 1);
        let waiter = tokio::spawn({
            let drain = Arc::clone(&drain);
            async move { drain.idle().await }
        });
        tokio::task::yield_now().await;
        drop(working);
        waiter.await.unwrap();
    }
}
