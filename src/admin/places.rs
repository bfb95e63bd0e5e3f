//! Places for connections of operators: so many, and whoever asks nothing makes room for whoever comes.
//!
//! A connection takes its place for one request at a time. Until the head is whole, and again when the answer is out,
//! the place is another's as soon as it is wanted, the one that has waited longest first. So connections that say
//! nothing, however many, keep no probe from its answer: its request comes with its connection.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Most connections at a time: those who watch the live page, of whom there are fewer, and as many probes, scrapes
/// and commands as meet at one gateway.
pub(super) const CONNECTIONS_MAX: usize = 64;

/// All places.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Those who are being answered.
    kept: usize,
    /// Those who wait, in the order in which they began to.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
    next: u64,
}

/// A place of one connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    places: &'a Places,
    state: State,
}

#[derive(Debug)]
enum State {
    Kept,
    /// The sender is dropped when the place is another's.
    Waiting {
        number: u64,
        wanted: oneshot::Receiver<()>,
    },
}

impl Places {
    /// So many, all of them free.
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: Mutex::default() }
    }

    /// A place for one who waits, if need be that of the one who has waited longest; `None` where nobody waits.
    pub(super) fn enter(&self) -> Option<Place<'_>> {
        let mut taken = self.taken.lock();
        if taken.kept + taken.waiting.len() >= self.most {
            taken.waiting.pop_first()?;
        }
        Some(Place { places: self, state: taken.wait() })
    }
}

impl Taken {
    fn wait(&mut self) -> State {
        let (sender, wanted) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, sender);
        State::Waiting { number, wanted }
    }
}

impl Place<'_> {
    /// Returns when the place is another's; never while it is kept.
    pub(super) async fn is_wanted(&mut self) {
        match &mut self.state {
            State::Kept => std::future::pending().await,
            // Nothing is ever sent: what ends it is that the sender is dropped.
            State::Waiting { wanted, .. } => {
                drop(wanted.await);
            }
        }
    }

    /// Keeps the place from now on, and says whether it was still there.
    #[must_use]
    pub(super) fn keep(&mut self) -> bool {
        let State::Waiting { number, .. } = self.state else { return true };
        let mut taken = self.places.taken.lock();
        let is_there = taken.waiting.remove(&number).is_some();
        if is_there {
            taken.kept += 1;
            self.state = State::Kept;
        }
        is_there
    }

    /// Leaves it to whoever wants it, as the last one to have begun to wait.
    pub(super) fn let_go(&mut self) {
        if matches!(self.state, State::Kept) {
            let mut taken = self.places.taken.lock();
            taken.kept -= 1;
            self.state = taken.wait();
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        match self.state {
            State::Kept => taken.kept -= 1,
            // Where it is another's already there is nothing to give back.
            State::Waiting { number, .. } => drop(taken.waiting.remove(&number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn taken(places: &Places) -> (usize, usize) {
        let taken = places.taken.lock();
        (taken.kept, taken.waiting.len())
    }

    #[test]
    fn who_has_waited_longest_makes_room_and_who_is_answered_does_not() {
        let places = Places::new(3);
        let enter = || places.enter();
        let (mut one, mut two, mut three) = (enter().unwrap(), enter().unwrap(), enter().unwrap());
        assert!(one.keep());
        assert_eq!(one.is_wanted().now_or_never(), None);
        let mut four = enter().unwrap();
        assert_eq!(two.is_wanted().now_or_never(), Some(()));
        assert_eq!(three.is_wanted().now_or_never(), None);
        assert!(!two.keep(), "its head came too late");
        drop(two);
        assert_eq!(taken(&places), (1, 2));
        assert!(three.keep() && four.keep());
        assert!(enter().is_none(), "all are being answered");
        one.let_go();
        let five = enter().unwrap();
        assert_eq!(one.is_wanted().now_or_never(), Some(()));
        drop((one, three, four, five));
        assert_eq!(taken(&places), (0, 0));
    }

    #[test]
    fn silent_ones_keep_nobody_out() {
        let places = Places::new(3);
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(places.enter().unwrap());
            let mut probe = places.enter().unwrap();
            assert!(probe.keep());
            assert!(taken(&places).0 + taken(&places).1 <= 3);
        }
        drop(silent);
        assert_eq!(taken(&places), (0, 0));
    }
}
