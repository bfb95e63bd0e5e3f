//! How an attempt ended, as far as that says something of its backend.
//!
//! Facts only: what they mean is decided by whoever learns from them. An attempt that its client ended has no
//! failure, so that nothing a client does can count against a backend.

use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The end of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// When it ended.
    pub now: Instant,
    /// What the backend did wrong.
    pub failure: Option<Failure>,
    /// The status of its answer, if there was one.
    pub status: Option<u16>,
    /// From the request sent to the first data event of a stream.
    pub first_event: Option<Duration>,
    /// How long the backend asked to be left alone.
    pub retry_after: Option<Duration>,
    /// The answer was relayed to its end.
    pub whole: bool,
    /// When the backend last did something for it: sent data, or took the request.
    pub quiet_since: Option<Instant>,
    /// When it last sent data.
    pub last_data: Option<Instant>,
}

impl Report {
    /// An attempt that ended with nothing to tell of.
    pub fn of(now: Instant) -> Self {
        Self {
            now,
            failure: None,
            status: None,
            first_event: None,
            retry_after: None,
            whole: false,
            quiet_since: None,
            last_data: None,
        }
    }
}
