//! How a stream is kept flowing, and how long anything may take.

use std::time::Duration;

/// How a stream is kept flowing, bounded and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// A comment goes to the client after this much silence; `None` = never.
    pub heartbeat: Option<Duration>,
    /// An upstream 200 waits this long for its first data event before it is committed.
    pub hold_headers: Duration,
    /// After this much silence with no upstream answer at all, commit 200; `None` = never.
    pub early_headers: Option<Duration>,
    /// Response bytes a stream may hold in the gateway; also sizes both sockets' buffers.
    pub window: usize,
    /// An event is held until whole up to this many bytes; a larger one streams through.
    pub event_hold: usize,
    /// A client whose side acknowledges no byte for this long is cut.
    pub write_stall: Duration,
    /// What a client's FIN means while its answer is unfinished.
    pub half_close: HalfClose,
    /// How the body ends after an error event.
    pub failure_end: FailureEnd,
}

/// What a client's FIN means while its answer is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfClose {
    /// The client is gone: cancel.
    Abort,
    /// The client only finished sending: serve it to the end.
    Finish,
}

/// How a body ends after an error event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureEnd {
    /// With its proper HTTP end.
    Clean,
    /// With broken framing.
    Abort,
}

/// Time budgets, resolved for one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP and TLS, per attempt.
    pub connect: Duration,
    /// Request sent -> first data event of a stream, per attempt.
    pub first_event: Duration,
    /// Request sent -> whole answer of a call that does not stream, per attempt.
    pub unary: Duration,
    /// No data event for this long after the first.
    pub idle: Duration,
    /// From arrival to the end of the exchange.
    pub total: Duration,
    /// Waiting for a free slot.
    pub queue: Duration,
}
