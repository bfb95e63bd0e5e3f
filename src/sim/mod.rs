//! The simulated engine: an OpenAI-compatible fake vLLM on a listener of its own.

use std::net::SocketAddr;
use std::time::Duration;

/// How one simulated engine behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name in its log lines and answers.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The model it serves.
    pub model: String,
    /// Request read -> first data event.
    pub first_event: Duration,
    /// Between two events.
    pub inter_token: Duration,
    /// Tokens of an answer when the request names no `max_tokens`.
    pub tokens: u32,
    /// Size of one content event on the wire, in bytes.
    pub event_bytes: usize,
    /// Send the 200 before the prefill, as vLLM does.
    pub early_200: bool,
}
