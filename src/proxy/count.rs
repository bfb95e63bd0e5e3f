//! What an exchange counts at its end that takes more than its access line to say: its tokens and their pace.

use super::exchange::Exchange;
use crate::access_log::Line;
use crate::live::Pace;
use crate::metrics::Operation;
use crate::openai::{Dialect, profiles};
use crate::outcome::Outcome;

impl Exchange {
    /// Counts the tokens that were not seen one by one as they passed: those of an answer that is no stream, and those
    /// that came several in an event. And what was not generated, where the client left. Gives the pace of a stream.
    pub(super) fn count_output(&self) -> Option<Pace> {
        let (Some(route), Some(attempt)) = (&self.route, &self.attempt) else { return None };
        let metrics = &self.shared.metrics;
        let (seen, usage) = (self.answer.tokens(), self.answer.usage());
        let told = usage.and_then(|(usage, _)| usage.completion).unwrap_or(0).max(seen);
        attempt.in_flight.backend().state.output.add_tokens(told - seen);
        if let Some(cluster) = &self.cluster {
            cluster.state.output.add_tokens(told - seen);
        }
        let pace = self.answer.generating().and_then(|time| Pace::of(told, time));
        if let Some(pace) = pace {
            metrics.paced(&route.name, pace);
        }
        match self.ending.outcome {
            Outcome::Completed if told > 0 => metrics.completed(&route.name, told, pace),
            Outcome::ClientClosed => metrics.saved(&route.name, told, self.request.tokens_max),
            _ => {}
        }
        pace
    }

    /// Counts it by the names of the GenAI conventions, if it was one of their operations.
    pub(super) fn count_operation(&self, line: &Line, pace: Option<Pace>) {
        let (Some(route), Some(cluster)) = (&self.route, &self.cluster) else { return };
        // What is read or deleted by the same paths generates nothing.
        let name = Dialect::of(&line.path).operation(&line.path).filter(|_| line.method == "POST");
        let Some(name) = name else { return };
        let model = line.model.as_deref().filter(|model| route.names(model));
        let provider = profiles::of(cluster.config.profile).name;
        self.shared.metrics.operated(&Operation { name, provider, model }, line, pace);
    }
}
