//! Counters of what engines generate: tokens, how fast they come, and what nobody had to generate.

use std::sync::Arc;

use prometheus::{CounterVec, HistogramVec, IntCounterVec};

use super::Metrics;
use super::adder::Adder;
use crate::live::{Pace, Saved};
use crate::usage::{Source, Usage};

/// Tokens a second for one reader: below 10 one waits for each word, above 100 nobody reads as fast.
const PER_SECOND: [f64; 14] =
    [1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 75.0, 100.0, 150.0, 200.0, 400.0];

/// Counters of what engines generate.
#[derive(Debug)]
pub(super) struct OutputCounts {
    tokens: IntCounterVec,
    /// By backend; read from the backends when Prometheus asks.
    pub(super) of_backends: IntCounterVec,
    per_second: HistogramVec,
    /// Tokens that nobody had to generate, by route.
    pub(super) tokens_saved: IntCounterVec,
    seconds_saved: CounterVec,
    /// How long answers are, to estimate what is saved by leaving.
    saved: Saved,
}

impl OutputCounts {
    pub(super) fn new(add: &Adder<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            tokens: add.counters(
                "tokens_total",
                "Tokens, and how they are known.",
                &["cluster", "kind", "source"],
            )?,
            of_backends: add.counters(
                "backend_tokens_total",
                "Tokens that a backend generated, as they pass.",
                &["cluster", "backend"],
            )?,
            per_second: add.histograms(
                "stream_tokens_per_second",
                "Tokens a second of one stream, from its first token to its last.",
                &["route"],
                &PER_SECOND,
            )?,
            tokens_saved: add.counters(
                "tokens_saved_total",
                "Tokens not generated for clients that left: an estimate.",
                &["route"],
            )?,
            seconds_saved: add.seconds(
                "engine_seconds_saved_total",
                "Time that engines did not generate for clients that left: an estimate, of one sequence each.",
                &["route"],
            )?,
            saved: Saved::default(),
        })
    }

    /// Counts the tokens of an exchange that has ended.
    pub(super) fn count_tokens(&self, cluster: &str, usage: &Usage, source: Source) {
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
}

impl Metrics {
    /// Counts how fast a stream came.
    pub fn paced(&self, route: &str, pace: Pace) {
        self.output.per_second.with_label_values(&[route]).observe(pace.per_second());
    }

    /// Learns how long a completed answer of the route was, in tokens, and how fast it came.
    pub fn completed(&self, route: &Arc<str>, tokens: u64, pace: Option<Pace>) {
        self.output.saved.learn(route, tokens, pace);
    }

    /// Counts what is not generated for a client that left an answer at so many tokens, of at most `most`.
    pub fn saved(&self, route: &str, at: u64, most: Option<u64>) {
        let saved = self.output.saved.by_leaving(route, at, most);
        self.output.tokens_saved.with_label_values(&[route]).inc_by(saved.tokens);
        self.output.seconds_saved.with_label_values(&[route]).inc_by(saved.seconds);
    }
}
