//! Not asking a socket again that has promised to call.
//!
//! While an answer runs, Pingora asks the client's connection for its end three times an event, and each
//! time the way down to tokio's readiness and back costs more than the event's own reframing. A read that
//! was pending stays pending until its waker is woken, so it is given a waker of our own that remembers
//! whether it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Whether the next read of a connection can be anything but pending.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    asleep: Option<Asleep>,
}

/// A read that is pending.
#[derive(Debug)]
struct Asleep {
    bell: Arc<Bell>,
    /// The task that the bell wakes.
    task: Waker,
    /// The last read was pending, and nobody has read past us since.
    waits: bool,
}

#[derive(Debug, Default)]
struct Bell {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Quiet {
    /// Somebody else reads, with a waker of his own: what was promised to us no longer holds.
    pub(super) fn disturb(&mut self) {
        if let Some(asleep) = &mut self.asleep {
            asleep.waits = false;
        }
    }

    /// Reads with `read`, unless the last read was pending and its waker has not been woken since.
    pub(super) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        read: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let asleep = match &mut self.asleep {
            Some(asleep) if asleep.task.will_wake(cx.waker()) => {
                if asleep.waits && !asleep.bell.rung.load(Ordering::Acquire) {
                    return Poll::Pending;
                }
                asleep
            }
            _ => self.asleep.insert(Asleep { bell: Arc::default(), task: cx.waker().clone(), waits: false }),
        };
        // Before the read: a call that comes during it is not lost.
        asleep.bell.rung.store(false, Ordering::Release);
        asleep.bell.task.register(cx.waker());
        let waker = Waker::from(Arc::clone(&asleep.bell));
        let poll = read(&mut Context::from_waker(&waker));
        asleep.waits = poll.is_pending();
        poll
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[derive(Default)]
    struct Task(AtomicBool);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// A socket that is asked, and whose waker can be woken.
    #[derive(Default)]
    struct Socket {
        asked: Cell<u32>,
        waker: RefCell<Option<Waker>>,
    }

    impl Socket {
        fn poll(&self, cx: &Context<'_>) -> Poll<()> {
            self.asked.set(self.asked.get() + 1);
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }

        fn call(&self) {
            self.waker.borrow().as_ref().unwrap().wake_by_ref();
        }
    }

    #[test]
    fn a_pending_socket_is_asked_again_only_when_it_has_called() {
        let (socket, mut quiet, task) = (Socket::default(), Quiet::default(), Arc::new(Task::default()));
        let waker = Waker::from(Arc::clone(&task));
        let cx = Context::from_waker(&waker);
        let ask = |quiet: &mut Quiet| {
            assert!(quiet.poll(&cx, |cx| socket.poll(cx)).is_pending());
            socket.asked.get()
        };
        assert_eq!((ask(&mut quiet), ask(&mut quiet)), (1, 1));
        socket.call();
        assert!(task.0.load(Ordering::Relaxed), "the task hears of it");
        assert_eq!((ask(&mut quiet), ask(&mut quiet)), (2, 2));
        quiet.disturb();
        assert_eq!((ask(&mut quiet), ask(&mut quiet)), (3, 3));
    }

    #[test]
    fn another_task_asks_anew_and_is_the_one_that_is_woken() {
        let (socket, mut quiet) = (Socket::default(), Quiet::default());
        let tasks = [Arc::new(Task::default()), Arc::new(Task::default())];
        for task in &tasks {
            let waker = Waker::from(Arc::clone(task));
            assert!(quiet.poll(&Context::from_waker(&waker), |cx| socket.poll(cx)).is_pending());
        }
        assert_eq!(socket.asked.get(), 2);
        socket.call();
        assert!(!tasks[0].0.load(Ordering::Relaxed) && tasks[1].0.load(Ordering::Relaxed));
    }
}
