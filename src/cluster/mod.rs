//! A cluster: backends that serve the same thing, and the choice among them.

pub mod affinity;
mod ask;
mod backend;
mod budget;
mod choice;
mod failures;
mod health;
mod learn;
mod leaving;
mod line;
pub mod load;
mod output;
pub mod pick;
mod picking;
mod queue;
mod reading;
mod report;
mod rest;
mod retry_after;
mod scraped;
mod standing;
mod state;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{AffinityBy, Balance};

pub use ask::Ask;
pub use backend::{Backend, InFlight};
pub use budget::{Second, is_sound};
pub use failures::Failures;
pub use health::{Change, Condition, Health, Probed, Progress, Reason, Seen, Trial, Watched};
pub use leaving::{Leave, Leaving};
pub use line::EVERYBODY;
use line::Kind;
pub use output::Output;
pub use queue::{Place, Queue};
pub use reading::Reading;
pub use report::Report;
pub use retry_after::retry_after;
use standing::Standing;
pub use state::{BackendState, ClusterState};

/// Why a cluster had no backend to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoBackend {
    /// It has none: its name has no address yet.
    #[error("it has no backends: no address of its name is known yet")]
    Empty,
    /// Every backend is being drained.
    #[error("every backend is being drained")]
    AllDraining,
    /// Every backend that takes work has been tried for this exchange.
    #[error("every backend has been tried")]
    AllTried,
    /// Every backend that is left rests after a 429 or a 503.
    #[error("every backend rests")]
    AllResting,
    /// Every backend that is left has as many attempts as it takes, or others wait for a slot already.
    #[error("every backend is full")]
    AllFull,
    /// Those that are left are out of the rotation.
    #[error("no backend is healthy")]
    AllOut,
}

/// A reading of an engine's load counts until as many were missed.
const READINGS_MISSED_MAX: u32 = 3;

/// Backends that serve the same thing.
#[derive(Debug)]
pub struct Cluster {
    /// Its settings.
    pub config: crate::config::Cluster,
    /// Its backends, in the order of the file.
    pub backends: Vec<Arc<Backend>>,
    /// What is known of it, whatever snapshot names it.
    pub state: Arc<ClusterState>,
    /// Tells it from the clusters of other snapshots that share its state and have other backends.
    generation: u64,
}

impl Cluster {
    /// A cluster over these backends, with what is known of it.
    pub fn new(
        config: crate::config::Cluster,
        backends: Vec<Arc<Backend>>,
        state: Arc<ClusterState>,
    ) -> Self {
        let generation = state.number_of(&backends);
        Self { config, backends, state, generation }
    }

    /// How long what an engine said of its load is taken for true; zero where it is not asked.
    pub fn readings_last(&self) -> Duration {
        let every = self.config.scrape.as_ref().map_or(Duration::ZERO, |scrape| scrape.every);
        every.saturating_mul(READINGS_MISSED_MAX)
    }

    /// What requests stick by: what the file says. Where backends are chosen by a hash and it says
    /// nothing, there must be something to hash: the session, else the prompt.
    pub fn sticks_by(&self) -> &[AffinityBy] {
        match self.config.balance {
            Balance::ConsistentHash if self.config.affinity.by.is_empty() => {
                &[AffinityBy::Session, AffinityBy::Prefix]
            }
            _ => &self.config.affinity.by,
        }
    }

    /// Says of each backend what it is good for now. What is true of all of them is found out once.
    fn standings(&self, ask: &Ask<'_>) -> impl Fn(&Arc<Backend>) -> Standing {
        let fail_static = ask.lenient && self.fails_static();
        move |backend| standing::of(backend, ask, fail_static)
    }

    /// Whether all checks fail: then they say more of the checks than of the backends, and all are used as before.
    fn fails_static(&self) -> bool {
        self.backends.iter().all(|backend| backend.state.health.fails_checks())
    }

    /// Whether a backend is left that could be picked now, or waited for. One that rests counts only
    /// `if_resting` does.
    pub fn has_left(&self, ask: &Ask<'_>, if_resting: bool) -> bool {
        self.backends.iter().map(self.standings(ask)).any(|standing| match standing {
            Standing::Usable | Standing::HalfOpen | Standing::Doubted => true,
            Standing::Full => self.state.queue.depth() < self.config.queue_max,
            Standing::Resting => if_resting,
            Standing::Draining | Standing::Tried | Standing::Out => false,
        })
    }

    /// Of its backends that take work, how many are sound, and how many there are. Sound is one that works, that this
    /// exchange has not been tried on and that no attempt has failed on lately: full or not, it can be waited for.
    pub fn soundness(&self, ask: &Ask<'_>) -> (usize, usize) {
        let since = ask.now.checked_sub(budget::LATELY);
        let ask = Ask { lenient: false, ..*ask };
        let standing = self.standings(&ask);
        let is_sound = |backend: &Arc<Backend>| {
            matches!(standing(backend), Standing::Usable | Standing::Full)
                && since.is_none_or(|since| backend.state.health.is_sound_since(since))
        };
        let working = self.backends.iter().filter(|backend| standing(backend) != Standing::Draining);
        working.fold((0, 0), |(sound, all), backend| (sound + usize::from(is_sound(backend)), all + 1))
    }

    /// Joins the queue for a free slot in this lane; `None` where as many wait as may.
    pub fn join(&self, lane: u64, ask: &Ask<'_>) -> Option<Place> {
        let picky = ask.tried.iter().any(|tried| self.place_of(tried).is_some());
        let kind = Kind { lane, generation: self.generation, picky };
        Place::join(&self.state, kind, self.config.queue_max)
    }

    fn place_of(&self, backend: &Arc<Backend>) -> Option<usize> {
        self.backends.iter().position(|other| backend.is(other))
    }

    /// When somebody who waits for a slot is to look again, since time alone may have made one: a rest or an
    /// ejection ends.
    pub fn look_at(&self, now: Instant) -> Option<Instant> {
        let states = self.backends.iter().map(|backend| &backend.state);
        states.flat_map(|state| [state.rest_ends(now), state.health.half_open_at(now)]).flatten().min()
    }

    /// Spends one of the retry budget, if one is left.
    pub fn spend_retry(&self, now: Instant) -> Option<Second> {
        Second::spend(&self.state, &self.config.retry, now)
    }

    /// Second attempts at work that the retry budget was spent on, and how many its share allows at present.
    pub fn retry_budget(&self) -> (usize, usize) {
        budget::level(&self.state, &self.config.retry)
    }
}
