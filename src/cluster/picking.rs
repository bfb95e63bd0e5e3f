//! The order in which a cluster offers its backends.
//!
//! Those that are well share the work as the cluster balances. One that is half-open comes first, so that it is
//! tried by a request that another node can still take. Where all that are well are full or rest, that is
//! said, and waited for. Only for a request that no other cluster can take ([`Ask::lenient`]) do failing checks
//! keep nobody out where none is well, and is each that attempts have failed on tried by one request at a time.

use std::sync::Arc;

use super::health::Trial;
use super::{Ask, Backend, Cluster, InFlight, NoBackend, Standing, choice};

impl Cluster {
    /// Picks the backend for the next attempt, never one that was tried before. Nobody overtakes those who wait.
    ///
    /// # Errors
    /// [`NoBackend`] when nothing is left to pick from.
    pub fn pick(&self, ask: &Ask<'_>) -> Result<InFlight, NoBackend> {
        if self.state.queue.is_crowded(self.generation) {
            return Err(NoBackend::AllFull);
        }
        self.pick_in_turn(ask)
    }

    /// The same for one whose turn it is in the queue.
    ///
    /// # Errors
    /// [`NoBackend`] when nothing is left to pick from.
    pub fn pick_in_turn(&self, ask: &Ask<'_>) -> Result<InFlight, NoBackend> {
        let half_open = || self.trial(ask, Standing::HalfOpen, |backend| backend.state.trial(ask.now));
        if let Some(trial) = ask.tried.is_empty().then(half_open).flatten() {
            return Ok(trial);
        }
        let why = loop {
            if let Some(picked) = self.balanced(ask, Standing::Usable) {
                return Ok(picked);
            }
            // A slot that was freed between the two looks is there to be taken.
            if let Some(why) = self.why(ask) {
                break why;
            }
        };
        if matches!(why, NoBackend::AllFull | NoBackend::AllResting) || !ask.lenient {
            return half_open().ok_or(why);
        }
        let doubted = || self.balanced(ask, Standing::Doubted);
        let last_resort = || self.trial(ask, Standing::Out, |backend| backend.state.last_resort(ask.now));
        half_open().or_else(doubted).or_else(last_resort).ok_or(why)
    }

    /// Picks among those that rest the one whose rest ends first.
    ///
    /// # Errors
    /// [`NoBackend`] when none of them has a free slot.
    pub fn pick_resting(&self, ask: &Ask<'_>) -> Result<InFlight, NoBackend> {
        let standing = self.standings(ask);
        loop {
            let resting = self
                .backends
                .iter()
                .filter(|backend| standing(backend) == Standing::Resting && !backend.is_full());
            let first = resting.min_by_key(|backend| backend.state.rest_ends(ask.now));
            let Some(backend) = first else { return Err(self.why(ask).unwrap_or(NoBackend::AllFull)) };
            if let Some(in_flight) = InFlight::take(backend, &self.state, ask.cost) {
                return Ok(in_flight);
            }
        }
    }

    /// One of those in this standing, as the cluster balances.
    fn balanced(&self, ask: &Ask<'_>, wanted: Standing) -> Option<InFlight> {
        loop {
            let (at, kept) = choice::make(self, ask, wanted)?;
            // Its last slot may just have been taken by another: it is full then.
            if let Some(in_flight) = InFlight::take(&self.backends[at], &self.state, ask.cost) {
                return Some(in_flight.keeping(kept));
            }
        }
    }

    /// An attempt on one of those in this standing, if one may be tried now.
    fn trial(
        &self,
        ask: &Ask<'_>,
        wanted: Standing,
        claim: impl Fn(&Backend) -> Option<Trial>,
    ) -> Option<InFlight> {
        let standing = self.standings(ask);
        // Only one that is out needs a trial: to look at that first is cheap, and most are not.
        let out = self.backends.iter().filter(|backend| !backend.state.health.is_in());
        let backends = out.filter(|backend| standing(backend) == wanted);
        let mut claimed = backends.filter_map(|backend| {
            let trial = claim(backend)?;
            Some(InFlight::take(backend, &self.state, ask.cost)?.on_trial(trial))
        });
        claimed.next()
    }

    /// Why none of them is usable; `None` where one is by now.
    fn why(&self, ask: &Ask<'_>) -> Option<NoBackend> {
        let standings: Vec<Standing> = self.backends.iter().map(self.standings(ask)).collect();
        let has = |wanted: Standing| standings.contains(&wanted);
        let rests_with_room = |(standing, backend): (&Standing, &Arc<Backend>)| {
            *standing == Standing::Resting && !backend.is_full()
        };
        if has(Standing::Usable) {
            return None;
        }
        Some(if standings.is_empty() {
            NoBackend::Empty
        } else if has(Standing::Full) {
            NoBackend::AllFull
        } else if standings.iter().zip(&self.backends).any(rests_with_room) {
            NoBackend::AllResting
        } else if has(Standing::Resting) {
            NoBackend::AllFull
        } else if has(Standing::Out) || has(Standing::HalfOpen) || has(Standing::Doubted) {
            NoBackend::AllOut
        } else if standings.iter().all(|standing| *standing == Standing::Draining) {
            NoBackend::AllDraining
        } else {
            NoBackend::AllTried
        })
    }
}
