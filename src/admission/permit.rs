//! The right of an exchange to be in the gateway, and what it has taken for that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::account::{Account, Running, State};
use super::bucket::Bucket;
use super::denial::{Denial, Limit, Standing};
use super::order::{Moment, Order};
use crate::config::units::Rate;

/// What is counted in amounts, and may be shared by several gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metered {
    /// One for each request.
    Requests,
    /// An estimate at first, then what was used.
    Tokens,
}

impl Metered {
    /// The limit that it belongs to.
    pub fn limit(self) -> Limit {
        match self {
            Self::Requests => Limit::Requests,
            Self::Tokens => Limit::Tokens,
        }
    }

    fn bucket(self, state: &mut State) -> Option<&mut Bucket> {
        match self {
            Self::Requests => state.requests.as_mut(),
            Self::Tokens => state.tokens.as_mut(),
        }
    }

    fn order(self, state: &mut State) -> &mut Order {
        let [requests, tokens] = &mut state.orders;
        match self {
            Self::Requests => requests,
            Self::Tokens => tokens,
        }
    }
}

/// What is asked of a bucket that several gateways share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The rate in force.
    pub rate: Rate,
    /// How much; at most a whole period's amount.
    pub amount: u64,
    /// What this gateway believes to be left, in thousandths: where the shared bucket begins if it is not there.
    pub left: i64,
    /// When it was asked.
    pub asked: Moment,
}

/// What a shared bucket said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// It is there, and was taken.
    pub is_granted: bool,
    /// What is left of it, in thousandths.
    pub left: i64,
    /// When it will be there, otherwise.
    pub wait: Duration,
    /// What happened to the bucket so far, this included.
    pub sequence: u64,
}

/// The right to be in the gateway. While it lives, and has not left, its exchange counts as one of those that are in at once;
/// what it has reserved stays taken unless it is settled.
#[derive(Debug)]
pub struct Permit {
    account: Arc<Account>,
    running: Option<Running>,
    /// Tokens taken here.
    reserved: u64,
    /// Those of them that a shared bucket knows of.
    shared: u64,
}

impl Permit {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self { running: Some(Running::on(Arc::clone(&account))), account, reserved: 0, shared: 0 }
    }

    /// The key's account.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The engine's answer is whole: the exchange no longer counts as one of those that are in at once, so that a
    /// client that has read its end may come again.
    pub fn leave(&mut self) {
        self.running = None;
    }

    /// Takes so much of what this gateway knows of.
    ///
    /// # Errors
    /// It is not there.
    pub fn take(&mut self, metered: Metered, amount: u64, now: Instant) -> Result<(), Denial> {
        let taken = self.account().with(|state| {
            let Some(bucket) = metered.bucket(state) else { return Ok(0) };
            bucket.take(amount, now).map_err(|wait| state.deny(metered.limit(), wait, now))
        })?;
        if metered == Metered::Tokens {
            self.reserved = taken;
        }
        Ok(())
    }

    /// What to ask of a shared bucket; `None` where there is no such limit.
    pub fn wanted(&self, metered: Metered, amount: u64, now: Instant) -> Option<Wanted> {
        self.account().with(|state| {
            let asked = metered.order(state).now();
            let bucket = metered.bucket(state)?;
            let rate = bucket.rate();
            Some(Wanted { rate, amount: amount.min(rate.count), left: bucket.left(now), asked })
        })
    }

    /// Takes over what a shared bucket said, also for the time when it cannot be asked. What is left is taken over
    /// only from the newest answer; whether it was granted holds in any case.
    ///
    /// # Errors
    /// It said no.
    pub fn follow(
        &mut self,
        metered: Metered,
        wanted: Wanted,
        shared: Shared,
        now: Instant,
    ) -> Result<(), Denial> {
        self.account().with(|state| {
            if metered.order(state).is_news(shared.sequence, wanted.asked)
                && let Some(bucket) = metered.bucket(state)
            {
                bucket.set_left(shared.left, now);
            }
            if shared.is_granted { Ok(()) } else { Err(state.deny(metered.limit(), shared.wait, now)) }
        })?;
        if metered == Metered::Tokens {
            (self.reserved, self.shared) = (wanted.amount, wanted.amount);
        }
        Ok(())
    }

    /// Settles what was reserved against what was used. Gives the rate of the bucket, and what a shared one is to
    /// be charged beyond what was taken of it; less than 0 is given back.
    pub fn settle(&mut self, used: u64, now: Instant) -> Option<(Rate, i64)> {
        let reserved = std::mem::replace(&mut self.reserved, used);
        let shared = std::mem::replace(&mut self.shared, used);
        let rate = self.account().with(|state| {
            let bucket = state.tokens.as_mut()?;
            if used >= reserved {
                bucket.charge(used - reserved, now);
            } else {
                bucket.give_back(reserved - used, now);
            }
            Some(bucket.rate())
        })?;
        let beyond = i128::from(used) - i128::from(shared);
        Some((rate, i64::try_from(beyond).unwrap_or(i64::MAX))).filter(|_| beyond != 0)
    }

    /// Tokens that are reserved.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The client left before its first token: the prefill was for nothing.
    pub fn note_early_cancel(&self, now: Instant) {
        self.account().note_early_cancel(now);
    }

    /// Where the key stands.
    pub fn standing(&self, now: Instant) -> Standing {
        self.account().standing(now)
    }
}
