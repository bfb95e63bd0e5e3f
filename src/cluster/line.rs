//! Who waits for a free slot, and whose turn it is.
//!
//! The one hard idea: a *turn*. A slot that is freed gives the turn to one waiter, which then looks for a slot
//! itself: only it knows which backends it may use. What it makes of the turn comes back here, so that no turn is
//! lost: who leaves with one passes it on, who finds nothing for itself passes it to those who might, and what is
//! freed while nobody could be given a turn is kept as *surplus* for the next who settles theirs.
//!
//! Waiters stand in lanes (one for each key), which are served in rotation; within a lane who came first is first.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

/// The lane of those who are not told apart.
pub const EVERYBODY: u64 = 0;

/// How a waiter differs from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Whose lane it stands in.
    pub(super) lane: u64,
    /// The configuration it sees: waiters of another may have backends that it has not.
    pub(super) generation: u64,
    /// It has been tried on some backends, so that it may find nothing where others would.
    pub(super) picky: bool,
}

/// The name of a waiter in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    lane: u64,
    number: u64,
}

/// What a waiter is to do that found no slot in its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused<W> {
    /// Look again: something was freed since it looked.
    Again,
    /// Wait; whoever is given here has the turn now.
    Wait(Option<W>),
}

/// The rounds of who has never had the turn, and of who had it by joining: nothing was freed for it, so it passes it
/// on only to those who have never looked. Others follow.
const NEVER: u64 = 0;
const JOINED: u64 = 1;

#[derive(Debug)]
struct Waiter<W> {
    number: u64,
    kind: Kind,
    waker: Option<W>,
    /// It has the turn.
    turn: bool,
    /// It has looked in vain, and has been told so.
    looked: bool,
    /// The last round in which it had the turn, or `NEVER`. A turn that is passed on stays in its round, so that it
    /// comes to an end.
    round: u64,
    /// What had been freed when it began to look.
    seen: u64,
}

#[derive(Debug)]
struct Lane<W> {
    key: u64,
    waiters: VecDeque<Waiter<W>>,
}

impl<W> Lane<W> {
    fn place_of(&self, ticket: Ticket) -> Option<usize> {
        self.waiters.binary_search_by_key(&ticket.number, |waiter| waiter.number).ok()
    }
}

/// The line. `W` wakes a waiter.
#[derive(Debug)]
pub(super) struct Line<W> {
    /// The one to be served next stands first.
    lanes: VecDeque<Lane<W>>,
    waiting: usize,
    next: u64,
    round: u64,
    /// How often something was freed, ever.
    freed: u64,
    /// Turns that nobody could be given.
    surplus: usize,
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Self { lanes: VecDeque::new(), waiting: 0, next: 0, round: JOINED, freed: 0, surplus: 0 }
    }
}

impl<W> Line<W> {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether somebody of this generation who comes now would overtake by looking for a slot at once. Those
    /// who have looked in vain for what only they see, or not for all that there is, are not overtaken.
    pub(super) fn is_crowded(&self, generation: u64) -> bool {
        self.all().any(|waiter| waiter.turn || (!waiter.kind.picky && waiter.kind.generation == generation))
    }

    /// Joins, unless `max` wait already or the lane has as many as there are places left. So a lane alone can fill
    /// half of the line, two a third each: whoever comes for the first time finds a place. Who overtakes nobody has the turn at once: a slot may have been freed
    /// since it looked.
    pub(super) fn join(&mut self, kind: Kind, max: usize) -> Option<Ticket> {
        let left = max.saturating_sub(self.waiting);
        if left == 0 || (kind.lane != EVERYBODY && self.length_of(kind.lane) >= left) {
            return None;
        }
        let turn = !self.is_crowded(kind.generation);
        if !turn && !self.has_looked(kind.generation) {
            // Nobody has looked in vain for what it sees: whoever has the turn leaves one for it.
            self.surplus = self.surplus.saturating_add(1);
        }
        let round = if turn { JOINED } else { NEVER };
        let number = self.next;
        self.next += 1;
        self.waiting += 1;
        let waiter = Waiter { number, kind, waker: None, turn, looked: false, round, seen: self.freed };
        match self.lanes.iter_mut().find(|lane| lane.key == kind.lane) {
            Some(lane) => lane.waiters.push_back(waiter),
            None => self.lanes.push_back(Lane { key: kind.lane, waiters: [waiter].into() }),
        }
        Some(Ticket { lane: kind.lane, number })
    }

    /// Whether it is this one's turn; else it is woken by `waker` when it is.
    pub(super) fn has_turn(&mut self, ticket: Ticket, waker: impl FnOnce() -> W) -> bool {
        let freed = self.freed;
        let Some(waiter) = self.find(ticket) else { return false };
        if waiter.turn {
            waiter.seen = freed;
        } else {
            waiter.waker = Some(waker());
        }
        waiter.turn
    }

