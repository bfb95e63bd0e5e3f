//! What is counted, with the names that dashboards depend on (design: `streamgate_*`).
//!
//! Labels come from the configuration and from closed lists only, so no client can add a series.
//! Nothing is counted per event: an exchange is counted once, when it is settled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

use crate::access_log::Line;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::proxy::Shared;
use crate::usage::{Source, Usage};

/// Label of what no configuration names.
const NONE: &str = "none";

/// Seconds, for waits on an engine.
const WAITS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0];

/// Seconds, for cancelling.
const CANCELS: [f64; 10] = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1.0];

/// All counters of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    streams: IntGaugeVec,
    connections: IntGauge,
    turned_away: IntCounter,
    cancels: IntCounterVec,
    cancel_seconds: Histogram,
    first_event: HistogramVec,
    first_token: HistogramVec,
    tokens: IntCounterVec,
    retries: IntCounterVec,
    resends: IntCounterVec,
    heartbeats: IntCounterVec,
    stall_seconds: Histogram,
    in_flight: IntGaugeVec,
    held: IntGaugeVec,
    generation: IntGauge,
    draining: IntGauge,
    dropped_lines: IntGauge,
}

/// Counts one stream as active for as long as it lives.
#[derive(Debug)]
pub struct ActiveStream(IntGauge);

impl Drop for ActiveStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Everything at zero.
    ///
    /// # Errors
    /// A name is given twice.
    pub fn new() -> prometheus::Result<Arc<Self>> {
        let registry = Registry::new();
        registry.register(Box::new(ProcessCollector::for_self()))?;
        let add = Adder(&registry);
        Ok(Arc::new(Self {
            requests: add.counters(
                "requests_total",
                "Exchanges by how they ended.",
                &["route", "cluster", "outcome"],
            )?,
            streams: add.gauges("streams_active", "Event streams being relayed.", &["route"])?,
            connections: add.gauge("connections_active", "Client connections that are open.")?,
            turned_away: add
                .counter("connections_refused_total", "Client connections beyond the allowed number.")?,
            cancels: add.counters(
                "cancels_total",
                "Clients that left before their answer was over.",
                &["phase"],
            )?,
            cancel_seconds: add.histogram(
                "cancel_seconds",
                "Client seen gone to engine's connection closed.",
                &CANCELS,
            )?,
            first_event: add.histograms(
                "time_to_first_event_seconds",
                "Arrival to first data event.",
                &["route"],
            )?,
            first_token: add.histograms(
                "time_to_first_token_seconds",
                "Arrival to first token.",
                &["route"],
            )?,
            tokens: add.counters(
                "tokens_total",
                "Tokens, and how they are known.",
                &["cluster", "kind", "source"],
            )?,
            retries: add.counters(
                "retries_total",
                "Attempts followed by another.",
                &["cluster", "reason"],
            )?,
            resends: add.counters("resends_total", "Dead pooled connections replaced.", &["cluster"])?,
            heartbeats: add.counters("heartbeats_total", "Heartbeats sent to clients.", &["route"])?,
            stall_seconds: add.histogram(
                "client_stall_seconds",
                "Writes of an exchange blocked on its client.",
                &WAITS,
            )?,
            in_flight: add.gauges("in_flight", "Attempts open on a backend.", &["cluster", "backend"])?,
            held: add.gauges("held_bytes", "Bytes held in the gateway.", &["kind"])?,
            generation: add.gauge("config_generation", "The configuration in force.")?,
            draining: add.gauge("draining", "1 while the gateway is on its way out.")?,
            dropped_lines: add.gauge("access_log_dropped_lines", "Access lines lost to a blocked output.")?,
            registry,
        }))
    }

    /// Counts an exchange that has ended.
    pub fn settle(&self, line: &Line) {
        let route = line.route.as_deref().unwrap_or(NONE);
        let cluster = line.cluster.as_deref().unwrap_or(NONE);
        self.requests.with_label_values(&[route, cluster, line.outcome.as_str()]).inc();
        if line.outcome == Outcome::ClientClosed {
            self.cancels.with_label_values(&[line.phase.as_str()]).inc();
        }
        if let Some(cancel) = line.cancel {
            self.cancel_seconds.observe(cancel.as_secs_f64());
        }
        if let Some(first) = line.first_event {
            self.first_event.with_label_values(&[route]).observe(first.as_secs_f64());
        }
        if let Some(first) = line.first_token {
            self.first_token.with_label_values(&[route]).observe(first.as_secs_f64());
        }
        if line.resent {
            self.resends.with_label_values(&[cluster]).inc();
        }
        if line.heartbeats > 0 {
            self.heartbeats.with_label_values(&[route]).inc_by(line.heartbeats);
        }
        if !line.stalled.is_zero() {
            self.stall_seconds.observe(line.stalled.as_secs_f64());
        }
        if let Some((usage, source)) = line.usage {
            self.count_tokens(cluster, &usage, source);
        }
    }

    fn count_tokens(&self, cluster: &str, usage: &Usage, source: Source) {
        let kinds = [
            ("prompt", usage.prompt),
            ("completion", usage.completion),
            ("cached", usage.cached),
            ("reasoning", usage.reasoning),
        ];
        for (kind, count) in kinds {
            if let Some(count) = count {
                self.tokens.with_label_values(&[cluster, kind, source.label()]).inc_by(count);
            }
        }
    }

    /// Counts a stream that begins.
    pub fn stream(&self, route: &str) -> ActiveStream {
        let gauge = self.streams.with_label_values(&[route]);
        gauge.inc();
        ActiveStream(gauge)
    }

    /// Counts a client connection that was one too many.
    pub fn turned_away(&self) {
        self.turned_away.inc();
    }

    /// Counts an attempt that is followed by another.
    pub fn retried(&self, cluster: &str, failure: Failure) {
        self.retries.with_label_values(&[cluster, failure.reason()]).inc();
    }

    /// Everything in Prometheus' text form. Gauges that live elsewhere are read now.
    pub fn render(&self, shared: &Shared) -> Vec<u8> {
        let snapshot = shared.snapshot.load();
        for backend in snapshot.clusters.iter().flat_map(|cluster| &cluster.backends) {
            self.in_flight
                .with_label_values(&[&*backend.cluster, &*backend.name])
                .set(gauge(backend.in_flight()));
        }
        self.held.with_label_values(&["body"]).set(gauge(shared.ledger.used()));
        self.held.with_label_values(&["stream"]).set(gauge(shared.stream_bytes.load(Ordering::Relaxed)));
        self.connections.set(gauge(shared.connections.open()));
        self.generation.set(gauge(snapshot.generation));
        self.draining.set(i64::from(shared.drain.is_leaving()));
        self.dropped_lines.set(gauge(shared.access.dropped()));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            log::error!("metrics could not be rendered: {error}");
        }
        text
    }
}

