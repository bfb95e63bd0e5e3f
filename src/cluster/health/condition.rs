//! What a backend's health amounts to, and how a change of it is told.

use std::fmt;
use std::time::Duration;

use crate::failure::Failure;

/// What a backend's health amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Condition {
    /// Nothing speaks against it.
    #[default]
    Up,
    /// Its checks fail and it goes on answering: the answers count.
    Degraded,
    /// Its checks fail, and nothing else is seen of it.
    Failing,
    /// It is out of the rotation.
    Ejected(Reason),
    /// It would be, and its cluster may eject no more: it is asked where no other can be.
    Kept(Reason),
}

impl Condition {
    /// Whether it gets its share of the work.
    pub fn is_in(self) -> bool {
        matches!(self, Self::Up | Self::Degraded)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => out.write_str("up"),
            Self::Degraded => out.write_str("degraded: its checks fail, and it goes on answering"),
            Self::Failing => out.write_str("down: its checks fail"),
            Self::Ejected(reason) => write!(out, "ejected: {reason}"),
            Self::Kept(reason) => write!(out, "last: {reason}, and max_ejected are out already"),
        }
    }
}

/// Why a backend was ejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Attempts failed in a row; this is how the last one did.
    Failure(Failure),
    /// It holds requests and generates nothing.
    Wedged,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => failure.fmt(out),
            Self::Wedged => out.write_str("wedged"),
        }
    }
}

impl Reason {
    /// A label for metrics: one word, from a closed list.
    pub fn label(self) -> &'static str {
        match self {
            Self::Failure(failure) => failure.reason(),
            Self::Wedged => "wedged",
        }
    }
}

/// A backend's health has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// What it was.
    pub from: Condition,
    /// What it is. The same as before where a backend that was out is out for longer.
    pub to: Condition,
    /// How long it is out, if it was ejected.
    pub length: Duration,
    /// Which ejection in a row this is, from 1; 0 if it is none.
    pub times: u32,
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.to) {
            (_, Condition::Ejected(Reason::Failure(failure))) => {
                write!(out, "ejected for {:.1?} (time {}): {failure}", self.length, self.times)
            }
            (_, Condition::Ejected(Reason::Wedged)) => write!(
                out,
                "ejected for {:.1?} (time {}): wedged, it holds requests and sends no event",
                self.length, self.times
            ),
            (_, Condition::Kept(reason)) => write!(
                out,
                "asked only where no other can be, for {:.1?} (time {}), as max_ejected are out already: {reason}",
                self.length, self.times
            ),
            (Condition::Ejected(_) | Condition::Kept(_), Condition::Up | Condition::Degraded) => {
                out.write_str("back: it answered a request")
            }
            (Condition::Ejected(_) | Condition::Kept(_), Condition::Failing) => {
                out.write_str("it answered a request, and its health checks still fail")
            }
            (_, Condition::Failing) => out.write_str("down: its health checks fail"),
            (_, Condition::Degraded) => {
                out.write_str("degraded: its health checks fail, and it goes on answering")
            }
            (_, Condition::Up) => out.write_str("up: its health checks pass"),
        }
    }
}