    /// It sees the backends of this configuration from now on.
    pub(super) fn looks_at(&mut self, ticket: Ticket, generation: u64) {
        let Some(waiter) = self.find(ticket) else { return };
        if waiter.kind.generation != generation {
            waiter.kind.generation = generation;
            waiter.looked = false;
        }
    }

    /// A slot was freed: gives the next one its turn.
    pub(super) fn slot_freed(&mut self) -> Option<W> {
        self.freed += 1;
        let next = self.fresh_turn();
        if next.is_none() && self.waiting > 0 {
            self.surplus = self.surplus.saturating_add(1);
        }
        next.flatten()
    }

    /// There may be any number of slots: one after the other gets its turn until one finds none.
    pub(super) fn nudge(&mut self) -> Option<W> {
        if self.waiting == 0 {
            return None;
        }
        self.freed += 1;
        self.surplus = usize::MAX;
        self.spend_surplus()
    }

    /// It found a slot, and leaves.
    pub(super) fn took(&mut self, ticket: Ticket) -> Option<W> {
        self.remove(ticket);
        self.spend_surplus()
    }

    /// It found none in its turn.
    pub(super) fn refused(&mut self, ticket: Ticket) -> Refused<W> {
        let freed = self.freed;
        let Some(waiter) = self.find(ticket) else { return Refused::Wait(None) };
        if waiter.seen != freed {
            waiter.seen = freed;
            return Refused::Again;
        }
        waiter.turn = false;
        waiter.looked = true;
        let (kind, round) = (waiter.kind, waiter.round);
        // What it found taken is taken for all who see the same backends.
        let may_find = |other: &Waiter<W>| {
            other.round < round && (kind.picky || other.kind.generation != kind.generation)
        };
        let next = self.give_turn(round, may_find);
        if next.is_none() && !self.all().any(|waiter| waiter.turn) {
            self.surplus = 0;
        }
        Refused::Wait(next.flatten())
    }

    /// It leaves without a slot. A turn that it had is passed on.
    pub(super) fn left(&mut self, ticket: Ticket) -> Option<W> {
        let had_turn = self.remove(ticket);
        if had_turn { self.slot_freed() } else { None }
    }

    /// Whether one of this generation waits who found none of its backends free.
    fn has_looked(&self, generation: u64) -> bool {
        self.all().any(|waiter| {
            let sees_all = !waiter.kind.picky && waiter.kind.generation == generation;
            sees_all && waiter.looked && !waiter.turn
        })
    }

    fn all(&self) -> impl Iterator<Item = &Waiter<W>> {
        self.lanes.iter().flat_map(|lane| &lane.waiters)
    }

    fn length_of(&self, lane: u64) -> usize {
        self.lanes.iter().find(|other| other.key == lane).map_or(0, |lane| lane.waiters.len())
    }

    fn find(&mut self, ticket: Ticket) -> Option<&mut Waiter<W>> {
        let lane = self.lanes.iter_mut().find(|lane| lane.key == ticket.lane)?;
        let at = lane.place_of(ticket)?;
        lane.waiters.get_mut(at)
    }

    fn remove(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.lanes.iter().position(|lane| lane.key == ticket.lane) else { return false };
        let Some(place) = self.lanes[at].place_of(ticket) else { return false };
        let waiter = self.lanes[at].waiters.remove(place);
        self.waiting -= 1;
        if self.lanes[at].waiters.is_empty() {
            self.lanes.remove(at);
        }
        if self.waiting == 0 {
            self.surplus = 0;
        }
        waiter.is_some_and(|waiter| waiter.turn)
    }

    fn spend_surplus(&mut self) -> Option<W> {
        if self.surplus == 0 {
            return None;
        }
        let next = self.fresh_turn()?;
        if self.surplus != usize::MAX {
            self.surplus -= 1;
        }
        next
    }

    fn fresh_turn(&mut self) -> Option<Option<W>> {
        self.round += 1;
        self.give_turn(self.round, |_| true)
    }

    /// Gives the turn to the first who waits and may have it; `None` when there is none. The lane behind the one
    /// that is served is the next to be.
    fn give_turn(&mut self, round: u64, may: impl Fn(&Waiter<W>) -> bool) -> Option<Option<W>> {
        for at in 0..self.lanes.len() {
            let mut waiters = self.lanes[at].waiters.iter_mut();
            let Some(waiter) = waiters.find(|waiter| !waiter.turn && may(waiter)) else { continue };
            waiter.turn = true;
            waiter.round = round;
            let waker = waiter.waker.take();
            self.lanes.rotate_left((at + 1) % self.lanes.len());
            return Some(waker);
        }
        None
    }
}
