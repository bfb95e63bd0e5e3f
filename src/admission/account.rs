//! What one key has used, across reloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::bucket::Bucket;
use super::denial::{Denial, Limit, Standing};
use super::order::Order;
use super::permit::Permit;
use crate::config::KeyLimits;
use crate::config::units::Rate;
use crate::told::Told;

/// When to come back where nobody can say when there will be room: another request must end first.
const SOON: Duration = Duration::from_secs(1);

/// What one key has used. Thin: all is decided in its state.
#[derive(Debug)]
pub struct Account {
    name: Arc<str>,
    state: Mutex<State>,
    running: AtomicUsize,
    connections: AtomicUsize,
    /// For the line of the log that says that the key was limited.
    pub told: Told,
}

/// The limits in force, and a bucket for each that is a rate.
#[derive(Debug, Default)]
pub(super) struct State {
    limits: KeyLimits,
    pub(super) requests: Option<Bucket>,
    pub(super) tokens: Option<Bucket>,
    early_cancels: Option<Bucket>,
    /// What was learnt of the buckets for requests and for tokens that several gateways share.
    pub(super) orders: [Order; 2],
}

impl State {
    /// Makes the buckets what the limits in force say, from now on. What has not been limited before is full.
    fn follow(&mut self, now: Instant) {
        let &KeyLimits { requests, tokens, early_cancels, .. } = &self.limits;
        follow(&mut self.requests, requests, now);
        follow(&mut self.tokens, tokens, now);
        follow(&mut self.early_cancels, early_cancels, now);
    }

    pub(super) fn standing(&mut self, now: Instant) -> Standing {
        let level = |bucket: &mut Option<Bucket>| bucket.as_mut().map(|bucket| bucket.level(now));
        Standing { requests: level(&mut self.requests), tokens: level(&mut self.tokens) }
    }

    pub(super) fn deny(&mut self, limit: Limit, wait: Duration, now: Instant) -> Denial {
        Denial { limit, wait, standing: self.standing(now) }
    }

    /// A key that gave up too many answers early has to wait until it may give up another.
    fn check_early_cancels(&mut self, now: Instant) -> Result<(), Denial> {
        let Some(bucket) = &mut self.early_cancels else { return Ok(()) };
        match bucket.take(1, now) {
            Ok(one) => {
                bucket.give_back(one, now);
                Ok(())
            }
            Err(wait) => Err(self.deny(Limit::EarlyCancels, wait, now)),
        }
    }
}

fn follow(bucket: &mut Option<Bucket>, rate: Option<Rate>, now: Instant) {
    match (&mut *bucket, rate) {
        (Some(bucket), Some(rate)) => bucket.follow(rate, now),
        (None, Some(rate)) => *bucket = Some(Bucket::full(rate, now)),
        (_, None) => *bucket = None,
    }
}

impl Account {
    /// The account of a key that has used nothing.
    pub fn new(name: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            name,
            state: Mutex::default(),
            running: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            told: Told::default(),
        })
    }

    /// The key's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// These limits are in force from now on, for every exchange that asks. Until now the old ones have filled.
    pub fn limit_to(&self, limits: KeyLimits, now: Instant) {
        let mut state = self.state.lock();
        state.limits = limits;
        state.follow(now);
    }

    /// Lets an exchange in by its head, as far as this gateway alone decides: concurrency and early cancels.
    ///
    /// # Errors
    /// One of them is reached.
    pub fn enter(self: &Arc<Self>, now: Instant) -> Result<Permit, Denial> {
        self.with(|state| {
            // The count only grows under the lock.
            let running = self.running.load(Ordering::Relaxed);
            if state.limits.concurrent.is_some_and(|most| running >= most) {
                return Err(state.deny(Limit::Concurrent, SOON, now));
            }
            state.check_early_cancels(now)?;
            Ok(Permit::new(Arc::clone(self)))
        })
    }

    /// Counts a connection that the key is used on.
    ///
    /// # Errors
    /// It is one too many.
    pub fn connect(self: &Arc<Self>, now: Instant) -> Result<Connected, Denial> {
        self.with(|state| {
            let open = self.connections.load(Ordering::Relaxed);
            if state.limits.connections.is_some_and(|most| open >= most) {
                return Err(state.deny(Limit::Connections, SOON, now));
            }
            self.connections.fetch_add(1, Ordering::Relaxed);
            Ok(Connected(Arc::clone(self)))
        })
    }

    /// Exchanges that are in.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Where the key stands.
    pub fn standing(&self, now: Instant) -> Standing {
        self.with(|state| state.standing(now))
    }

    /// Tokens that it has used beyond its limit and not yet earned, in whole ones; 0 for most.
    pub(super) fn debt(&self, now: Instant) -> u64 {
        let left = self.with(|state| state.tokens.as_mut().map_or(0, |bucket| bucket.left(now)));
        left.min(0).unsigned_abs().div_ceil(1000)
    }

    /// An answer was given up before its first token.
    pub(super) fn note_early_cancel(&self, now: Instant) {
        self.with(|state| {
            if let Some(bucket) = &mut state.early_cancels {
                bucket.charge(1, now);
            }
        });
    }

    pub(super) fn with<T>(&self, ask: impl FnOnce(&mut State) -> T) -> T {
        ask(&mut self.state.lock())
    }
}

/// Counts an exchange as long as it lives.
#[derive(Debug)]
pub(super) struct Running(Arc<Account>);

impl Running {
    pub(super) fn on(account: Arc<Account>) -> Self {
        account.running.fetch_add(1, Ordering::Relaxed);
        Self(account)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a connection as long as it lives.
#[derive(Debug)]
pub struct Connected(Arc<Account>);

impl Connected {
    /// Whether it is a connection of this key.
    pub fn is_of(&self, account: &Arc<Account>) -> bool {
        Arc::ptr_eq(&self.0, account)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
