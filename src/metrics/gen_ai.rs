//! The names of OpenTelemetry's conventions for GenAI servers, beside ours, so that dashboards made for them work.
//!
//! Names, units and bucket bounds are those of the conventions (`gen_ai.server.*`, status *Development*), written as
//! Prometheus writes them. The one hard idea: the convention's model is what the client wrote, and no client may make
//! a series. So a model has its name only where the route names it; all others are [`OTHER`].

use prometheus::HistogramVec;

use super::Metrics;
use super::adder::Adder;
use crate::access_log::Line;
use crate::live::Pace;
use crate::outcome::Outcome;

/// The model that no configuration names.
const OTHER: &str = "other";

const OPERATION: &str = "gen_ai_operation_name";
const PROVIDER: &str = "gen_ai_provider_name";
const MODEL: &str = "gen_ai_request_model";

// The bounds that the conventions ask for, in seconds.
const DURATIONS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST: [f64; 16] =
    [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
const EACH: [f64; 13] = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// The histograms of the conventions.
#[derive(Debug)]
pub(super) struct GenAi {
    duration: HistogramVec,
    first_token: HistogramVec,
    per_token: HistogramVec,
}

/// What was asked, and of whom.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a> {
    /// `gen_ai.operation.name`.
    pub name: &'static str,
    /// `gen_ai.provider.name`.
    pub provider: &'static str,
    /// The client's model, if the route names it.
    pub model: Option<&'a str>,
}

impl GenAi {
    pub(super) fn new(add: &Adder<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            duration: add.foreign(
                "gen_ai_server_request_duration_seconds",
                "Arrival to the end of the answer; error_type is empty where it was whole.",
                &[OPERATION, PROVIDER, MODEL, "error_type"],
                &DURATIONS,
            )?,
            first_token: add.foreign(
                "gen_ai_server_time_to_first_token_seconds",
                "Arrival to first token, of streams that became whole.",
                &[OPERATION, PROVIDER, MODEL],
                &FIRST,
            )?,
            per_token: add.foreign(
                "gen_ai_server_time_per_output_token_seconds",
                "Time for each token after the first, of streams that became whole.",
                &[OPERATION, PROVIDER, MODEL],
                &EACH,
            )?,
        })
    }
}

impl Metrics {
    /// Counts an exchange that has ended by the names of the conventions.
    pub fn operated(&self, operation: &Operation<'_>, line: &Line, pace: Option<Pace>) {
        let Operation { name, provider, model } = *operation;
        let labels = [name, provider, model.unwrap_or(OTHER)];
        let error = error_type(line);
        let [name, provider, model] = labels;
        let duration = self.gen_ai.duration.with_label_values(&[name, provider, model, error.unwrap_or("")]);
        duration.observe(line.total.as_secs_f64());
        if error.is_some() {
            return;
        }
        if let Some(first) = line.first_token {
            self.gen_ai.first_token.with_label_values(&labels).observe(first.as_secs_f64());
        }
        if let Some(pace) = pace {
            self.gen_ai.per_token.with_label_values(&labels).observe(pace.seconds());
        }
    }
}

/// What `error.type` says: the code that the client was told, else how it ended. Both are closed lists.
fn error_type(line: &Line) -> Option<&'static str> {
    match line.outcome {
        // The engine's own refusal, which is relayed as it is.
        Outcome::Completed => (line.status >= 400).then_some("upstream_refused"),
        outcome => Some(line.error.unwrap_or(outcome.as_str())),
    }
}
