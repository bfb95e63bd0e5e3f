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

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Shared state of the drain.
#[derive(Debug, Default)]
pub struct Drain {
    leaving: AtomicBool,
    cut: AtomicBool,
    cut_told: Arc<Notify>,
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
        self.cut_told.notify_waiters();
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

    /// A signal that is ready once exchanges must end.
    pub fn cut_signal(self: &Arc<Self>) -> CutSignal {
        let told = Box::pin(Arc::clone(&self.cut_told).notified_owned());
        CutSignal { drain: Arc::clone(self), told, waker: None }
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
    told: Pin<Box<OwnedNotified>>,
    waker: Option<Waker>,
}

impl CutSignal {
    /// Ready at the cut; otherwise wakes the task then.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.drain.is_cut() {
            return Poll::Ready(());
        }
        if self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        self.waker = Some(cx.waker().clone());
        match self.told.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            // The cut may have come between the first look and the registration.
            Poll::Pending if self.drain.is_cut() => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        }
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
