//! What the spans of an exchange are made of.

use std::time::{Instant, SystemTime};

use crate::access_log::Line;

/// What is known of an exchange at its end.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Its line of the access log.
    pub line: &'a Line,
    /// When it arrived.
    pub arrived: Instant,
    /// When its request was complete and let in; the same as `arrived` if it never was.
    pub ready: Instant,
    /// When it ended.
    pub ended: Instant,
    /// `gen_ai.operation.name`; `None` for what generates nothing.
    pub operation: Option<&'static str>,
    /// `gen_ai.provider.name`: the engine's kind.
    pub provider: Option<&'static str>,
    /// Why the engine stopped.
    pub finish_reason: Option<&'a str>,
}

impl Facts<'_> {
    /// A moment on the calendar.
    pub(super) fn at(&self, moment: Instant) -> SystemTime {
        self.line.time + moment.saturating_duration_since(self.arrived)
    }
}
