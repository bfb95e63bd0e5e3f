//! The events of one stream. Pure.
//!
//! The hard idea: an event is a few constant pieces around one token, so it is appended to the
//! output without a JSON tree, and its size on the wire is exact. Token n of any request reads
//! `tok<n> `, with a hash where tokens prove their place, then an optional time stamp, then filler up to the wanted size. An answer that is no
//! stream has the same content, so one proves the other.

use std::fmt::Write as _;

use serde_json::json;

use super::answer;
use super::plan::Plan;
use super::proof::Chain;
use super::text::{Finish, Form, Text, write_token};

const FILLER: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
const FINISH_NULL: &str = "\"logprobs\":null,\"finish_reason\":null}]";

/// Writes events, each as one HTTP chunk where the framing has chunks.
#[derive(Debug)]
pub(super) struct Events {
    text: Text,
    /// `data: {"id":..,"model":..,`
    prefix: String,
    blank: &'static str,
    chunked: bool,
    event_bytes: usize,
    running_usage: bool,
    /// Over the tokens so far, where they prove their place.
    chain: Option<Chain>,
    /// Memory for the parts that change with each token.
    token: String,
    usage: String,
}

impl Events {
    pub(super) fn new(text: Text, plan: &Plan, chunked: bool, running_usage: bool) -> Self {
        let object = match text.form {
            Form::Completion => "text_completion",
            Form::Chat | Form::ToolCall(_) => "chat.completion.chunk",
        };
        let prefix = format!(
            "data: {{\"id\":{},\"object\":\"{object}\",\"created\":{},\"model\":{},",
            json!(text.id()),
            text.created,
            json!(text.model)
        );
        let blank = if plan.script.crlf { "\r\n\r\n" } else { "\n\n" };
        let (token, usage) = (String::new(), String::new());
        let chain = plan.proof.then(|| Chain::of(&text.request_id));
        let event_bytes = plan.event_bytes;
        Self { text, prefix, blank, chunked, event_bytes, running_usage, chain, token, usage }
    }

    /// What comes before the first token: the role, and a tool call's name without `arguments`.
    pub(super) fn opening(&mut self, out: &mut Vec<u8>) {
        if self.text.form == Form::Completion {
            return;
        }
        self.set_usage(0);
        self.delta(out, "{\"role\":\"assistant\",\"content\":\"\"}");
        if let Form::ToolCall(name) = &self.text.form {
            let call = json!([{"id": self.text.tool_id(), "type": "function", "index": 0,
                "function": {"name": name}}]);
            self.delta(out, &format!("{{\"tool_calls\":{call}}}"));
        }
    }

    /// Token `n`, from 0, stamped with `unix_us` if given.
    pub(super) fn token(&mut self, out: &mut Vec<u8>, n: u32, unix_us: Option<u64>) {
        self.set_token(n, unix_us);
        let (before, after) = self.around(n);
        let size = total(&before) + self.token.len() + total(&after);
        let filler = self.event_bytes.saturating_sub(size);
        self.frame(out, size + filler, |out| {
            extend(out, &before);
            out.extend_from_slice(self.token.as_bytes());
            fill(filler, |part| out.extend_from_slice(part.as_bytes()));
            extend(out, &after);
        });
    }

    /// The content of all tokens together, as a client puts the events together.
    pub(super) fn content(&mut self, unix_us: Option<u64>) -> String {
        let mut content = String::new();
        for n in 0..self.text.tokens {
            self.set_token(n, unix_us);
            let (before, after) = self.around(n);
            let size = total(&before) + self.token.len() + total(&after);
            content.push_str(&self.token);
            fill(self.event_bytes.saturating_sub(size), |part| content.push_str(part));
        }
        content
    }

    /// Over all tokens so far, where they prove their place.
    pub(super) fn chain(&self) -> Option<Chain> {
        self.chain
    }

