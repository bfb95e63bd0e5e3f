//! A JSON answer on its way: kept to be read at its end, of a long one only its ends.
//!
//! Embeddings of a batch are megabytes of numbers, and what they cost stands behind them (OpenAI, vLLM)
//! or in front (llama.cpp).

use super::answer::observe_unary;
use super::figures;
use super::seen::Seen;
use crate::usage::{Source, Usage};

/// Longest answer that is kept whole, in bytes.
const WHOLE_MAX: usize = 64 * 1024;
/// Bytes kept of the end of a longer one.
const TAIL: usize = 2048;

/// Watches one JSON answer.
#[derive(Debug, Default)]
pub struct Unary {
    /// The answer so far; of a long one the last `TAIL` bytes.
    kept: Vec<u8>,
    /// The answer is long; the figures at its beginning.
    long: Option<Usage>,
}

impl Unary {
    /// Takes note of a piece of the answer.
    pub fn push(&mut self, piece: &[u8]) {
        if self.long.is_none() && self.kept.len() + piece.len() <= WHOLE_MAX {
            self.kept.extend_from_slice(piece);
            return;
        }
        if self.long.is_none() {
            let rest = (WHOLE_MAX - self.kept.len()).min(piece.len());
            self.kept.extend_from_slice(&piece[..rest]);
            self.long = Some(figures::find(&self.kept));
            return self.push_long(&piece[rest..]);
        }
        self.push_long(piece);
    }

    fn push_long(&mut self, piece: &[u8]) {
        let newest = &piece[piece.len().saturating_sub(TAIL)..];
        let excess = (self.kept.len() + newest.len()).saturating_sub(TAIL);
        self.kept.drain(..excess);
        self.kept.shrink_to(TAIL);
        self.kept.extend_from_slice(newest);
    }

    /// The answer is complete: what it said. Of a long one that is its usage alone.
    pub fn finish(self) -> Seen {
        let Some(in_front) = self.long else { return observe_unary(&self.kept) };
        let mut usage = in_front;
        usage.update(&figures::find(&self.kept));
        let usage = (!usage.is_empty()).then_some((usage, Source::Reported));
        Seen { usage, ..Seen::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(answer: &str, size: usize) -> Seen {
        let mut unary = Unary::default();
        answer.as_bytes().chunks(size).for_each(|piece| unary.push(piece));
        assert!(unary.kept.len() <= WHOLE_MAX);
        unary.finish()
    }

    #[test]
    fn usage_is_read_at_either_end_of_a_long_answer() {
        let numbers = "0.015625,".repeat(20_000);
        let usage = r#""usage":{"prompt_tokens":7,"total_tokens":7}"#;
        let want = Usage { prompt: Some(7), total: Some(7), ..Usage::default() };
        for answer in [
            format!(r#"{{"data":[{{"embedding":[{numbers}0]}}],{usage}}}"#),
            format!(r#"{{"object":"list",{usage},"data":[{{"embedding":[{numbers}0]}}]}}"#),
        ] {
            for size in [1000, 16 * 1024, answer.len()] {
                assert_eq!(seen(&answer, size).usage, Some((want, Source::Reported)), "pieces of {size}");
            }
        }
        assert_eq!(seen(&numbers, 1000), Seen::default());
    }

    #[test]
    fn a_short_answer_is_read_whole() {
        let answer = r#"{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":7}}"#;
        for size in [1, answer.len()] {
            let seen = seen(answer, size);
            assert_eq!((seen.finish_reason.as_deref(), seen.usage.is_some()), (Some("stop"), true));
        }
    }
}
