//! The queue of a cluster whose backends are all full: the line behind a lock, and the places in it.
//!
//! A slot is freed by counting down first and looking at the queue second; a waiter joins first and counts
//! second. With a fence between the two steps on both sides one of them sees the other, so that no slot
//! stays free while somebody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::line::{Kind, Line, Refused, Ticket};
use super::{Cluster, ClusterState};

/// Waiters of one cluster.
#[derive(Debug, Default)]
pub struct Queue {
    line: Mutex<Line<Waker>>,
    /// The length of the line, for those who only look whether there is one.
    waiting: AtomicUsize,
}

impl Queue {
    /// How many wait.
    pub fn depth(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Backends may have slots that no attempt has freed, as one recovered, ended its rest or came back from a
    /// drain: lets those who wait look.
    pub fn nudge(&self) {
        if self.depth() > 0 {
            wake(self.change(Line::nudge));
        }
    }

    /// Whether who comes now has to join.
    pub(super) fn is_crowded(&self, generation: u64) -> bool {
        self.depth() > 0 && self.line.lock().is_crowded(generation)
    }

    /// A slot has just been freed.
    pub(super) fn slot_freed(&self) {
        fence(Ordering::SeqCst);
        if self.depth() > 0 {
            wake(self.change(Line::slot_freed));
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Line<Waker>) -> T) -> T {
        let mut line = self.line.lock();
        let changed = change(&mut line);
        self.waiting.store(line.len(), Ordering::Relaxed);
        changed
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A place in the queue of a cluster, given back when dropped.
#[derive(Debug)]
pub struct Place {
    cluster: Arc<ClusterState>,
    ticket: Option<Ticket>,
}

impl Place {
    /// Joins the queue; `None` where `max` wait already.
    pub(super) fn join(cluster: &Arc<ClusterState>, kind: Kind, max: usize) -> Option<Self> {
        let ticket = cluster.queue.change(|line| line.join(kind, max))?;
        fence(Ordering::SeqCst);
        Some(Self { cluster: Arc::clone(cluster), ticket: Some(ticket) })
    }

    /// Ready when it is its turn to look for a slot. What it finds is told by [`Place::took`] or
    /// [`Place::refused`]; dropped instead, it passes the turn on.
    pub fn poll_turn(&self, cx: &Context<'_>) -> Poll<()> {
        let Some(ticket) = self.ticket else { return Poll::Pending };
        let mut line = self.cluster.queue.line.lock();
        if line.has_turn(ticket, || cx.waker().clone()) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// It looks for a slot in the cluster as it is now, with other backends perhaps than when it joined.
    pub fn looks_at(&self, cluster: &Cluster) {
        if let Some(ticket) = self.ticket {
            self.cluster.queue.line.lock().looks_at(ticket, cluster.generation);
        }
    }

    /// It found a slot.
    pub fn took(mut self) {
        if let Some(ticket) = self.ticket.take() {
            wake(self.cluster.queue.change(|line| line.took(ticket)));
        }
    }

    /// It found none, and waits for its next turn.
    pub fn refused(&self) {
        let Some(ticket) = self.ticket else { return };
        match self.cluster.queue.change(|line| line.refused(ticket)) {
            Refused::Again => {}
            Refused::Wait(next) => wake(next),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            wake(self.cluster.queue.change(|line| line.left(ticket)));
        }
    }
}
