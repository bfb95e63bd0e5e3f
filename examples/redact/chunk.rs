//! The form of a stream's chunks, as far as the redactor reads it: which texts a choice brings, and how to write one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) choices: Option<Vec<Choice<'a>>>,
}

#[derive(Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(borrow)]
    delta: Option<BTreeMap<String, &'a RawValue>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    pub(crate) finish_reason: Option<IgnoredAny>,
    /// Texts once more, letter by letter or as a whole: not read here.
    logprobs: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    function: Option<BTreeMap<String, &'a RawValue>>,
}

/// A text of a choice.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    Text,
    Delta(String),
    Arguments(u64),
}

impl<'a> Choice<'a> {
    /// The pieces of texts that it brings; `None` where its form is not known.
    pub(crate) fn texts(&self) -> Option<BTreeMap<Field, &'a RawValue>> {
        if self.logprobs.is_some() || self.message.is_some() {
            return None;
        }
        let mut texts: BTreeMap<Field, &RawValue> =
            self.text.iter().map(|text| (Field::Text, *text)).collect();
        for (name, value) in self.delta.iter().flatten() {
            if name == "tool_calls" {
                let calls: Option<Vec<ToolCall<'a>>> = serde_json::from_str(value.get()).ok()?;
                for call in calls.unwrap_or_default() {
                    let arguments = call.function.and_then(|mut function| function.remove("arguments"));
                    if let Some(arguments) = arguments
                        && texts.insert(Field::Arguments(call.index), arguments).is_some()
                    {
                        return None;
                    }
                }
            } else if name != "role" {
                texts.insert(Field::Delta(name.clone()), value);
            }
        }
        let is_empty = |value: &RawValue| matches!(value.get(), "[]" | "{}");
        if texts.values().any(|value| value.get().starts_with(['[', '{']) && !is_empty(value)) {
            return None;
        }
        texts.retain(|_, value| value.get().starts_with('"'));
        Some(texts)
    }
}

impl Field {
    /// A choice that brings this piece of the text.
    pub(crate) fn choice(&self, index: u64, piece: &str) -> Value {
        match self {
            Self::Text => json!({ "index": index, "text": piece, "finish_reason": null }),
            Self::Delta(name) => json!({ "index": index, "delta": { name: piece }, "finish_reason": null }),
            Self::Arguments(call) => {
                let call = json!({ "index": call, "function": { "arguments": piece } });
                json!({ "index": index, "delta": { "tool_calls": [call] }, "finish_reason": null })
            }
        }
    }
}
