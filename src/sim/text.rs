//! What an answer says, apart from how it is sent. Pure.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::answer;
use super::proof::Chain;

/// Which endpoint's answer this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Chat,
    /// A call of this tool; its one argument `text` is the answer.
    ToolCall(String),
    Completion,
}

/// How an answer came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
    ToolCalls,
}

impl Finish {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// What an answer is made of.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) form: Form,
    pub(super) request_id: String,
    pub(super) model: String,
    /// Unix seconds.
    pub(super) created: u64,
    pub(super) prompt_tokens: u32,
    /// Tokens of this answer.
    pub(super) tokens: u32,
    pub(super) finish: Finish,
}

impl Text {
    pub(super) fn id(&self) -> String {
        let kind = if self.form == Form::Completion { "cmpl" } else { "chatcmpl" };
        format!("{kind}-{}", self.request_id)
    }

    pub(super) fn tool_id(&self) -> String {
        format!("chatcmpl-tool-{}", self.request_id)
    }

    /// The answer that is no stream, with this content.
    pub(super) fn whole(&self, content: &str) -> Value {
        let mut choice = match &self.form {
            Form::Completion => json!({"text": content}),
            Form::Chat => json!({"message": {"role": "assistant", "content": content, "tool_calls": []}}),
            Form::ToolCall(name) => {
                let arguments = json!({"text": content}).to_string();
                let call = json!({"id": self.tool_id(), "type": "function",
                    "function": {"name": name, "arguments": arguments}});
                json!({"message": {"role": "assistant", "content": null, "tool_calls": [call]}})
            }
        };
        choice["index"] = json!(0);
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = json!(self.finish.as_str());
        let object = if self.form == Form::Completion { "text_completion" } else { "chat.completion" };
        json!({"id": self.id(), "object": object, "created": self.created, "model": self.model,
            "choices": [choice], "usage": answer::usage(self.prompt_tokens, self.tokens)})
    }
}

/// Appends the text of token `n`, with the chain up to it and stamped with `unix_us` if given.
pub(super) fn write_token(out: &mut String, n: u32, chain: Option<Chain>, unix_us: Option<u64>) {
    let named = match chain {
        None => write!(out, "tok{n} "),
        Some(chain) => write!(out, "tok{n}#{chain} "),
    };
    let stamped = unix_us.map_or(Ok(()), |unix_us| write!(out, "t={unix_us} "));
    debug_assert!(named.and(stamped).is_ok(), "a String takes all it is given");
}
