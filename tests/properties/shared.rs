//! Answers of a shared bucket, taken up in any order: what a gateway believes is always what the newest of them said.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use streamgate::admission::{Account, Metered, Permit, Shared, Wanted};
use streamgate::config::KeyLimits;
use streamgate::config::units::Rate;

const TOKENS: Rate = Rate { count: 10_000, per: Duration::from_secs(3600) };

#[derive(Debug, Clone)]
enum Step {
    /// The gateway asks for so much; the bucket decides at once.
    Ask(u64),
    /// One of the answers that are under way is taken up.
    Hear(Index),
    /// Another gateway charges so much.
    Other(i64),
    /// The bucket is forgotten, as one that is full again or a store that was restarted, when nothing is under way.
    Forget,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..2_000_u64).prop_map(Step::Ask),
        3 => any::<Index>().prop_map(Step::Hear),
        1 => (-500..2_000_i64).prop_map(Step::Other),
        1 => Just(Step::Forget),
    ];
    prop::collection::vec(step, 1..80)
}

/// The bucket as the script has it, in a moment that does not pass.
#[derive(Default)]
struct Bucket {
    left: Option<i64>,
    sequence: u64,
}

impl Bucket {
    fn take(&mut self, wanted: Wanted) -> Shared {
        let left = self.left.get_or_insert(wanted.left);
        let amount = 1_000 * i64::try_from(wanted.amount).expect("a small amount");
        let is_granted = *left >= amount;
        if is_granted {
            *left -= amount;
        }
        self.sequence += 1;
        Shared { is_granted, left: *left, wait: Duration::ZERO, sequence: self.sequence }
    }

    fn charge(&mut self, tokens: i64) {
        if let Some(left) = &mut self.left {
            *left = (*left - 1_000 * tokens).min(10_000_000);
            self.sequence += 1;
        }
    }
}

/// A gateway with answers under way.
struct Gateway {
    account: Arc<Account>,
    now: Instant,
    under_way: Vec<(usize, Permit, Wanted, Shared)>,
    /// Which of all answers is the newest that was heard, and what it said to be left.
    newest: Option<(usize, i64)>,
}

impl Gateway {
    fn new() -> Self {
        let account = Account::new("key".into());
        let now = Instant::now();
        account.limit_to(KeyLimits { tokens: Some(TOKENS), ..KeyLimits::default() }, now);
        Self { account, now, under_way: Vec::new(), newest: None }
    }

    fn ask(&mut self, nth: usize, amount: u64, bucket: &mut Bucket) {
        let permit = self.account.enter(self.now).expect("no limit on that");
        let wanted = permit.wanted(Metered::Tokens, amount, self.now).expect("there is a limit");
        self.under_way.push((nth, permit, wanted, bucket.take(wanted)));
    }

    fn hear(&mut self, which: Index) -> Result<(), TestCaseError> {
        let at = which.index(self.under_way.len());
        let (nth, mut permit, wanted, shared) = self.under_way.swap_remove(at);
        let passed = permit.follow(Metered::Tokens, wanted, shared, self.now);
        prop_assert_eq!(passed.is_ok(), shared.is_granted, "what was decided holds, however late");
        if self.newest.is_none_or(|(before, _)| nth > before) {
            self.newest = Some((nth, shared.left));
        }
        let remaining = self.account.standing(self.now).tokens.expect("a limit").remaining;
        let newest = self.newest.map_or(0, |(_, left)| left);
        prop_assert_eq!(remaining, u64::try_from(newest / 1_000).unwrap_or(0));
        Ok(())
    }
}

proptest! {
    #[test]
    fn what_is_left_is_what_the_newest_answer_said(
        steps in steps(),
        rest in prop::collection::vec(any::<Index>(), 80),
    ) {
        let (mut gateway, mut bucket) = (Gateway::new(), Bucket::default());
        for (nth, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask(amount) => gateway.ask(nth, amount, &mut bucket),
                Step::Hear(which) if !gateway.under_way.is_empty() => gateway.hear(which)?,
                Step::Other(tokens) => bucket.charge(tokens),
                Step::Forget if gateway.under_way.is_empty() => bucket = Bucket::default(),
                Step::Hear(_) | Step::Forget => {}
            }
        }
        for which in rest {
            if !gateway.under_way.is_empty() {
                gateway.hear(which)?;
            }
        }
    }
}
