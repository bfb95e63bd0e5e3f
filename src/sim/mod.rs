//! The simulated engine: an OpenAI-compatible fake vLLM on a listener of its own.
//!
//! It gives tokens with real timing, honest metrics and every fault an engine can have, without a
//! GPU: to size a gateway, to demonstrate it and to test it. It understands no prompt, and it takes
//! no care to be a good HTTP server for anyone but a proxy.
//!
//! The hard idea: it owns its sockets. A request that waits, generates or is stalled also listens
//! for the client's FIN or RST, so the instant of a cancellation is known to the engine itself
//! (`GET /sim/stats`), and any byte, or none, can be sent.
//!
//! # Endpoints
//! `POST /v1/chat/completions`, `/v1/completions`, `/v1/embeddings`; `GET /v1/models`, `/health`,
//! `/metrics` (vLLM's names); `GET /sim/stats`, `POST /sim/reset`, and `POST /sim/faults` with a
//! fault list as its body, which replaces the engine's faults (an empty body heals it).
//!
//! # One request's own wishes
//! | header | body (`"sim": {..}`) | meaning |
//! |---|---|---|
//! | `x-sim-fault` | `fault` | list of faults, instead of the engine's (empty: none) |
//! | `x-sim-first-event` | `first_event` | request read -> first data event, as `200ms` |
//! | `x-sim-inter-token` | `inter_token` | between two tokens, as `5ms` |
//! | `x-sim-tokens` | `tokens` | tokens of the answer, still bounded by `max_tokens` |
//! | `x-sim-event-bytes` | `event_bytes` | bytes of one content event, `300000` or `64KiB` |
//! | `x-sim-stamp: 1` | `stamp: true` | tokens carry `t=<unix microseconds> ` |
//!
//! The header wins over the body, the body over the engine's settings.
//!
//! # Faults
//! `NAME[=ARGUMENT][;OPTION=VALUE]`, several with commas. The option `p=N` (engine faults) strikes
//! every Nth request only. An engine's faults strike the three generating endpoints, `refuse` each
//! connection, `health` only `/health`; a request's own strike whatever it asks for. N counts
//! tokens of a stream; in an answer that is no stream it counts bytes of the body.
//!
//! | fault | what happens |
//! |---|---|
//! | `refuse` | RST right after accept (as a request's own: once it is read) |
//! | `status=NNN` | JSON error NNN (400 to 599); `;retry_after=S` adds Retry-After |
//! | `health=NNN` | `/health` answers NNN |
//! | `stall_before_head`, `reset_before_head`, `fin_before_head` | silence, RST, FIN instead of an answer |
//! | `stall_after_head`, `reset_after_head`, `fin_after_head` | the 200 head, then that |
//! | `stall_at=N`, `reset_at=N`, `fin_at=N` | N tokens, then that (FIN without the final chunk) |
//! | `truncated_chunk_at=N` | N tokens, a chunk header that promises more than follows, FIN |
//! | `error_at=N`, `error_then_done=N` | N tokens, an error event, clean end; the latter with `[DONE]` |
//! | `no_done` | a stream without `[DONE]` |
//! | `comments_only` | after the head only `: keep-alive` comments |
//! | `blank_lines` | three blank lines before the JSON of an answer that is no stream |
//! | `crlf` | every line of the stream ends in CRLF |
//! | `short_content_length` | Content-Length names half the body; all of it is sent |
//! | `extra_bytes` | a second, unasked answer right behind the whole first one |
//! | `garbage` | bytes that are not HTTP, then FIN |
//! | `early_413` | 413 before the body is read, then FIN |
//! | `head_trickle` | the head at one byte per 100 ms |
//! | `interim=N` | N answers 103 before the real one |
//! | `unsolicited_101` | 101 Switching Protocols, then silence |
//! | `big_head` | 10,000 header lines, 10 MB in all |
//! | `ignore_cancel` | goes on generating when the client has left, and counts it |
//!
//! Comments and blank lines come every 500 ms, or at the `inter_token` that the request names.
//!
//! # Limits worth knowing
//! A stream obeys backpressure, where vLLM would generate on into its own memory. The clock ticks in
//! milliseconds: a shorter `inter_token` is rounded up, zero is as fast as the socket takes it.

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
mod reply;
mod stats;
mod stream;
mod text;
mod units;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub use accept::Engine;
pub use args::Args;
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
            faults: Vec::new(),
        }
    }
}
