//! The spans of an exchange: itself; its admission; its wait in a queue; each attempt, and in the last the time to its
//! first token and the stream behind it.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::{Attempt, Facts, Trace, span_id};
use crate::access_log::short;
use crate::outcome::Outcome;

static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
    InstrumentationScope::builder("streamgate").with_version(env!("CARGO_PKG_VERSION")).build()
});

impl Trace {
    /// All spans of the exchange, which has ended. `random` makes ids.
    pub fn spans(mut self, facts: &Facts<'_>, mut random: impl FnMut() -> u64) -> Vec<SpanData> {
        self.attempt_ended(None, facts.ended);
        let mut new = || span_id(&mut random);
        let mut spans = vec![self.root(facts)];
        let ready = if facts.ready > facts.arrived { facts.ready } else { facts.ended };
        spans.push(self.span("admission", self.root, new(), facts, facts.arrived..ready));
        if let Some(queued) = facts.line.queued {
            let until = self.attempts.first().map_or(facts.ended, |attempt| attempt.began);
            let from = until.checked_sub(queued).unwrap_or(ready);
            spans.push(self.span("queue", self.root, new(), facts, from..until));
        }
        for (number, attempt) in self.attempts.iter().enumerate() {
            spans.push(self.attempt_span(attempt, number + 1, facts));
        }
        if let Some(last) = self.attempts.last() {
            let after = |time: Option<Duration>| time.map(|time| facts.arrived + time);
            let first_token = after(facts.line.first_token);
            if let Some(at) = first_token {
                spans.push(self.span("first token", last.span, new(), facts, last.began..at));
            }
            if let Some(from) = first_token.or_else(|| after(facts.line.first_event)) {
                let until = last.ended.unwrap_or(facts.ended);
                spans.push(self.span("stream", last.span, new(), facts, from..until));
            }
        }
        spans
    }

    fn root(&self, facts: &Facts<'_>) -> SpanData {
        let line = facts.line;
        let route = line.route.as_deref().unwrap_or("none");
        let name = format!("{} {route}", short(&line.method));
        let mut span = self.span(name, self.parent, self.root, facts, facts.arrived..facts.ended);
        span.parent_span_is_remote = self.parent != SpanId::INVALID;
        span.span_kind = SpanKind::Server;
        span.attributes = root_attributes(facts);
        if failed(line.outcome) {
            let why = line.error.unwrap_or(line.outcome.as_str());
            span.attributes.push(KeyValue::new("error.type", why));
            span.status = Status::error(why);
        }
        span
    }

    fn attempt_span(&self, attempt: &Attempt, number: usize, facts: &Facts<'_>) -> SpanData {
        let until = attempt.ended.unwrap_or(facts.ended);
        let name = format!("attempt {}/{}", attempt.cluster, attempt.backend);
        let mut span = self.span(name, self.root, attempt.span, facts, attempt.began..until);
        span.span_kind = SpanKind::Client;
        span.attributes = vec![
            KeyValue::new("streamgate.cluster", attempt.cluster.to_string()),
            KeyValue::new("streamgate.backend", attempt.backend.to_string()),
            KeyValue::new("streamgate.attempt", number as i64),
        ];
        if let Some(failure) = attempt.failure {
            span.attributes.push(KeyValue::new("error.type", failure));
            span.status = Status::error(failure);
        }
        span
    }

    fn span(
        &self,
        name: impl Into<Cow<'static, str>>,
        parent: SpanId,
        id: SpanId,
        facts: &Facts<'_>,
        time: std::ops::Range<Instant>,
    ) -> SpanData {
        SpanData {
            span_context: SpanContext::new(self.id, id, TraceFlags::SAMPLED, false, self.state.clone()),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: facts.at(time.start),
            end_time: facts.at(time.end.max(time.start)),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: SCOPE.clone(),
        }
    }
}

fn failed(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Completed | Outcome::ClientClosed | Outcome::Rejected | Outcome::Limited)
}

/// Names of the semantic conventions where there are any, else ours.
fn root_attributes(facts: &Facts<'_>) -> Vec<KeyValue> {
    let line = facts.line;
    let mut attributes = Vec::with_capacity(24);
    let mut note = |name: &'static str, value: Option<Value>| {
        attributes.extend(value.map(|value| KeyValue::new(name, value)));
    };
    let text = |text: Option<&str>| text.map(|text| short(text).to_owned().into());
    let count = |count: Option<u64>| count.map(|count| i64::try_from(count).unwrap_or(i64::MAX).into());
    let usage = line.usage.map(|(usage, _)| usage).unwrap_or_default();
    note("http.request.method", text(Some(&line.method)));
    note("url.path", text(Some(&line.path)));
    note("http.response.status_code", count(Some(line.status.into()).filter(|status| *status > 0)));
    note("client.address", line.client.map(|address| address.to_string().into()));
    note("gen_ai.operation.name", text(facts.operation));
    note("gen_ai.provider.name", text(facts.provider));
    note("gen_ai.request.model", text(line.model.as_deref()));
    note("gen_ai.usage.input_tokens", count(usage.prompt));
    note("gen_ai.usage.output_tokens", count(usage.completion));
    let reasons = facts.finish_reason.map(|reason| vec![reason.to_owned().into()]);
    note(
        "gen_ai.response.finish_reasons",
        reasons.map(|reasons| Value::Array(opentelemetry::Array::String(reasons))),
    );
    note("streamgate.request_id", text(Some(&line.request_id)));
    note("streamgate.key", text(line.key.as_deref()));
    note("streamgate.route", text(line.route.as_deref()));
    note("streamgate.cluster", text(line.cluster.as_deref()));
    note("streamgate.backend", text(line.backend.as_deref()));
    note("streamgate.outcome", text(Some(line.outcome.as_str())));
    note("streamgate.phase", text(Some(line.phase.as_str())));
    note("streamgate.streaming", Some(line.streaming.into()));
    note("streamgate.attempts", count(Some(line.attempts as u64)));
    note("streamgate.usage.source", text(line.usage.map(|(_, source)| source.label())));
    note("streamgate.generation", count(Some(line.generation)));
    attributes
}
