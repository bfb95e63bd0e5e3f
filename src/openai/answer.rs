//! What a frame of a stream, or a whole JSON answer, says besides its text: usage, finish reason, error.
//!
//! One shape serves both, and every endpoint: an answer of Responses or Messages has other members than
//! one of chat/completions, never the same with another meaning. Reading never fails: what is odd is
//! absent. Most answers are as they should be and are read in one pass; only one that is not is read as text
//! first and member by member then.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::brings::Brings;
use super::choices::Choices;
use super::figures;
use super::lax;
use super::seen::{Failure, Said, Seen};

/// Reads a whole JSON answer. Blank lines before the JSON are skipped: DeepSeek sends them while a
/// request is queued (api-docs.deepseek.com, rate limit page).
pub fn observe_unary(body: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let text = lax::utf8(body);
    if let Some(answer) = Answer::parse(&text) {
        seen.take(Said { is_final: true, ..answer.said() });
    }
    seen
}

/// The top level of an answer or a frame. Choices and usage are `None` where there are none, or where they
/// cannot be read.
pub(super) struct Answer<'a>(Fields<'a, Vec<Choice<'a>>, figures::Raw<'a>>);

impl<'a> Answer<'a> {
    /// `None` where the text is not a JSON object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let fields = serde_json::from_str(text).ok();
        fields.or_else(|| serde_json::from_str(text).ok().map(Fields::read)).map(Self)
    }

    /// All that it says.
    pub(super) fn said(&self) -> Said {
        let usage = figures::told(self.0.usage.as_ref());
        let error = self.error();
        let has_no_choices = self.0.choices.as_ref().is_some_and(Vec::is_empty);
        let usage_only = has_no_choices && !usage.is_empty() && error.is_none();
        Said {
            token: self.has_token(),
            usage_only,
            usage,
            is_final: usage_only || self.is_last(),
            choices: self.noted(),
            finish_reasons: self.finish_reasons(),
            error,
        }
    }

    /// Whether it brings a piece of an answer.
    fn has_token(&self) -> bool {
        let Fields { delta, content, text, .. } = &self.0;
        self.choices().iter().any(Choice::has_token)
            || [delta, content, text].into_iter().any(|piece| lax::is_present(*piece))
    }

    /// Whether a choice ends here, or the only text of a transcription (`transcript.text.done`).
    fn is_last(&self) -> bool {
        let kind: Option<Cow<'_, str>> = lax::read(self.0.kind);
        self.choices().iter().any(|choice| lax::is_present(choice.finish_reason))
            || kind.is_some_and(|kind| kind.ends_with(".done"))
    }

    fn choices(&self) -> &[Choice<'a>] {
        self.0.choices.as_deref().unwrap_or_default()
    }

    /// One without an index is the only one.
    fn noted(&self) -> Choices {
        self.choices().iter().fold(Choices::default(), |mut noted, choice| {
            noted.note(lax::count(choice.index).unwrap_or(0), lax::is_present(choice.finish_reason));
            noted
        })
    }

    /// Of its choices; of the whole for Messages (`stop_reason`) and Responses (`incomplete_details`).
    fn finish_reasons(&self) -> Vec<Box<str>> {
        let incomplete = lax::read::<Incomplete<'_>>(self.0.incomplete_details);
        let of_the_whole = [self.0.stop_reason, incomplete.and_then(|details| details.reason)];
        let of_choices = self.choices().iter().map(|choice| choice.finish_reason);
        of_choices.chain(of_the_whole).filter_map(lax::short_text).collect()
    }

    fn error(&self) -> Option<Failure> {
        if let Some(failure) = failure(self.0.error) {
            return Some(failure);
        }
        let object: Option<Cow<'_, str>> = lax::read(self.0.object);
        (object.as_deref() == Some("error"))
            .then(|| Failure { code: lax::short_text(self.0.code), kind: lax::short_text(self.0.kind) })
    }
}

/// The error object that stands at `error`, which may also be a bare string.
pub(super) fn failure(error: Option<&RawValue>) -> Option<Failure> {
    let of = |fields: ErrorFields<'_>| Failure {
        code: lax::short_text(fields.code),
        kind: lax::short_text(fields.kind),
    };
    lax::is_present(error).then(|| lax::read(error).map(of).unwrap_or_default())
}

#[derive(Deserialize)]
struct Fields<'a, C, U> {
    choices: Option<C>,
    usage: Option<U>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    /// Text of a transcription's event (`transcript.text.delta`).
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    /// Text of llama.cpp's `/completion`.
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    /// Text of SGLang's `/generate`.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
}

impl<'a> Fields<'a, &'a RawValue, &'a RawValue> {
    /// Reads choices and usage each for itself.
    fn read(self) -> Fields<'a, Vec<Choice<'a>>, figures::Raw<'a>> {
        Fields {
            choices: lax::read(self.choices),
            usage: lax::read(self.usage),
            error: self.error,
            object: self.object,
            code: self.code,
            kind: self.kind,
            delta: self.delta,
            content: self.content,
            text: self.text,
            stop_reason: self.stop_reason,
            incomplete_details: self.incomplete_details,
        }
    }
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    delta: Option<Brings>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    /// What vLLM tells besides, where it is asked to: a token may have no text yet.
    #[serde(borrow)]
    token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

impl Choice<'_> {
    fn has_token(&self) -> bool {
        [self.text, self.token_ids].into_iter().any(lax::is_present)
            || self.delta.as_ref().is_some_and(|delta| delta.anything)
    }
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
