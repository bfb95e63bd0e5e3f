//! What a run comes to: one set of figures, as a table for people and as JSON for programs. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::figures::{many, time};
use super::reloads;
use super::sample::Spread;
use super::tally::{Counts, State, Told};
use crate::top::figures::count;

/// The figures of a run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Report {
    pub(super) target: String,
    pub(super) model: String,
    /// From the first request to the end of the last one.
    pub(super) seconds: f64,
    /// It was ended before all was done.
    pub(super) interrupted: bool,
    pub(super) requests: Requests,
    pub(super) tokens: u64,
    pub(super) tokens_per_second: f64,
    pub(super) requests_per_second: f64,
    pub(super) microseconds: Times,
    /// Wrong answers by kind.
    pub(super) errors: BTreeMap<String, u64>,
    /// The first wrong answers.
    pub(super) wrong: Vec<Told>,
    pub(super) reloads: Option<reloads::Counts>,
}

/// Requests by what became of them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Requests {
    pub(super) begun: u64,
    #[serde(flatten)]
    pub(super) ended: Counts,
    /// Under way when the run was ended early.
    pub(super) unfinished: u64,
    /// Arrivals that found no place under the bound.
    pub(super) left_out: u64,
}

/// Percentiles; `None` where nothing of the kind was seen.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Times {
    /// From the request to the first event, the connection included.
    pub(super) first_event: Option<Spread>,
    /// Between two events with text.
    pub(super) gap: Option<Spread>,
    /// From the request to the end of a stream.
    pub(super) stream: Option<Spread>,
    /// From the request to the end of an answer that is no stream.
    pub(super) unary: Option<Spread>,
    /// From a stamped token's sending to its reading.
    pub(super) added: Option<Spread>,
    /// From leaving a stream to the engine's seeing it.
    pub(super) cancel: Option<Spread>,
}

impl Times {
    /// Of what has ended, and of the cancels as engines saw them.
    pub(super) fn of(state: &State, cancel: Option<Spread>) -> Self {
        Self {
            first_event: state.first.spread(),
            gap: state.gaps.spread(),
            stream: state.streams.spread(),
            unary: state.unary.spread(),
            added: state.added.spread(),
            cancel,
        }
    }
}

impl Report {
    /// Whether an answer was wrong, or a reload.
    pub(super) fn is_wrong(&self) -> bool {
        self.requests.ended.wrong > 0 || self.reloads.as_ref().is_some_and(|reloads| reloads.failed > 0)
    }

    /// The figures for programs.
    pub(super) fn json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("figures and texts always serialise")
    }

    /// The table, and what is to be said beside it.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{} on {}\n\n{}", self.model, self.target, self.table());
        let mut line = |words: String| {
            let written = writeln!(text, "{words}");
            debug_assert!(written.is_ok(), "a String takes all it is given");
        };
        line(self.ended());
        line(format!(
            "{} tokens, {} a second; {} requests a second",
            self.tokens,
            count(self.tokens_per_second),
            count(self.requests_per_second)
        ));
        self.reloads.iter().for_each(|reloads| line(of_reloads(reloads)));
        for (kind, number) in &self.errors {
            line(format!("wrong: {number} x {kind}"));
        }
        for told in &self.wrong {
            line(format!("  {}: {}", told.request_id, told.what));
        }
        text.trim_end().to_owned()
    }

    fn table(&self) -> String {
        let times = &self.microseconds;
        let rows = [
            ("time to first event", times.first_event),
            ("gap between events", times.gap),
            ("added per event", times.added),
            ("whole stream", times.stream),
            ("whole answer, no stream", times.unary),
            ("cancel, until the engine knows", times.cancel),
        ];
        let seen: Vec<_> = rows.into_iter().filter_map(|(name, spread)| Some((name, spread?))).collect();
        if seen.is_empty() {
            return String::new();
        }
        let mut table = row("", ["count", "p50", "p90", "p99", "max"].map(str::to_owned));
        for (name, spread) in seen {
            let [p50, p90, p99, max] = [spread.p50, spread.p90, spread.p99, spread.max].map(time);
            table += &row(name, [spread.count.to_string(), p50, p90, p99, max]);
        }
        table + "\n"
    }

    fn ended(&self) -> String {
        let (requests, ended) = (&self.requests, &self.requests.ended);
        let mut parts = vec![many(ended.streams, "whole stream")];
        let mut part = |number: u64, words: String| parts.extend((number > 0).then_some(words));
        part(ended.slow, format!("{} of them read slowly", ended.slow));
        part(ended.unary, many(ended.unary, "whole answer"));
        part(ended.cancelled, format!("{} cancelled", ended.cancelled));
        part(requests.unfinished, format!("{} not ended", requests.unfinished));
        part(requests.left_out, format!("{} arrivals left out, too many were open", requests.left_out));
        parts.push(format!("{} wrong", ended.wrong));
        let how = if self.interrupted { ", interrupted" } else { "" };
        format!("{} in {:.1} s{how}: {}", many(requests.begun, "request"), self.seconds, parts.join(", "))
    }
}

fn of_reloads(reloads: &reloads::Counts) -> String {
    let results = reloads.results.iter().map(|(result, number)| format!("{number} {result}"));
    let failed = (reloads.failed > 0).then(|| format!("{} failed", reloads.failed));
    let words: Vec<String> = results.chain(failed).collect();
    let mut text = format!("{}: {}", many(reloads.asked, "reload"), words.join(", "));
    reloads.told.iter().for_each(|why| text += &format!("\n  {why}"));
    text.trim_end_matches(": ").to_owned()
}

fn row(name: &str, cells: [String; 5]) -> String {
    let [number, p50, p90, p99, max] = cells;
    format!("{name:<30}{number:>9}{p50:>11}{p90:>11}{p99:>11}{max:>11}\n")
}

#[cfg(test)]
mod tests;
