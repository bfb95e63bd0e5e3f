//! Tokens: what a request is estimated to use, and what it is charged in the end.
//!
//! A client must not get around its limit by leaving, so what it is charged does not depend on whether it
//! stayed: the engine's figures where it told them; else the prompt, which is lost once a request is sent, and what was seen
//! of the answer; where nothing of it could be seen, all that was reserved.

use crate::cluster::load::{TYPICAL, Work};
use crate::usage::{Source, Usage};

/// Bytes that are taken for a token of a prompt: English text in the tokenizers of today.
const TOKEN_BYTES: u64 = 4;
/// Most bytes of a body that count: beyond 128k tokens of text it is no text, but images in base64.
const PROMPT_BYTES_MAX: u64 = 512 * 1024;

/// What a request is estimated to use, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Its prompt.
    pub prompt: u64,
    /// All answers that it may get, together.
    pub answer: u64,
    /// How many answers it wants.
    pub answers: u64,
}

impl Estimate {
    /// The estimate for a request: its body's length for the prompt, its own limit for each answer.
    pub fn of(work: &Work) -> Self {
        let prompt = work.body_bytes.min(PROMPT_BYTES_MAX).div_ceil(TOKEN_BYTES);
        let answers = work.answers.unwrap_or(1).max(1);
        let each = if work.generates && work.body_bytes > 0 { work.tokens_max.unwrap_or(TYPICAL) } else { 0 };
        Self { prompt, answer: each.saturating_mul(answers), answers }
    }

    /// All of it.
    pub fn sum(&self) -> u64 {
        self.prompt.saturating_add(self.answer)
    }
}

/// How far an exchange came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// No engine was sent its request, or the engine refused it or failed before it gave anything.
    Nothing,
    /// An engine worked on it, and what it gave could be seen as it went by.
    Seen,
    /// An engine worked on it, and what it did could not be seen: the answer does not stream, or is compressed.
    Unseen,
}

/// What an exchange used: `known` of its answer, and estimated what of it is not. `None` where no engine worked.
pub fn used(
    estimate: &Estimate,
    reached: Reached,
    known: Option<(Usage, Source)>,
) -> Option<(Usage, Source)> {
    let estimated = |usage: Usage, completion| {
        let prompt = usage.prompt.or(Some(estimate.prompt));
        Some((Usage { prompt, completion: Some(completion), ..usage }, Source::Estimated))
    };
    match (known, reached) {
        (Some((usage, Source::Estimated)), _) => {
            estimated(usage, generated(estimate, usage.completion.unwrap_or(0)))
        }
        (Some(_), _) => known,
        (None, Reached::Nothing) => None,
        // Such as reading a stored answer.
        (None, _) if estimate.sum() == 0 => None,
        (None, Reached::Seen) => estimated(Usage::default(), 0),
        (None, Reached::Unseen) => estimated(Usage::default(), estimate.answer),
    }
}

/// What an exchange is charged for what it [used], in tokens.
pub fn charge(estimate: &Estimate, used: Option<&Usage>) -> u64 {
    let Some(usage) = used else { return 0 };
    let prompt = usage.prompt.unwrap_or(estimate.prompt);
    usage.total.unwrap_or(0).max(prompt.saturating_add(usage.completion.unwrap_or(0)))
}

/// Tokens behind so many events. An event may hold one token of one answer or of each: the more is charged, as far
/// as the request asked for so many.
fn generated(estimate: &Estimate, events: u64) -> u64 {
    events.saturating_mul(estimate.answers.max(1)).min(estimate.answer.max(events))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work { body_bytes: 400, generates: true, tokens_max: Some(50), answers: None };

    fn told(prompt: Option<u64>, completion: u64, source: Source) -> Option<(Usage, Source)> {
        Some((Usage { prompt, completion: Some(completion), ..Usage::default() }, source))
    }

    fn charge(estimate: &Estimate, reached: Reached, known: Option<(Usage, Source)>) -> u64 {
        super::charge(estimate, used(estimate, reached, known).map(|(usage, _)| usage).as_ref())
    }

    #[test]
    fn what_is_not_told_is_estimated_and_says_so() {
        let estimate = Estimate::of(&WORK);
        let figures = |reached, known| {
            used(&estimate, reached, known)
                .map(|(usage, source)| (usage.prompt, usage.completion, source.label()))
        };
        assert_eq!(figures(Reached::Nothing, None), None);
        assert_eq!(figures(Reached::Seen, None), Some((Some(100), Some(0), "estimated")));
        assert_eq!(figures(Reached::Unseen, None), Some((Some(100), Some(50), "estimated")));
        let counted = told(None, 4, Source::Estimated);
        assert_eq!(figures(Reached::Seen, counted), Some((Some(100), Some(4), "estimated")));
        let running = told(Some(7), 4, Source::Running);
        assert_eq!(figures(Reached::Seen, running), Some((Some(7), Some(4), "running")));
        let reported = told(None, 3, Source::Reported);
        assert_eq!(figures(Reached::Unseen, reported), Some((None, Some(3), "reported")));
    }

    #[test]
    fn an_estimate_is_the_prompt_and_all_answers_that_may_come() {
        assert_eq!(Estimate::of(&WORK), Estimate { prompt: 100, answer: 50, answers: 1 });
        assert_eq!(Estimate::of(&Work { answers: Some(3), ..WORK }).sum(), 250);
        assert_eq!(Estimate::of(&Work { tokens_max: None, ..WORK }).sum(), 100 + TYPICAL);
        assert_eq!(Estimate::of(&Work { generates: false, ..WORK }).sum(), 100);
        assert_eq!(Estimate::of(&Work { body_bytes: 0, ..WORK }).sum(), 0);
        let most = Work { tokens_max: Some(u64::MAX), answers: Some(u64::MAX), body_bytes: u64::MAX, ..WORK };
        assert_eq!(Estimate::of(&most).sum(), u64::MAX);
    }

    #[test]
    fn what_the_engine_told_is_charged() {
        let estimate = Estimate::of(&WORK);
        let charged = |usage| charge(&estimate, Reached::Seen, usage);
        assert_eq!(charged(told(Some(7), 3, Source::Reported)), 10);
        assert_eq!(charged(told(Some(7), 2, Source::Running)), 9);
        assert_eq!(charged(told(None, 3, Source::Reported)), 103);
        let usage = Usage { prompt: Some(7), completion: Some(3), total: Some(12), ..Usage::default() };
        assert_eq!(charged(Some((usage, Source::Reported))), 12);
    }

    #[test]
    fn who_leaves_pays_the_prompt_and_what_was_generated() {
        let estimate = Estimate::of(&WORK);
        assert_eq!(charge(&estimate, Reached::Seen, None), 100);
        assert_eq!(charge(&estimate, Reached::Seen, told(None, 4, Source::Estimated)), 104);
        assert_eq!(charge(&estimate, Reached::Unseen, None), 150);
        assert_eq!(charge(&estimate, Reached::Nothing, None), 0);
    }

    #[test]
    fn events_of_several_answers_count_for_each_and_not_beyond_what_was_asked_for() {
        let estimate = Estimate::of(&Work { answers: Some(3), ..WORK });
        let charged = |events| charge(&estimate, Reached::Seen, told(None, events, Source::Estimated)) - 100;
        assert_eq!([charged(10), charged(100), charged(200)], [30, 150, 200]);
    }
}
