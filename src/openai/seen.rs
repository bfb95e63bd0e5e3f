//! What has been read of an answer, whatever the dialect it was written in.

use crate::usage::{Source, Usage};

use super::choices::Choices;
use super::profiles::stopped_short;

/// What has been seen of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last figures and whether they are final.
    pub usage: Option<(Usage, Source)>,
    /// Why the engine stopped, at most 64 bytes; of several choices one that
    /// [stopped short](stopped_short), else the last.
    pub finish_reason: Option<Box<str>>,
    /// The first error object.
    pub error: Option<Failure>,
}

/// An error object in an answer: `{"error": ...}`, or vLLM's older `{"object": "error", ...}`.
///
/// Its message is not kept: it may quote the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// Its `code`, at most 64 bytes; vLLM's are numbers.
    pub code: Option<Box<str>>,
    /// Its `type`, at most 64 bytes.
    pub kind: Option<Box<str>>,
}

/// What one event, or a whole answer, says.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// It brings text, reasoning or a piece of a tool call.
    pub(super) token: bool,
    /// It is the extra frame that carries usage and nothing else.
    pub(super) usage_only: bool,
    /// Figures, empty for none.
    pub(super) usage: Usage,
    /// The figures are the engine's last word.
    pub(super) is_final: bool,
    /// The choices that it is about.
    pub(super) choices: Choices,
    /// Why the engine stopped, for each part of the answer that ends here.
    pub(super) finish_reasons: Vec<Box<str>>,
    /// The engine failed.
    pub(super) error: Option<Failure>,
}

impl Seen {
    /// Takes over what an event, or a whole answer, says.
    pub(super) fn take(&mut self, said: Said) {
        if !said.usage.is_empty() {
            let mut usage = self.usage.map_or_else(Usage::default, |(usage, _)| usage);
            usage.update(&said.usage);
            let source = if said.is_final { Source::Reported } else { Source::Running };
            self.usage = Some((usage, source));
        }
        for reason in said.finish_reasons {
            if !self.finish_reason.as_deref().is_some_and(stopped_short) {
                self.finish_reason = Some(reason);
            }
        }
        if self.error.is_none() {
            self.error = said.error;
        }
    }
}
