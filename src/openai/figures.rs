//! Token figures under the names that the APIs give them.
//!
//! One reader for all of them: no name has two meanings, and engines mix them.

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::lax;
use crate::usage::Usage;

/// Most tokens that are believed of one exchange: a thousand times the longest context there is.
const FIGURE_MAX: u64 = 1 << 32;

/// The figures of a `usage` object; what is missing or odd is absent.
pub(super) fn read(usage: Option<&RawValue>) -> Usage {
    told(lax::read(usage).as_ref())
}

/// What the members of a `usage` object tell.
///
/// Anthropic's `input_tokens` leave out what the prompt cache gave or took (platform.claude.com, prompt
/// caching), everybody else's prompt figure includes it, and so does [`Usage::prompt`].
pub(super) fn told(usage: Option<&Raw<'_>>) -> Usage {
    let Some(raw) = usage else { return Usage::default() };
    let prompt: Details<'_> =
        lax::read(raw.prompt_tokens_details.or(raw.input_tokens_details)).unwrap_or_default();
    let completion: Details<'_> =
        lax::read(raw.completion_tokens_details.or(raw.output_tokens_details)).unwrap_or_default();
    let beside = [raw.cache_read_input_tokens, raw.cache_creation_input_tokens].map(count);
    let input = count(raw.input_tokens)
        .map(|input| beside.iter().flatten().fold(input, |sum, cached| sum.saturating_add(*cached)));
    let [cache_read, _] = beside;
    let prompt_told = count(raw.prompt_tokens).or(input);
    let completion_told = count(raw.completion_tokens.or(raw.output_tokens));
    let total = count(raw.total_tokens);
    Usage {
        // Rerank and score generate nothing, and tell the total only.
        prompt: prompt_told.or_else(|| total.filter(|_| completion_told.is_none())),
        completion: completion_told,
        total,
        cached: count(prompt.cached_tokens).or_else(|| count(raw.prompt_cache_hit_tokens)).or(cache_read),
        reasoning: count(completion.reasoning_tokens),
    }
}

/// One figure. What no exchange can have used is no figure: an engine that tells it must not use up a key's limit for
/// years, or have a counter begin anew.
fn count(value: Option<&RawValue>) -> Option<u64> {
    lax::count(value).filter(|count| *count <= FIGURE_MAX)
}

/// The figures of the last `usage` object that stands whole in a piece of JSON. A quote inside a string
/// is always escaped, so generated text cannot be taken for one.
pub(super) fn find(piece: &[u8]) -> Usage {
    let name = Finder::new(b"\"usage\"");
    let ats: Vec<usize> = name.find_iter(piece).collect();
    let figures = ats.into_iter().rev().map(|at| read(lax::value_after(piece, at + name.needle().len())));
    figures.into_iter().find(|usage| !usage.is_empty()).unwrap_or_default()
}

/// The members of a `usage` object, unread.
#[derive(Deserialize)]
pub(super) struct Raw<'a> {
    #[serde(borrow)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    total_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens_details: Option<&'a RawValue>,
    /// DeepSeek's older name for the cached tokens.
    #[serde(borrow)]
    prompt_cache_hit_tokens: Option<&'a RawValue>,
    /// From here on the names of Responses, Messages and audio.
    #[serde(borrow)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    input_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_read_input_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_creation_input_tokens: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Details<'a> {
    #[serde(borrow)]
    cached_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_tokens: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(json: &str) -> Usage {
        read(serde_json::from_str(json).expect("JSON"))
    }

    #[test]
    fn each_api_has_its_names() {
        let usage = |prompt, completion, cached| Usage {
            prompt: Some(prompt),
            completion: Some(completion),
            cached: Some(cached),
            ..Usage::default()
        };
        for (json, want) in [
            (
                r#"{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}"#,
                usage(7, 3, 4),
            ),
            (
                r#"{"prompt_tokens":7,"completion_tokens":3,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":3}"#,
                usage(7, 3, 4),
            ),
            (
                r#"{"input_tokens":7,"output_tokens":3,"input_tokens_details":{"cached_tokens":4}}"#,
                usage(7, 3, 4),
            ),
            (
                r#"{"input_tokens":7,"output_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":5}"#,
                usage(16, 3, 4),
            ),
            (
                r#"{"input_tokens":7,"output_tokens":3,"cache_read_input_tokens":0,"cache_creation_input_tokens":null}"#,
                usage(7, 3, 0),
            ),
        ] {
            assert_eq!(figures(json), want, "{json}");
        }
        let all_prompt = Usage { prompt: Some(56), total: Some(56), ..Usage::default() };
        assert_eq!(figures(r#"{"total_tokens":56}"#), all_prompt);
        assert_eq!(figures(r#"{"completion_tokens":3,"total_tokens":56}"#).prompt, None);
        assert_eq!(figures("null"), Usage::default());
        assert_eq!(figures(r#"{"type":"duration","seconds":5}"#), Usage::default());
    }

    #[test]
    fn figures_are_found_in_a_piece() {
        let usage = Usage { prompt: Some(7), total: Some(7), ..Usage::default() };
        for piece in [
            r#"0.5]}],"usage":{"prompt_tokens":7,"total_tokens":7}}"#,
            r#"text \"usage\":{\"prompt_tokens\":9}"}],"usage" : {"prompt_tokens":7,"total_tokens":7},"user":null}"#,
            r#"{"usage":{"prompt_tokens":7,"total_tokens":7},"tools":[{"usage":{"type":"string"}},["usage"]],"usage":{"pro"#,
        ] {
            assert_eq!(find(piece.as_bytes()), usage, "{piece}");
        }
        assert_eq!(find(b"\"usage\":nul"), Usage::default());
        assert_eq!(find(b"\"usage\""), Usage::default());
    }
}
