//! The few fields of a request body that the gateway acts on.
//!
//! [`peek`] reads a body once and keeps slices; what it does not act on is checked for its lexical
//! form only and otherwise left to the engine.
//!
//! The one hard idea: the gateway and the engine must read the same thing. So what parsers disagree
//! on is refused where we act on it: a name that stands twice, a byte order mark, deep nesting.

mod invalid;

use std::ops::Range;

pub use invalid::Invalid;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::lax;
use super::members::{Members, span};
use super::places::Places;
use super::walk::{Lost, walk};
pub use super::walk::{MEMBERS_MAX, NUMBER_BYTES_MAX};
use super::wanted::Wanted;

/// Deepest nesting of a body, its outermost object being 1: far beyond any real request, far below
/// where engines' parsers give up.
pub const DEPTH_MAX: usize = 64;
/// Longest text kept of a field, in characters.
pub const TEXT_CHARS_MAX: usize = 256;

/// What a request body says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// Where the outermost object stands in the body.
    pub object: Range<usize>,
    /// The model's name, its first 256 characters.
    pub model: Option<Text>,
    /// Whether the client asks for a stream.
    pub stream: Option<bool>,
    /// Where the value of `stream_options` stands; it is an object or `null`.
    pub stream_options: Option<Range<usize>>,
    /// `stream_options.include_usage`.
    pub include_usage: Flag,
    /// `stream_options.continuous_usage_stats`, of vLLM and SGLang: usage so far on each event.
    pub continuous_usage: Flag,
    /// `max_tokens`; a negative number, llama.cpp's "no limit", counts as absent.
    pub max_tokens: Option<u64>,
    /// `max_completion_tokens`, read like `max_tokens`.
    pub max_completion_tokens: Option<u64>,
    /// `max_output_tokens`, absent where it is no count.
    pub max_output_tokens: Option<u64>,
    /// `n`, absent where it is no count.
    pub n: Option<u64>,
    /// `best_of`: answers that are generated, of which `n` are told.
    pub best_of: Option<u64>,
    /// `n_predict`, llama.cpp's `max_tokens`.
    pub n_predict: Option<u64>,
    /// Prompts of a `prompt` that is a list of several.
    pub prompts: Option<u64>,
    /// `user`, absent where it is no string or longer than 256 characters.
    pub user: Option<Text>,
    /// Where the wanted pointers lead.
    pub places: Places,
}

/// A switch in a body and where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flag {
    /// It is on.
    pub is_on: bool,
    /// Where its value stands, `null` included.
    pub span: Option<Range<usize>>,
}

impl Flag {
    fn read(text: &str, value: Option<&RawValue>, field: &'static str) -> Result<Self, Invalid> {
        let is_on = flag(value, field)? == Some(true);
        Ok(Self { is_on, span: value.map(|value| span(text, value)) })
    }
}

/// A string in a body and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The decoded string.
    pub value: String,
    /// Its bytes in the body, quotes included.
    pub span: Range<usize>,
}

impl Peek {
    /// Most tokens that the answer may have, whatever its endpoint calls them.
    pub fn tokens_max(&self) -> Option<u64> {
        let limits = [self.max_completion_tokens, self.max_tokens, self.max_output_tokens, self.n_predict];
        limits.into_iter().flatten().max()
    }

    /// Answers that are generated for it, if it says so.
    pub fn answers(&self) -> Option<u64> {
        let each = self.n.max(self.best_of);
        match self.prompts {
            Some(prompts) => Some(prompts.saturating_mul(each.unwrap_or(1).max(1))),
            None => each,
        }
    }
}