    /// The event with the finish reason.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.set_usage(self.text.tokens);
        let what = match self.text.form {
            Form::Completion => "\"text\":\"\"",
            Form::Chat | Form::ToolCall(_) => "\"delta\":{}",
        };
        let reason = self.text.finish.as_str();
        let choices =
            format!("\"choices\":[{{\"index\":0,{what},\"logprobs\":null,\"finish_reason\":\"{reason}\"}}]");
        self.whole(out, &[&self.prefix, &choices, &self.usage, "}", self.blank]);
    }

    /// The event that carries the usage, and no choice.
    pub(super) fn usage(&self, out: &mut Vec<u8>) {
        let usage = answer::usage(self.text.prompt_tokens, self.text.tokens).to_string();
        self.whole(out, &[&self.prefix, "\"choices\":[],\"usage\":", &usage, "}", self.blank]);
    }

    /// An error in the middle of a stream.
    pub(super) fn error(&self, out: &mut Vec<u8>) {
        let error = answer::error_body(500, "the engine failed while generating", None).to_string();
        self.whole(out, &["data: ", &error, self.blank]);
    }

    /// `[DONE]`.
    pub(super) fn done(&self, out: &mut Vec<u8>) {
        self.whole(out, &["data: [DONE]", self.blank]);
    }

    /// A comment.
    pub(super) fn comment(&self, out: &mut Vec<u8>) {
        self.whole(out, &[": keep-alive", self.blank]);
    }

    /// The end of the body.
    pub(super) fn end(&self, out: &mut Vec<u8>) {
        if self.chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }

    fn set_token(&mut self, n: u32, unix_us: Option<u64>) {
        self.set_usage(n + 1);
        self.token.clear();
        write_token(&mut self.token, n, self.chain, unix_us);
        self.chain = self.chain.map(|chain| chain.and(&self.token));
    }

    fn set_usage(&mut self, tokens: u32) {
        self.usage.clear();
        if self.running_usage {
            let usage = answer::usage(self.text.prompt_tokens, tokens);
            let written = write!(self.usage, ",\"usage\":{usage}");
            debug_assert!(written.is_ok(), "a String takes all it is given");
        }
    }

    /// The pieces before and after the text of token `n`. The first and the last token of a tool
    /// call open and close the JSON of its arguments.
    fn around(&self, n: u32) -> ([&str; 3], [&str; 6]) {
        let (open, close) = match self.text.form {
            Form::Chat => ("\"choices\":[{\"index\":0,\"delta\":{\"content\":\"", "\"},"),
            Form::Completion => ("\"choices\":[{\"index\":0,\"text\":\"", "\","),
            Form::ToolCall(_) => (
                "\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\
                 \"function\":{\"arguments\":\"",
                "\"}}]},",
            ),
        };
        let is_call = matches!(self.text.form, Form::ToolCall(_));
        let closes = is_call && n + 1 == self.text.tokens && self.text.finish == Finish::ToolCalls;
        let begin = if is_call && n == 0 { "{\\\"text\\\": \\\"" } else { "" };
        let end = if closes { "\\\"}" } else { "" };
        ([&self.prefix, open, begin], [end, close, FINISH_NULL, &self.usage, "}", self.blank])
    }

    fn delta(&self, out: &mut Vec<u8>, delta: &str) {
        let open = "\"choices\":[{\"index\":0,\"delta\":";
        self.whole(out, &[&self.prefix, open, delta, ",", FINISH_NULL, &self.usage, "}", self.blank]);
    }

    fn whole(&self, out: &mut Vec<u8>, pieces: &[&str]) {
        self.frame(out, total(pieces), |out| extend(out, pieces));
    }

    fn frame(&self, out: &mut Vec<u8>, size: usize, body: impl FnOnce(&mut Vec<u8>)) {
        if self.chunked {
            out.extend_from_slice(format!("{size:x}\r\n").as_bytes());
        }
        body(out);
        if self.chunked {
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn total(pieces: &[&str]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

fn extend(out: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}

fn fill(mut missing: usize, mut push: impl FnMut(&str)) {
    while missing > 0 {
        let part = missing.min(FILLER.len());
        push(&FILLER[..part]);
        missing -= part;
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
