//! What is counted, with the names that dashboards depend on (design: `streamgate_*`).
//!
//! Labels come from the configuration and from closed lists only, so no client can add a series.
//! Nothing shared is written per event: an exchange is counted when it is settled, and what its stream counts meanwhile
//! is added up some times a second (`stream`).

mod adder;
mod count;
mod edge;
mod gen_ai;
mod limits;
mod output;
mod read;
mod render;
mod spreads;
mod stream;

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::process_collector::ProcessCollector;
use prometheus::{Histogram, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use adder::Adder;
use edge::EdgeCounts;
use gen_ai::GenAi;
pub use gen_ai::Operation;
use limits::LimitCounts;
use output::OutputCounts;
pub use read::BACKENDS_MAX;
pub use render::resident_bytes;
use spreads::Spreads;
pub use stream::{ActiveStream, Streaming};

use crate::live::Failures;
use crate::outlet::Losses;
use crate::spread::{GAPS, WAITS};

/// Label of what no configuration names.
const NONE: &str = "none";

/// Seconds, for cancelling.
const CANCELS: [f64; 10] = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1.0];

/// All counters of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    edge: EdgeCounts,
    limits: LimitCounts,
    output: OutputCounts,
    gen_ai: GenAi,
    requests: IntCounterVec,
    streams: IntGaugeVec,
    cancels: IntCounterVec,
    cancel_seconds: Histogram,
    first_event: HistogramVec,
    first_token: Spreads,
    gaps: Spreads,
    /// Exchanges that failed of late, and why.
    pub failures: Failures,
    retries: IntCounterVec,
    exhausted: IntCounterVec,
    budget_used: IntGaugeVec,
    budget: IntGaugeVec,
    queue_depth: IntGaugeVec,
    queue_seconds: HistogramVec,
    resends: IntCounterVec,
    heartbeats: IntCounterVec,
    stall_seconds: Histogram,
    stalls_cut: IntCounterVec,
    in_flight: IntGaugeVec,
    load: IntGaugeVec,
    affinity: IntCounterVec,
    up: IntGaugeVec,
    ejections: IntCounterVec,
    checks: IntCounterVec,
    held: IntGaugeVec,
    memory: IntGaugeVec,
    memory_level: IntGauge,
    memory_cuts: IntCounterVec,
    generation: IntGauge,
    reload_ok: IntGauge,
    reloads: IntCounterVec,
    upgrades: IntCounterVec,
    /// One scrape at a time: series of backends that are gone are taken out and the others set again.
    rendering: Mutex<()>,
    draining: IntGauge,
    dropped_lines: IntGauge,
    dropped_usage: IntGauge,
    trace_spans: IntGaugeVec,
    dropped_log: IntGauge,
    log: Losses,
}