/// Reads a request body, and what of it is `wanted`: one parse for the form and the fields, one
/// walk from string to string for the bounds and for what is wanted.
///
/// A field that is `null` counts as absent.
///
/// # Errors
/// [`Invalid`] where the body is no JSON object, is out of the bounds [`DEPTH_MAX`], [`MEMBERS_MAX`] and
/// [`NUMBER_BYTES_MAX`], or has a field of the wrong type or twice among those acted on.
pub fn peek(body: &[u8], wanted: &Wanted) -> Result<Peek, Invalid> {
    let text = object_text(body)?;
    let members = members(text, NAMES)?;
    let start = body.len() - body.trim_ascii_start().len();
    let (places, end) = walk(body, start, DEPTH_MAX, wanted).map_err(|lost| match lost {
        Lost::TooDeep => Invalid::TooDeep,
        Lost::TooMany => Invalid::TooMany,
        Lost::LongNumber => Invalid::LongNumber,
        Lost::Twice(pointer) => Invalid::Twice { pointer },
    })?;
    let [model, stream, options, max, max_completion, max_output, n, best_of, n_predict, _, user] = members;
    let mut peek = Peek {
        object: start..end,
        model: model_name(text, model)?,
        stream: flag(stream, "stream")?,
        stream_options: options.map(|value| span(text, value)),
        include_usage: Flag::default(),
        continuous_usage: Flag::default(),
        max_tokens: limit(max, "max_tokens")?,
        max_completion_tokens: limit(max_completion, "max_completion_tokens")?,
        max_output_tokens: lax::count(max_output),
        n: limit(n, "n")?,
        best_of: limit(best_of, "best_of")?,
        n_predict: limit(n_predict, "n_predict")?,
        prompts: prompts(&places, wanted),
        user: user.and_then(|value| short_string(text, value)),
        places,
    };
    if let Some(options) = not_null(options) {
        if !options.get().starts_with('{') {
            return Err(Invalid::Type { field: "stream_options", must: "an object" });
        }
        let [usage, running] = self::members(options.get(), ["include_usage", "continuous_usage_stats"])?;
        peek.include_usage = Flag::read(text, usage, "stream_options.include_usage")?;
        peek.continuous_usage = Flag::read(text, running, "stream_options.continuous_usage_stats")?;
    }
    Ok(peek)
}

/// Members that are acted on, whatever the configuration says.
pub const NAMES: [&str; 11] = [
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "best_of",
    "n_predict",
    "prompt",
    "user",
];

/// How many prompts a list has that may have several. Where nobody can say, as many as it has elements.
fn prompts(places: &Places, wanted: &Wanted) -> Option<u64> {
    let elements = places.elements(&wanted.pointers, wanted.prompt?)?;
    let may_be_several = elements.count > 0 && !elements.are_tokens();
    may_be_several.then(|| elements.prompts().unwrap_or(elements.count as u64))
}

/// The body as text that begins with `{`.
fn object_text(body: &[u8]) -> Result<&str, Invalid> {
    let not_json = |reason: String| Invalid::NotJson { reason };
    if body.starts_with(&[0xEF, 0xBB, 0xBF]) {
        return Err(not_json("it begins with a byte order mark".into()));
    }
    let text = std::str::from_utf8(body)
        .map_err(|error| not_json(format!("byte {} is not UTF-8", error.valid_up_to() + 1)))?;
    if text.trim_ascii_start().starts_with('{') {
        return Ok(text);
    }
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Err(Invalid::NotObject),
        Err(error) => Err(not_json(error.to_string())),
    }
}

fn members<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
) -> Result<[Option<&'a RawValue>; N], Invalid> {
    // The object is known to be one, so these are errors of syntax, whose texts quote nothing.
    let members =
        Members::read(text, names).map_err(|error| Invalid::NotJson { reason: error.to_string() })?;
    match members.twice {
        Some(index) => Err(Invalid::Duplicate { field: names[index] }),
        None => Ok(members.values),
    }
}

fn not_null(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get() != "null")
}

fn model_name(text: &str, value: Option<&RawValue>) -> Result<Option<Text>, Invalid> {
    let Some(value) = not_null(value) else { return Ok(None) };
    let mut name: String =
        serde_json::from_str(value.get()).map_err(|_| Invalid::Type { field: "model", must: "a string" })?;
    if let Some((end, _)) = name.char_indices().nth(TEXT_CHARS_MAX) {
        name.truncate(end);
    }
    Ok(Some(Text { value: name, span: span(text, value) }))
}

fn flag(value: Option<&RawValue>, field: &'static str) -> Result<Option<bool>, Invalid> {
    match value.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Invalid::Type { field, must: "true or false" }),
    }
}

fn limit(value: Option<&RawValue>, field: &'static str) -> Result<Option<u64>, Invalid> {
    let Some(value) = not_null(value) else { return Ok(None) };
    match lax::count(Some(value)) {
        None if value.get().starts_with('-') => Ok(None),
        None => Err(Invalid::Type { field, must: "a whole number" }),
        count => Ok(count),
    }
}

/// An identity is used whole or not at all: cut short, two of them could become one.
fn short_string(text: &str, value: &RawValue) -> Option<Text> {
    let decoded: String = lax::read(Some(value))?;
    let short = decoded.char_indices().nth(TEXT_CHARS_MAX).is_none();
    short.then(|| Text { value: decoded, span: span(text, value) })
}

#[cfg(test)]
mod tests;
