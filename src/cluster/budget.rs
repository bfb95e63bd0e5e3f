//! How many second attempts a cluster may have: a share of its live requests, and a floor.
//!
//! Where every request fails, retries would double the load on what is left. The share bounds that; the floor lets
//! a cluster with little traffic retry at all. Where a minority has failed there is nothing to bound: each of its
//! requests is tried once more, on one of the many that are sound ([`is_sound`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::ClusterState;
use crate::config::Retry;

/// So long after a failed attempt a backend is not sound. As long as Finagle's retry budget remembers.
pub(super) const LATELY: Duration = Duration::from_secs(10);

/// Whether a cluster with so many sound backends of so many takes second attempts without a budget: at least half of
/// them are sound.
pub fn is_sound((sound, all): (usize, usize)) -> bool {
    sound > 0 && sound * 2 >= all
}

/// Second attempts that may live at a time, beside the floor, where so many requests do.
fn most(share: f64, live: usize) -> usize {
    (share * live as f64) as usize
}

/// What has been spent.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Second attempts that are decided and not yet over.
    second: AtomicUsize,
    /// When the floor is whole again.
    floor: Mutex<Option<Instant>>,
}

impl Budget {
    /// Counts one more second attempt, if the share of `live` requests has room for it.
    fn take_share(&self, share: f64, live: usize) -> bool {
        let most = most(share, live);
        let fits = |second: usize| (second < most).then_some(second + 1);
        self.second.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Takes one from the floor. It fills at its rate, and holds what comes in one period.
    fn take_floor(&self, retry: &Retry, now: Instant) -> bool {
        // Rounded down, so that a whole period holds them all.
        let each = retry.floor.per / u32::try_from(retry.floor.count).unwrap_or(u32::MAX);
        let mut whole = self.floor.lock();
        let after = whole.map_or(now, |whole| whole.max(now)) + each;
        let fits = after <= now + retry.floor.per;
        if fits {
            *whole = Some(after);
        }
        fits
    }
}

/// Who waits lives as well: where every slot is taken, most do.
fn live(cluster: &ClusterState) -> usize {
    cluster.live() + cluster.queue.depth()
}

/// Second attempts that the budget of `cluster` was spent on and that are not yet over, and how many may be, beside
/// the floor.
pub(super) fn level(cluster: &ClusterState, retry: &Retry) -> (usize, usize) {
    (cluster.budget.second.load(Ordering::Relaxed), most(retry.budget, live(cluster)))
}

/// One second attempt that the budget allowed, for as long as it lives.
#[derive(Debug)]
pub struct Second(Arc<ClusterState>);

impl Second {
    /// Spends one of the budget of `cluster`, if one is left.
    pub(super) fn spend(cluster: &Arc<ClusterState>, retry: &Retry, now: Instant) -> Option<Self> {
        let budget = &cluster.budget;
        if budget.take_share(retry.budget, live(cluster)) {
            return Some(Self(Arc::clone(cluster)));
        }
        if !budget.take_floor(retry, now) {
            return None;
        }
        budget.second.fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(cluster)))
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        self.0.budget.second.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::units::Rate;

    fn retry(budget: f64, count: u64) -> Retry {
        Retry { attempts: 2, budget, floor: Rate { count, per: Duration::from_secs(1) } }
    }

    fn cluster(live: usize) -> Arc<ClusterState> {
        let state = ClusterState::default();
        state.live.store(live, Ordering::Relaxed);
        Arc::new(state)
    }

    fn spend_all(cluster: &Arc<ClusterState>, retry: &Retry, now: Instant) -> Vec<Second> {
        std::iter::from_fn(|| Second::spend(cluster, retry, now)).collect()
    }

    #[test]
    fn the_share_is_of_live_requests_and_the_floor_comes_on_top() {
        let (cluster, retry, now) = (cluster(30), retry(0.2, 4), Instant::now());
        let spent = spend_all(&cluster, &retry, now);
        assert_eq!(spent.len(), 6 + 4);
        assert_eq!(level(&cluster, &retry), (10, 6));
        drop(spent);
        assert_eq!(
            spend_all(&cluster, &retry, now).len(),
            6,
            "the share comes back, the floor takes its time"
        );
    }

    #[test]
    fn the_floor_fills_at_its_rate_and_no_higher() {
        let (cluster, retry, now) = (cluster(1), retry(0.0, 4), Instant::now());
        assert_eq!(spend_all(&cluster, &retry, now).len(), 4);
        assert_eq!(spend_all(&cluster, &retry, now + Duration::from_millis(501)).len(), 2);
        assert_eq!(spend_all(&cluster, &retry, now + Duration::from_secs(60)).len(), 4);
        let odd = Retry { floor: Rate { count: 7, ..retry.floor }, ..retry };
        assert_eq!(
            spend_all(&cluster, &odd, now + Duration::from_secs(99)).len(),
            7,
            "7/s is no round time each"
        );
    }

    #[test]
    fn a_cluster_is_sound_while_half_of_its_backends_are() {
        assert!(is_sound((2, 3)) && is_sound((1, 2)) && is_sound((1, 1)));
        assert!(!is_sound((1, 3)) && !is_sound((0, 1)) && !is_sound((0, 0)));
    }

    #[test]
    fn what_is_over_counts_no_more() {
        let (cluster, retry, now) = (cluster(10), retry(1.0, 1), Instant::now());
        let spent = spend_all(&cluster, &retry, now);
        assert_eq!((spent.len(), cluster.budget.second.load(Ordering::Relaxed)), (11, 11));
        drop(spent);
        assert_eq!(cluster.budget.second.load(Ordering::Relaxed), 0);
    }
}
