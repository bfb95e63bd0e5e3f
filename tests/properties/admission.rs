//! Limits against naive twins: a bucket is GCRA, no window gets more than its share, and a wait is exact.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use streamgate::admission::{Account, Bucket, Limit, Metered, Permit};
use streamgate::config::KeyLimits;
use streamgate::config::units::Rate;

/// One thing that happens to a bucket, so many nanoseconds after the last.
#[derive(Debug, Clone, Copy)]
enum Step {
    Take(u64),
    Charge(u64),
    GiveBack(u64),
}

/// The generic cell rate algorithm as ITU-T I.371 has it: the time at which all that was taken will have been
/// earned. Scaled by the count, so that it is exact.
struct Gcra {
    rate: Rate,
    earned_at: i128,
}

impl Gcra {
    fn cost(&self, amount: u64) -> i128 {
        i128::from(amount) * self.rate.per.as_nanos() as i128
    }

    fn step(&mut self, step: Step, nanos: u64) -> Option<bool> {
        let now = i128::from(nanos) * i128::from(self.rate.count);
        self.earned_at = self.earned_at.max(now);
        match step {
            Step::Take(amount) => {
                let after = self.earned_at + self.cost(amount.min(self.rate.count));
                let fits = after - now <= self.cost(self.rate.count);
                if fits {
                    self.earned_at = after;
                }
                Some(fits)
            }
            Step::Charge(amount) => {
                self.earned_at += self.cost(amount);
                None
            }
            Step::GiveBack(amount) => {
                self.earned_at -= self.cost(amount);
                None
            }
        }
    }
}

fn rates() -> impl Strategy<Value = Rate> {
    let per = prop_oneof![Just(1_u64), Just(60), Just(3600)];
    (1..2_000_000_u64, per).prop_map(|(count, per)| Rate { count, per: Duration::from_secs(per) })
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let amount = || prop_oneof![0..20_u64, 0..3_000_000_u64];
    let step = prop_oneof![
        6 => amount().prop_map(Step::Take),
        1 => amount().prop_map(Step::Charge),
        1 => amount().prop_map(Step::GiveBack),
    ];
    let gap = prop_oneof![0..1_000_u64, 0..10_000_000_000_u64];
    prop::collection::vec((gap, step), 1..60)
}

proptest! {
    #[test]
    fn a_bucket_is_gcra(rate in rates(), steps in steps()) {
        let start = Instant::now();
        let (mut bucket, mut naive) = (Bucket::full(rate, start), Gcra { rate, earned_at: 0 });
        let mut nanos = 0;
        for (gap, step) in steps {
            nanos += gap;
            let now = start + Duration::from_nanos(nanos);
            let taken = match step {
                Step::Take(amount) => Some(bucket.take(amount, now).is_ok()),
                Step::Charge(amount) => { bucket.charge(amount, now); None }
                Step::GiveBack(amount) => { bucket.give_back(amount, now); None }
            };
            prop_assert_eq!(taken, naive.step(step, nanos), "{:?} after {} ns", step, nanos);
        }
    }

    /// G10: only the steady clock is asked, and whatever a window of time, what passes in it is bounded.
    #[test]
    fn no_window_gets_more_than_a_burst_and_what_it_earns(rate in rates(), steps in steps()) {
        let start = Instant::now();
        let mut bucket = Bucket::full(rate, start);
        let mut granted: Vec<(u64, u64)> = Vec::new();
        let mut nanos = 0;
        for (gap, step) in steps {
            nanos += gap;
            let Step::Take(amount) = step else { continue };
            if let Ok(amount) = bucket.take(amount, start + Duration::from_nanos(nanos)) {
                granted.push((nanos, amount));
            }
        }
        for first in 0..granted.len() {
            let mut sum = 0;
            for &(at, amount) in &granted[first..] {
                sum += u128::from(amount);
                let window = u128::from(at - granted[first].0);
                let (count, per) = (u128::from(rate.count), rate.per.as_nanos());
                prop_assert!(sum * per <= count * per + window * count, "{} in {} ns", sum, window);
            }
        }
    }

    #[test]
    fn a_wait_is_exact(rate in rates(), debt in 0..5_000_000_u64, amount in 1..3_000_000_u64) {
        let start = Instant::now();
        let mut bucket = Bucket::full(rate, start);
        bucket.charge(debt, start);
        if let Err(wait) = bucket.clone().take(amount, start) {
            let just_before = start + wait - Duration::from_nanos(1);
            prop_assert!(bucket.clone().take(amount, just_before).is_err());
            prop_assert!(bucket.take(amount, start + wait).is_ok());
        }
    }

    /// Requests come, leave at any time, and are charged: at once there are never more than may be, tokens are
    /// let in only from a bucket that holds them, and in the end nothing is held.
    #[test]
    fn a_key_never_has_more_than_its_limits(
        concurrent in 1..6_usize,
        tokens in 50..500_u64,
        acts in prop::collection::vec((0..3_000_u64, any::<bool>(), 0..200_u64, 0..300_u64), 1..80),
    ) {
        let start = Instant::now();
        let rate = Rate { count: tokens, per: Duration::from_secs(1) };
        let account = Account::new("key".into());
        account.limit_to(KeyLimits { concurrent: Some(concurrent), tokens: Some(rate), ..KeyLimits::default() }, start);
        let mut open: VecDeque<Permit> = VecDeque::new();
        let (mut naive, mut millis) = (Gcra { rate, earned_at: 0 }, 0);
        for (gap, comes, estimate, used) in acts {
            millis += gap / 10;
            let (now, nanos) = (start + Duration::from_millis(millis), millis * 1_000_000);
            if comes {
                let entered = account.enter(now);
                prop_assert_eq!(entered.is_ok(), open.len() < concurrent);
                let Ok(mut permit) = entered else { continue };
                let taken = permit.take(Metered::Tokens, estimate, now);
                prop_assert_eq!(Some(taken.is_ok()), naive.step(Step::Take(estimate), nanos));
                match taken {
                    Ok(()) => open.push_back(permit),
                    Err(denial) => prop_assert_eq!(denial.limit, Limit::Tokens),
                }
            } else if let Some(mut permit) = open.pop_front() {
                let reserved = permit.reserved();
                permit.settle(used, now);
                let step = match used.checked_sub(reserved) {
                    Some(more) => Step::Charge(more),
                    None => Step::GiveBack(reserved - used),
                };
                naive.step(step, nanos);
            }
            prop_assert_eq!(account.running(), open.len());
        }
        drop(open);
        prop_assert_eq!(account.running(), 0);
    }
}
