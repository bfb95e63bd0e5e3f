//! Traces: whether, where to, and how many.

/// Where traces go and how many.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// URL of an OTLP collector, gRPC without TLS; `None` = no traces.
    pub otlp: Option<String>,
    /// Share of the exchanges that are traced where their clients say nothing, from 0 to 1.
    pub sample: f64,
}
