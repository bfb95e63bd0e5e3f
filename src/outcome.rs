//! How an exchange ended, and where it was when its client left.
//!
//! An exchange starts as [`Outcome::Abandoned`], so that a panic, an early return or a dropped
//! future is counted right; only an explicit step makes it anything better.

/// How an exchange ended. The words are those of the metric `streamgate_requests_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The whole answer was relayed, be it a success or a client error (4xx) of the engine.
    Completed,
    /// The client left first.
    ClientClosed,
    /// The client took no byte for `write_stall` and was cut.
    ClientStalled,
    /// The engine broke off, sent an error, or no attempt succeeded.
    UpstreamError,
    /// The answer ended properly, but the engine stopped short of it.
    Truncated,
    /// One of our time budgets ran out.
    Timeout,
    /// Refused here: no such path, a bad body, no node.
    Rejected,
    /// Refused here: more than the client may have.
    Limited,
    /// Ended by a drain.
    Shutdown,
    /// Nobody said how it ended.
    Abandoned,
}

impl Outcome {
    /// The word in metrics and log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ClientClosed => "client_closed",
            Self::ClientStalled => "client_stalled",
            Self::UpstreamError => "upstream_error",
            Self::Truncated => "truncated",
            Self::Timeout => "timeout",
            Self::Rejected => "rejected",
            Self::Limited => "limited",
            Self::Shutdown => "shutdown",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Where an exchange was. The words are those of the metric `streamgate_cancels_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The client is sending its body.
    Upload,
    /// Every backend is full: it waits for a free slot.
    Queue,
    /// A connection to the backend is being made.
    Connect,
    /// The request is sent, no data event of its stream has come.
    FirstEvent,
    /// Events flow.
    Stream,
    /// The request is sent, and its answer is not a stream.
    Unary,
}

impl Phase {
    /// Every phase, in the order of an exchange.
    pub const ALL: [Self; 6] =
        [Self::Upload, Self::Queue, Self::Connect, Self::FirstEvent, Self::Stream, Self::Unary];

    /// The word in metrics and log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Queue => "queue",
            Self::Connect => "connect",
            Self::FirstEvent => "first_event",
            Self::Stream => "stream",
            Self::Unary => "unary",
        }
    }
}
