//! The accounts of all keys of a snapshot.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::account::Account;
use crate::config::{Key, KeyLimits};

/// The accounts of those keys of a snapshot that have limits, by the keys' names.
#[derive(Debug, Default)]
pub struct Accounts(HashMap<Arc<str>, (Arc<Account>, KeyLimits)>);

impl Accounts {
    /// An account for each key that has limits: the one that is known from `before`, so that a reload gives no
    /// key anything back.
    pub fn next(keys: &[Arc<Key>], before: Option<&Self>) -> Self {
        let known = |name: &Arc<str>| before.and_then(|before| before.of(name)).cloned();
        let limited = keys.iter().filter(|key| key.limits != KeyLimits::default());
        let entry = |key: &Arc<Key>| {
            let account = known(&key.name).unwrap_or_else(|| Account::new(Arc::clone(&key.name)));
            (Arc::clone(&key.name), (account, key.limits.clone()))
        };
        Self(limited.map(entry).collect())
    }

    /// Its limits hold from now on, also for exchanges that live by an older snapshot.
    pub fn come_into_force(&self, now: Instant) {
        self.0.values().for_each(|(account, limits)| account.limit_to(limits.clone(), now));
    }

    /// The account of a key, if it has limits.
    pub fn of(&self, name: &str) -> Option<&Arc<Account>> {
        self.0.get(name).map(|(account, _)| account)
    }

    /// Keys that have used more tokens than their limits had left, and how many more, together.
    pub fn debts(&self, now: Instant) -> (usize, u64) {
        let debts = self.0.values().map(|(account, _)| account.debt(now)).filter(|debt| *debt > 0);
        debts.fold((0, 0), |(keys, tokens), debt| (keys + 1, debt.saturating_add(tokens)))
    }
}
