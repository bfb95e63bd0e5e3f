//! The page that Prometheus reads. Gauges that live elsewhere are read when it asks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{Encoder, TextEncoder};

use super::Metrics;
use crate::cluster::{Backend, Leave};
use crate::proxy::Shared;

impl Metrics {
    /// Everything in Prometheus' text form. Gauges that live elsewhere are read now.
    pub fn render(&self, shared: &Shared) -> Vec<u8> {
        let snapshot = shared.snapshot.load();
        let _one_at_a_time = self.rendering.lock();
        for of_what_may_go in
            [&self.in_flight, &self.load, &self.up, &self.queue_depth, &self.budget_used, &self.budget]
        {
            of_what_may_go.reset();
        }
        self.output.of_backends.reset();
        for cluster in &snapshot.clusters {
            let name = [&*cluster.config.name];
            self.queue_depth.with_label_values(&name).set(gauge(cluster.state.queue.depth()));
            let (used, budget) = cluster.retry_budget();
            self.budget_used.with_label_values(&name).set(gauge(used));
            self.budget.with_label_values(&name).set(gauge(budget));
        }
        let is_shown = |backend: &&Arc<Backend>| {
            !backend.state.leaving.is(Leave::Removed) || backend.state.in_flight() > 0
        };
        for backend in snapshot.all_backends().filter(is_shown) {
            let labels = [&*backend.cluster, &*backend.name];
            self.in_flight.with_label_values(&labels).set(gauge(backend.state.in_flight()));
            self.load.with_label_values(&labels).set(gauge(backend.state.load.work()));
            self.output.of_backends.with_label_values(&labels).inc_by(backend.state.output.tokens());
            let works = backend.state.health.is_in() && !backend.state.leaving.takes_nothing();
            self.up.with_label_values(&labels).set(i64::from(works));
        }
        self.held.with_label_values(&["body"]).set(gauge(shared.ledger.used()));
        self.held.with_label_values(&["head"]).set(gauge(shared.memory.heads()));
        let reading = shared.memory.reading();
        self.memory.with_label_values(&["used"]).set(gauge(reading.used));
        self.memory.with_label_values(&["promised"]).set(gauge(reading.promised));
        self.memory.with_label_values(&["limit"]).set(gauge(reading.limit));
        self.memory_level.set(i64::from(shared.memory.level() as u8));
        self.held.with_label_values(&["stream"]).set(gauge(shared.memory.streams().load(Ordering::Relaxed)));
        self.edge.connections.set(gauge(shared.connections.open()));
        let (keys, tokens) = snapshot.accounts.debts(Instant::now());
        self.limits.keys_in_debt.set(gauge(keys));
        self.limits.debt.set(gauge(tokens));
        self.generation.set(gauge(snapshot.generation));
        self.draining.set(i64::from(shared.drain.is_leaving()));
        self.dropped_lines.set(gauge(shared.access.dropped()));
        if let Some(traces) = &shared.traces {
            let counts = traces.counts();
            self.trace_spans.with_label_values(&["sent"]).set(gauge(counts.sent()));
            self.trace_spans.with_label_values(&["lost"]).set(gauge(counts.lost()));
        }
        self.dropped_usage.set(gauge(shared.usage.dropped()));
        self.dropped_log.set(gauge(self.log.count()));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            log::error!("metrics could not be rendered: {error}");
        }
        text
    }
}

/// Resident memory of the process in bytes; `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    let families = ProcessCollector::for_self().collect();
    let resident = families.iter().find(|family| family.name() == "process_resident_memory_bytes")?;
    Some(resident.get_metric().first()?.get_gauge().get_value() as u64)
}

fn gauge(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
