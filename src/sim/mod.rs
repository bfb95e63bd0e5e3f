//! The simulated engine: an OpenAI-compatible fake vLLM on a listener of its own.
//!
//! The hard idea: it owns its sockets. A request that waits, generates or is stalled also listens
//! for the client's FIN or RST, so the instant of a cancellation is known to the engine itself
//! (`GET /sim/stats`), and any byte, or none, can be sent.
//!
//! What it offers, its users read too:
#![doc = include_str!("../../docs/simulated-engine.md")]

mod accept;
mod answer;
mod args;
mod ask;
mod chunked;
mod clock;
mod complete;
mod connection;
mod endpoint;
mod event;
mod fault;
mod generate;
mod head;
mod metrics;
mod page;
mod plan;
mod proof;
mod reply;
mod stats;
mod stream;
mod text;
pub(crate) mod units;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub use accept::Engine;
pub use args::Args;
pub(crate) use clock::unix_us;
pub use fault::{Fault, FaultError, FaultKind};
pub use units::UnitError;

/// How one simulated engine behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name in its answers (header `x-sim-engine`) and statistics.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The model it serves.
    pub model: String,
    /// Request read -> first data event.
    pub first_event: Duration,
    /// Between two tokens. Zero: as fast as the socket takes them, written in batches of 16 KiB.
    pub inter_token: Duration,
    /// Tokens of an answer; a smaller `max_tokens` cuts it.
    pub tokens: u32,
    /// Size of one content event on the wire, in bytes, chunk framing aside. An event is never
    /// smaller than its JSON.
    pub event_bytes: usize,
    /// Send the 200 before the prefill, as vLLM does.
    pub early_200: bool,
    /// An idle connection is closed after this time (uvicorn: 5 s).
    pub keepalive: Duration,
    /// Content events per write; the rate of tokens stays that of `inter_token`.
    pub batch: u32,
    /// Requests that run at once, the others wait (vLLM: `max_num_seqs`). Zero: no bound.
    pub slots: u32,
    /// Tokens carry a hash of their request and of all tokens before them, and what was sent is remembered.
    pub proof: bool,
    /// What goes wrong, for every request that brings no faults of its own.
    pub faults: Vec<Fault>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "sim".to_owned(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9101)),
            model: "sim-model".to_owned(),
            first_event: Duration::from_millis(200),
            inter_token: Duration::from_millis(20),
            tokens: 120,
            event_bytes: 230,
            early_200: true,
            keepalive: Duration::from_secs(5),
            batch: 1,
            slots: 0,
            proof: false,
            faults: Vec::new(),
        }
    }
}