impl Metrics {
    /// Everything at zero; `log` is what the gateway's own log has lost.
    ///
    /// # Errors
    /// A name is given twice.
    pub fn new(log: Losses) -> prometheus::Result<Arc<Self>> {
        let registry = Registry::new();
        registry.register(Box::new(ProcessCollector::for_self()))?;
        let add = Adder(&registry);
        let metrics = Arc::new(Self {
            edge: EdgeCounts::new(&add)?,
            limits: LimitCounts::new(&add)?,
            output: OutputCounts::new(&add)?,
            gen_ai: GenAi::new(&add)?,
            requests: add.counters(
                "requests_total",
                "Exchanges by how they ended.",
                &["route", "cluster", "outcome"],
            )?,
            streams: add.gauges("streams_active", "Event streams being relayed.", &["route"])?,
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
                &WAITS,
            )?,
            first_token: add.spreads("time_to_first_token_seconds", "Arrival to first token.", &WAITS)?,
            gaps: add.spreads(
                "inter_token_seconds",
                "Between the arrivals of tokens in a stream; those that arrive together are one arrival.",
                &GAPS,
            )?,
            failures: Failures::default(),
            retries: add.counters(
                "retries_total",
                "Attempts followed by another.",
                &["cluster", "reason"],
            )?,
            exhausted: add.counters(
                "retry_budget_exhausted_total",
                "Failed attempts not followed by another for want of budget.",
                &["cluster"],
            )?,
            budget_used: add.gauges(
                "retry_budget_used",
                "Second attempts at work that the retry budget was spent on.",
                &["cluster"],
            )?,
            budget: add.gauges(
                "retry_budget",
                "Second attempts that may be at work at present: the budget's share of the live requests.",
                &["cluster"],
            )?,
            queue_depth: add.gauges("queue_depth", "Exchanges that wait for a free slot.", &["cluster"])?,
            queue_seconds: add.histograms(
                "queue_seconds",
                "Time that exchanges waited for a free slot, however that ended.",
                &["cluster"],
                &WAITS,
            )?,
            resends: add.counters("resends_total", "Dead pooled connections replaced.", &["cluster"])?,
            heartbeats: add.counters("heartbeats_total", "Heartbeats sent to clients.", &["route"])?,
            stall_seconds: add.histogram(
                "client_stall_seconds",
                "Writes of an exchange blocked on its client.",
                &WAITS,
            )?,
            stalls_cut: add.counters(
                "client_stalls_cut_total",
                "Exchanges ended because their client took nothing, by what they ran into.",
                &["reason"],
            )?,
            in_flight: add.gauges("in_flight", "Attempts open on a backend.", &["cluster", "backend"])?,
            load: add.gauges(
                "load",
                "Work open on a backend, in tokens to generate.",
                &["cluster", "backend"],
            )?,
            affinity: add.counters(
                "affinity_total",
                "Attempts that stick by something, by what came of it.",
                &["cluster", "result"],
            )?,
            up: add.gauges(
                "backend_up",
                "1 while a backend gets its share of the work.",
                &["cluster", "backend"],
            )?,
            ejections: add.counters(
                "ejections_total",
                "Times a backend was taken out of the rotation.",
                &["cluster", "backend", "reason"],
            )?,
            checks: add.counters(
                "health_checks_total",
                "What a backend was asked beside its work (check, scrape, probe), and whether it answered well.",
                &["cluster", "backend", "kind", "result"],
            )?,
            memory: add.gauges(
                "memory_bytes",
                "Memory in use (used), what those who have just begun will take (promised), and what there is (limit).",
                &["kind"],
            )?,
            memory_level: add.gauge(
                "memory_level",
                "0 calm, 1 short timeouts, 2 new requests refused, 3 the largest are cut.",
            )?,
            memory_cuts: add.counters(
                "memory_cuts_total",
                "Uploads and stalled streams cut because memory ran out.",
                &["kind"],
            )?,
            held: add.gauges("held_bytes", "Bytes held in the gateway.", &["kind"])?,
            generation: add.gauge("config_generation", "The configuration in force.")?,
            reload_ok: add
                .gauge("config_last_reload_successful", "1 unless the last file that was read is refused.")?,
            reloads: add.counters("config_reloads_total", "Times the file was read again.", &["result"])?,
            upgrades: add.counters("upgrades_total", "Successors by what became of them.", &["result"])?,
            rendering: Mutex::default(),
            draining: add.gauge("draining", "1 while the gateway is on its way out.")?,
            dropped_lines: add.gauge("access_log_dropped_lines", "Access lines lost to a blocked output.")?,
            dropped_usage: add.gauge("usage_log_dropped_lines", "Usage lines that could not be written.")?,
            trace_spans: add.gauges(
                "trace_spans",
                "Spans of traces by what became of them.",
                &["result"],
            )?,
            dropped_log: add.gauge("log_dropped_lines", "Lines of the log lost to a blocked output.")?,
            log,
            registry,
        });
        metrics.begin();
        Ok(metrics)
    }
}
