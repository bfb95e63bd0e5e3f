//! What is read of an answer's JSON: that of a chat or a completion, a piece of it or the whole. Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::judge::lost;
use super::stamps::Stamps;
use super::wrong::{Wrong, quote, said};

/// The data of the event that ends a stream.
pub(super) const DONE: &[u8] = b"[DONE]";

/// One JSON object of an answer. Reading it proves that all of it is JSON.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// `error` of older engines, which have no object of that name.
    #[serde(borrow)]
    object: Option<Cow<'a, str>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// The same of an answer that is no stream.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reasoning: Option<Cow<'a, str>>,
    /// The older name; some engines say both.
    #[serde(borrow)]
    reasoning_content: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    completion_tokens: Option<u64>,
}

impl<'a> Chunk<'a> {
    /// Reads the data of an event, or a whole answer.
    ///
    /// # Errors
    /// It is no JSON object of this form.
    pub(super) fn read(data: &'a [u8]) -> Result<Self, Wrong> {
        serde_json::from_slice(data).map_err(|error| Wrong::Json(format!("{error}: {}", quote(data))))
    }

    /// What an error in the place of an answer says.
    pub(super) fn error(&self) -> Option<String> {
        match self.error {
            Some(error) => Some(said(format!("{{\"error\":{error}}}").as_bytes())),
            None => (self.object.as_deref() == Some("error")).then(|| "an object of the kind `error`".into()),
        }
    }

    /// The text that it brings: of the answer, or of the reasoning before it.
    pub(super) fn text(&self) -> Option<&str> {
        let choice = self.choices.as_ref()?.first()?;
        let delta = choice.delta.as_ref().or(choice.message.as_ref());
        let of_delta = delta.map(|delta| [&delta.content, &delta.reasoning, &delta.reasoning_content]);
        let texts = of_delta.into_iter().flatten().chain([&choice.text]);
        texts.filter_map(|text| text.as_deref()).find(|text| !text.is_empty())
    }

    /// Why the model has ended.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.choices.as_ref()?.first()?.finish_reason.as_deref()
    }

    /// Tokens that the model has made.
    pub(super) fn completion_tokens(&self) -> Option<u64> {
        self.usage.as_ref()?.completion_tokens
    }

    /// Whether it is of the answer to the request with this id, as simulated engines name answers.
    ///
    /// # Errors
    /// It is of another one's.
    pub(super) fn check_owner(&self, id: &str) -> Result<(), Wrong> {
        let named = self.id.as_deref().unwrap_or_default();
        match named.split_once('-') {
            Some((_, owner)) if owner == id => Ok(()),
            _ => Err(Wrong::Crosstalk(quote(named.as_bytes()))),
        }
    }
}

/// Judges an answer in one piece: gives the number of its tokens.
///
/// # Errors
/// What is wrong with it.
pub(super) fn judge_whole(body: &[u8], id: &str) -> Result<u64, Wrong> {
    let answer = Chunk::read(body)?;
    if let Some(error) = answer.error() {
        return Err(Wrong::ErrorEvent(error));
    }
    if answer.choices.as_ref().is_none_or(Vec::is_empty) {
        return Err(Wrong::Json(format!("no choices in {}", quote(body))));
    }
    let (due, text) = (answer.completion_tokens(), answer.text().unwrap_or_default());
    if !Stamps::begin(text) {
        return Ok(due.unwrap_or(0));
    }
    answer.check_owner(id)?;
    let mut stamps = Stamps::default();
    stamps.take(text, &mut Vec::new())?;
    lost(stamps.count(), due)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(content: &str, rest: &str) -> String {
        format!(
            r#"{{"id":"chatcmpl-a-1","choices":[{{"message":{{"role":"assistant","content":"{content}"}},"finish_reason":"stop"}}]{rest}}}"#
        )
    }

    #[test]
    fn a_whole_answer_is_counted_by_its_usage() {
        let usage = r#","usage":{"completion_tokens":2}"#;
        let judged = |body: &str| judge_whole(body.as_bytes(), "a-1");
        assert_eq!(judged(&whole("Hello", usage)), Ok(2));
        assert_eq!(judged(&whole("Hello", "")), Ok(0));
        assert_eq!(judged(&whole("tok0 t=1 xtok1 t=1 x", usage)), Ok(2));
        assert_eq!(judged(&whole("tok0 t=1 x", usage)), Err(Wrong::Lost { got: 1, due: 2 }));
        assert_eq!(judged(r#"{"choices":[{"text":"Hello"}]}"#), Ok(0));
    }

    #[test]
    fn a_whole_answer_that_is_none_is_told() {
        let judged = |body: &str| judge_whole(body.as_bytes(), "b-1").unwrap_err();
        let answer = whole("tok0 t=1 ", "");
        assert_eq!(judged(&answer), Wrong::Crosstalk("chatcmpl-a-1".into()));
        assert!(matches!(judged(&answer[..answer.len() - 1]), Wrong::Json(_)));
        assert!(matches!(judged(&format!("{answer}{{}}")), Wrong::Json(_)));
        assert!(matches!(judged(r#"{"choices":[]}"#), Wrong::Json(_)));
        assert!(matches!(judged("{}"), Wrong::Json(_)));
        assert_eq!(judged(r#"{"error":{"message":"no"}}"#), Wrong::ErrorEvent("no".into()));
        assert!(matches!(judged(r#"{"object":"error","message":"no"}"#), Wrong::ErrorEvent(_)));
    }
}
