//! Counters that are made and registered in one step, under our prefix.

use prometheus::core::Collector;
use prometheus::{
    CounterVec, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::spreads::Spreads;

/// Creates and registers, with our prefix.
pub(super) struct Adder<'a>(pub(super) &'a Registry);

impl Adder<'_> {
    fn opts(name: &str, help: &str) -> Opts {
        Opts::new(name, help).namespace("streamgate")
    }

    fn add<C: Collector + Clone + 'static>(&self, collector: C) -> prometheus::Result<C> {
        self.0.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    pub(super) fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        self.add(IntCounterVec::new(Self::opts(name, help), labels)?)
    }

    /// Counters of seconds, which are no whole numbers.
    pub(super) fn seconds(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<CounterVec> {
        self.add(CounterVec::new(Self::opts(name, help), labels)?)
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
        self.add(IntGaugeVec::new(Self::opts(name, help), labels)?)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> prometheus::Result<IntGauge> {
        self.add(IntGauge::with_opts(Self::opts(name, help))?)
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> prometheus::Result<Histogram> {
        let opts = HistogramOpts::from(Self::opts(name, help)).buckets(buckets.to_vec());
        self.add(Histogram::with_opts(opts)?)
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> prometheus::Result<HistogramVec> {
        let opts = HistogramOpts::from(Self::opts(name, help)).buckets(buckets.to_vec());
        self.add(HistogramVec::new(opts, labels)?)
    }

    /// Histograms whose names are not ours, so without our prefix.
    pub(super) fn foreign(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> prometheus::Result<HistogramVec> {
        self.add(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?)
    }

    pub(super) fn spreads(
        &self,
        name: &str,
        help: &str,
        bounds: &'static [f64],
    ) -> prometheus::Result<Spreads> {
        self.add(Spreads::new(&Self::opts(name, help), bounds)?)
    }
}
