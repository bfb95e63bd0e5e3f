//! Counters of limits: who passed, who did not, who is in debt, and the store that gateways share.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec};

use super::Metrics;
use super::adder::Adder;
use crate::admission::Limit;

/// Counters of limits.
#[derive(Debug)]
pub(super) struct LimitCounts {
    passed: IntCounterVec,
    denials: IntCounterVec,
    /// Keys that have used more tokens than they had.
    pub(super) keys_in_debt: IntGauge,
    /// How many more, all keys together.
    pub(super) debt: IntGauge,
    store_up: IntGaugeVec,
    store: IntCounterVec,
}

impl LimitCounts {
    pub(super) fn new(add: &Adder<'_>) -> prometheus::Result<Self> {
        let counts = Self {
            passed: add.counters(
                "limit_passed_total",
                "Requests that a limit of their key or address let in.",
                &["limit"],
            )?,
            denials: add.counters(
                "limit_denials_total",
                "Requests refused because a limit was reached, by the limit.",
                &["limit"],
            )?,
            keys_in_debt: add
                .gauge("limit_keys_in_debt", "Keys that have used more tokens than their limit had left.")?,
            debt: add.gauge(
                "limit_debt_tokens",
                "Tokens that keys have used beyond their limits and not yet earned, all keys together.",
            )?,
            store_up: add.gauges(
                "limit_store_up",
                "1 while the store that limits are shared by answers; not there without one.",
                &["store"],
            )?,
            store: add.counters(
                "limit_store_total",
                "Decisions by the shared store, those made here in its stead, and charges it was not told.",
                &["result"],
            )?,
        };
        for limit in Limit::ALL {
            counts.denials.with_label_values(&[limit.as_str()]).inc_by(0);
            counts.passed.with_label_values(&[limit.as_str()]).inc_by(0);
        }
        Ok(counts)
    }
}

impl Metrics {
    /// Counts a request that these limits, which it has, let in.
    pub fn passed(&self, limits: impl IntoIterator<Item = Limit>) {
        for limit in limits {
            self.limits.passed.with_label_values(&[limit.as_str()]).inc();
        }
    }

    /// Counts a request that is refused because a limit is reached.
    pub fn limited(&self, limit: Limit) {
        self.limits.denials.with_label_values(&[limit.as_str()]).inc();
    }

    /// There is a store of limits, which has not answered yet.
    pub fn store_begins(&self) {
        self.store_is_up(false);
        for result in ["shared", "local", "untold"] {
            self.limits.store.with_label_values(&[result]).inc_by(0);
        }
    }

    /// Whether the store of limits answers.
    pub fn store_is_up(&self, is_up: bool) {
        self.limits.store_up.with_label_values(&["redis"]).set(i64::from(is_up));
    }

    /// Whether the store of limits answered when it was last asked. There is one.
    pub fn store_answers(&self) -> bool {
        self.limits.store_up.with_label_values(&["redis"]).get() == 1
    }

    /// Counts a decision that the store of limits was asked for: it made it, or was away.
    pub fn store_decided(&self, is_shared: bool) {
        self.limits.store.with_label_values(&[if is_shared { "shared" } else { "local" }]).inc();
    }

    /// Counts charges that the store of limits was not told.
    pub fn store_untold(&self, charges: usize) {
        self.limits.store.with_label_values(&["untold"]).inc_by(charges as u64);
    }
}
