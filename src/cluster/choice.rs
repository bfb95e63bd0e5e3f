//! The choice of one attempt: by what it sticks to within the bound, else as the cluster balances.

use std::cell::OnceCell;
use std::sync::atomic::Ordering;
use std::time::Instant;

use smallvec::SmallVec;

use super::affinity::{Kept, Share, is_over};
use super::pick::{self, Candidate, Candidates, Score};
use super::{Ask, Backend, Cluster, Standing};
use crate::config::Balance;
use crate::hooks::{self, Chooser};

/// The place of the backend to use among those of the wanted standing, and what its affinity came to; `None`
/// where there is none.
pub(super) fn make(cluster: &Cluster, ask: &Ask<'_>, wanted: Standing) -> Option<(usize, Option<Kept>)> {
    let choice = Choice { cluster, ask, wanted };
    let usable = choice.usable();
    if let Some(chooser) = &ask.chooser
        && let Some(at) = choice.by_hook(chooser, &usable)
    {
        return Some((at, None));
    }
    if ask.keys.is_empty() || cluster.config.affinity.by.is_empty() {
        return Some((choice.balance(&usable)?, None));
    }
    choice.by_affinity(usable).map(|(at, kept)| (at, Some(kept)))
}

struct Choice<'a> {
    cluster: &'a Cluster,
    ask: &'a Ask<'a>,
    wanted: Standing,
}

