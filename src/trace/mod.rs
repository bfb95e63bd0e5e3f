//! Traces: what one exchange did and when, as spans for an OpenTelemetry collector.
//!
//! The hard idea: nothing is built while the exchange runs. It notes when each attempt began and ended, as it does
//! for its log line anyway, and the spans are made of that at its end, once. What a trace costs an event is nothing.
//! Names follow the OpenTelemetry semantic conventions for HTTP and generative AI. Prompts and answers are in none.

mod collector;
mod facts;
mod spans;

pub use collector::{Collector, Counts};
pub use facts::Facts;

use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceId, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// The header of W3C Trace Context.
pub static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The trace of one exchange that is traced.
#[derive(Debug)]
pub struct Trace {
    id: TraceId,
    /// The client's span, or one that is not valid where it sent none.
    parent: SpanId,
    state: TraceState,
    /// The span of the exchange.
    root: SpanId,
    attempts: Vec<Attempt>,
}

/// One attempt of it.
#[derive(Debug)]
struct Attempt {
    span: SpanId,
    cluster: Arc<str>,
    backend: Arc<str>,
    began: Instant,
    ended: Option<Instant>,
    failure: Option<&'static str>,
}

impl Trace {
    /// Begins the trace of a request, if it is to be traced: where its client traces it, or where the client says
    /// nothing and `draw`, a random number from 0 to 1, lies below the share `sample`. `random` makes ids.
    pub fn begin(
        headers: &HeaderMap,
        sample: f64,
        draw: f64,
        mut random: impl FnMut() -> u64,
    ) -> Option<Box<Self>> {
        let client = client(headers);
        let is_wanted = if client.is_valid() { client.is_sampled() } else { draw < sample };
        if !is_wanted {
            return None;
        }
        let id = if client.is_valid() { client.trace_id() } else { trace_id(&mut random) };
        Some(Box::new(Self {
            id,
            parent: client.span_id(),
            state: client.trace_state().clone(),
            root: span_id(&mut random),
            attempts: Vec::new(),
        }))
    }

    /// An attempt begins.
    pub fn attempt(&mut self, cluster: Arc<str>, backend: Arc<str>, now: Instant, random: u64) {
        let span = span_id(&mut || random);
        self.attempts.push(Attempt { span, cluster, backend, began: now, ended: None, failure: None });
    }

    /// The attempt that runs has ended.
    pub fn attempt_ended(&mut self, failure: Option<&'static str>, now: Instant) {
        if let Some(attempt) = self.attempts.last_mut().filter(|attempt| attempt.ended.is_none()) {
            (attempt.ended, attempt.failure) = (Some(now), failure);
        }
    }

    /// `traceparent` for the engine: its spans belong below the attempt.
    pub fn header(&self) -> Option<HeaderValue> {
        let span = self.attempts.last().map_or(self.root, |attempt| attempt.span);
        HeaderValue::from_str(&format!("00-{}-{span}-01", self.id)).ok()
    }
}

/// What the client says of its own trace.
fn client(headers: &HeaderMap) -> SpanContext {
    struct Headers<'a>(&'a HeaderMap);

    impl Extractor for Headers<'_> {
        fn get(&self, name: &str) -> Option<&str> {
            self.0.get(name).and_then(|value| value.to_str().ok())
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(HeaderName::as_str).collect()
        }
    }

    let none = opentelemetry::Context::new();
    let context = TraceContextPropagator::new().extract_with_context(&none, &Headers(headers));
    context.span().span_context().clone()
}

/// An id that is not zero, which means none.
fn trace_id(random: &mut impl FnMut() -> u64) -> TraceId {
    TraceId::from(u128::from(random()) << 64 | u128::from(random().max(1)))
}

fn span_id(random: &mut impl FnMut() -> u64) -> SpanId {
    SpanId::from(random().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(traceparent: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(&TRACEPARENT, traceparent.parse().unwrap());
        headers
    }

    fn begin(headers: &HeaderMap, draw: f64) -> Option<Box<Trace>> {
        Trace::begin(headers, 0.5, draw, || 7)
    }

    #[test]
    fn the_client_decides_where_it_says_anything() {
        let sampled = headers("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let trace = begin(&sampled, 0.9).expect("its client traces it");
        assert_eq!(trace.id.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.parent.to_string(), "b7ad6b7169203331");
        let not = headers("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
        assert!(begin(&not, 0.1).is_none());
    }

    #[test]
    fn else_the_draw_does() {
        for none in ["", "00-0-0-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "x\u{e9}"] {
            let headers = headers(none);
            assert!(begin(&headers, 0.5).is_none(), "{none}");
            let trace = begin(&headers, 0.4).expect("drawn");
            assert_eq!(trace.parent, SpanId::INVALID, "{none}");
        }
    }

    #[test]
    fn the_engine_is_told_of_its_attempt() {
        let mut trace = Trace::begin(&HeaderMap::new(), 1.0, 0.0, || 1).expect("drawn");
        trace.attempt("c".into(), "b".into(), Instant::now(), 0xab);
        let header = trace.header().expect("a header");
        assert_eq!(header, "00-00000000000000010000000000000001-00000000000000ab-01");
    }
}