fn gauge(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

/// Creates and registers, with our prefix.
struct Adder<'a>(&'a Registry);

impl Adder<'_> {
    fn opts(name: &str, help: &str) -> Opts {
        Opts::new(name, help).namespace("streamgate")
    }

    fn add<C: Collector + Clone + 'static>(&self, collector: C) -> prometheus::Result<C> {
        self.0.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
        self.add(IntCounterVec::new(Self::opts(name, help), labels)?)
    }

    fn counter(&self, name: &str, help: &str) -> prometheus::Result<IntCounter> {
        self.add(IntCounter::with_opts(Self::opts(name, help))?)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
        self.add(IntGaugeVec::new(Self::opts(name, help), labels)?)
    }

    fn gauge(&self, name: &str, help: &str) -> prometheus::Result<IntGauge> {
        self.add(IntGauge::with_opts(Self::opts(name, help))?)
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> prometheus::Result<Histogram> {
        let opts = HistogramOpts::from(Self::opts(name, help)).buckets(buckets.to_vec());
        self.add(Histogram::with_opts(opts)?)
    }

    fn histograms(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<HistogramVec> {
        let opts = HistogramOpts::from(Self::opts(name, help)).buckets(WAITS.to_vec());
        self.add(HistogramVec::new(opts, labels)?)
    }
}