impl Choice<'_> {
    fn usable(&self) -> Candidates {
        let backends = self.cluster.backends.iter().enumerate();
        let standing = self.cluster.standings(self.ask);
        // That it is not full is said by `Usable`, and by no other standing.
        let may_be_full = self.wanted != Standing::Usable;
        let usable = backends
            .filter(|(_, backend)| standing(backend) == self.wanted && !(may_be_full && backend.is_full()));
        usable.map(|(at, backend)| Candidate { at, weight: weight(backend, self.ask.now) }).collect()
    }

    fn backend(&self, candidate: &Candidate) -> &Backend {
        &self.cluster.backends[candidate.at]
    }

    /// What the hook says. Only among those that are well: others are nobody's to choose.
    fn by_hook(&self, chooser: &Chooser<'_>, usable: &[Candidate]) -> Option<usize> {
        if self.wanted != Standing::Usable || usable.is_empty() {
            return None;
        }
        let shown = |candidate: &Candidate| {
            let backend = self.backend(candidate);
            hooks::Candidate {
                cluster: &backend.cluster,
                name: &backend.name,
                load: self.load(candidate),
                in_flight: backend.state.in_flight(),
                weight: backend.weight,
            }
        };
        let shown: SmallVec<[_; 16]> = usable.iter().map(shown).collect();
        chooser.choose(&shown).map(|place| usable[place].at)
    }

    fn by_affinity(&self, mut usable: Candidates) -> Option<(usize, Kept)> {
        let (keys, homes) = (self.ask.keys, &self.cluster.state.homes);
        let found = homes.find(keys);
        let home = found.map(|(home, _)| home);
        let at_home = home.and_then(|home| usable.iter().position(|usable| self.backend(usable).id == home));
        let (at, kept) = match (home, at_home) {
            (_, Some(place)) if !self.overflows(&usable, place) => (usable[place].at, Kept::Hit),
            (_, Some(place)) => {
                usable.remove(place);
                (self.balance(&usable)?, Kept::Spill)
            }
            (Some(home), None) => (self.balance(&usable)?, self.without(home)),
            (None, None) => (self.balance(&usable)?, Kept::New),
        };
        // The keys that are known stay where they are, unless their home is gone. Those beyond them are this
        // request's own, and their cache will be where it goes now.
        let nothing_new = found.is_some_and(|(_, is_longest)| is_longest) && kept != Kept::Moved;
        if !nothing_new {
            homes.settle(keys, self.cluster.backends[at].id, home.filter(|_| kept == Kept::Moved));
        }
        Some((at, kept))
    }

    /// Whether there is another one that does less than this one.
    fn overflows(&self, usable: &[Candidate], place: usize) -> bool {
        usable.len() > 1 && self.is_over(&usable[place], || self.all(usable))
    }

    /// What becomes of a key whose home cannot be used.
    fn without(&self, home: u64) -> Kept {
        let backend = self.cluster.backends.iter().find(|backend| backend.id == home);
        let stays = backend.is_some_and(|backend| self.cluster.standings(self.ask)(backend).keeps_homes());
        if stays { Kept::Spill } else { Kept::Moved }
    }

    fn balance(&self, usable: &[Candidate]) -> Option<usize> {
        let draw = self.ask.draw;
        let place = match self.cluster.config.balance {
            Balance::RoundRobin => self.turn(usable),
            Balance::Random => pick::random(usable, draw),
            Balance::LeastLoad => pick::least_load(usable, draw, |candidate| self.score(candidate)),
            Balance::ConsistentHash => self.hash(usable),
        };
        place.map(|place| usable[place].at)
    }

    fn turn(&self, usable: &[Candidate]) -> Option<usize> {
        let _round = self.cluster.state.round.lock();
        let savings = |candidate: &Candidate| &self.backend(candidate).state.savings;
        let mut all: SmallVec<[i64; 64]> =
            usable.iter().map(|candidate| savings(candidate).load(Ordering::Relaxed)).collect();
        // Another attempt of the same exchange takes no turn of its own: where every second node is down it
        // would bring each exchange to a dead one first.
        if !self.ask.tried.is_empty() {
            return pick::next_turn(usable, &all);
        }
        let place = pick::take_turn(usable, &mut all)?;
        for (candidate, saved) in usable.iter().zip(all) {
            savings(candidate).store(saved, Ordering::Relaxed);
        }
        Some(place)
    }

    fn hash(&self, usable: &[Candidate]) -> Option<usize> {
        let Some(key) = self.ask.keys.first() else { return pick::random(usable, self.ask.draw) };
        let all = OnceCell::new();
        let all = || *all.get_or_init(|| self.all(usable));
        let id = |candidate: &Candidate| self.backend(candidate).id;
        // One is always within the bound, unless all got more work between two looks at it.
        pick::rendezvous(usable, *key, id, |candidate| !self.is_over(candidate, all))
            .or_else(|| pick::rendezvous(usable, *key, id, |_| true))
    }

    fn score(&self, candidate: &Candidate) -> Score {
        let pace = self.backend(candidate).state.load.pace();
        let (latency, trust) = pace.latency(self.ask.now);
        Score {
            load: self.load(candidate).saturating_add(self.ask.cost),
            weight: candidate.weight,
            latency,
            trust,
            troubled: pace.is_troubled(self.ask.now),
        }
    }

    fn load(&self, candidate: &Candidate) -> u64 {
        self.backend(candidate).state.load.total(self.ask.now, self.cluster.readings_last())
    }

    fn all(&self, usable: &[Candidate]) -> Share {
        usable.iter().fold(Share::default(), |all, candidate| Share {
            load: all.load.saturating_add(self.load(candidate)),
            weight: all.weight + candidate.weight,
        })
    }

    fn is_over(&self, candidate: &Candidate, all: impl FnOnce() -> Share) -> bool {
        let mine = Share { load: self.load(candidate), weight: candidate.weight };
        is_over(self.cluster.config.affinity.load_bound, mine, all)
    }
}

/// A backend's weight as the choice counts it: less while it comes back slowly.
fn weight(backend: &Backend, now: Instant) -> u64 {
    let whole = u64::from(backend.weight) * pick::WEIGHT;
    match backend.state.health.share(now) {
        share if share < 1.0 => ((whole as f64 * share) as u64).max(1),
        _ => whole,
    }
}
