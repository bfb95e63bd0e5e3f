//! What is asked: the body of a request. Pure.

use serde_json::{Value, json};

use super::lot::Manner;
use super::target::Dialect;

/// Text of which prompts are made.
const FILLER: &str = "The quick brown fox jumps over the lazy dog. ";

/// What all requests have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) dialect: Dialect,
    pub(super) model: String,
    pub(super) max_tokens: u32,
    pub(super) prompt_bytes: usize,
    /// Ask for the usage at the end of a stream.
    pub(super) usage: bool,
}

impl Ask {
    /// The body of the request with this id.
    pub(super) fn body(&self, id: &str, manner: Manner) -> Vec<u8> {
        let stream = manner != Manner::Unary;
        let mut body = json!({ "model": self.model, "stream": stream, "max_tokens": self.max_tokens });
        let prompt = prompt(id, self.prompt_bytes);
        match self.dialect {
            Dialect::Chat => body["messages"] = json!([{ "role": "user", "content": prompt }]),
            Dialect::Completions => body["prompt"] = Value::from(prompt),
        }
        if stream && self.usage {
            body["stream_options"] = json!({ "include_usage": true });
        }
        body.to_string().into_bytes()
    }
}

/// A prompt of so many bytes. It begins with the id, so that no cache of prompts makes the second request another
/// thing than the first.
fn prompt(id: &str, bytes: usize) -> String {
    let begin = format!("{id}: ");
    begin.chars().chain(FILLER.chars().cycle()).take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(dialect: Dialect, manner: Manner, usage: bool) -> Value {
        let ask = Ask { dialect, model: "m".into(), max_tokens: 5, prompt_bytes: 12, usage };
        serde_json::from_slice(&ask.body("r-1", manner)).unwrap()
    }

    #[test]
    fn requests_have_the_form_of_their_endpoint() {
        let messages = json!([{ "role": "user", "content": "r-1: The qui" }]);
        assert_eq!(
            body(Dialect::Chat, Manner::Cancel { at: 3 }, true),
            json!({ "model": "m", "stream": true, "max_tokens": 5, "messages": messages,
                    "stream_options": { "include_usage": true } })
        );
        assert_eq!(
            body(Dialect::Completions, Manner::Unary, true),
            json!({ "model": "m", "stream": false, "max_tokens": 5, "prompt": "r-1: The qui" })
        );
        assert_eq!(body(Dialect::Chat, Manner::Stream, false).get("stream_options"), None);
    }

    #[test]
    fn prompts_have_their_size_and_begin_differently() {
        for bytes in [0, 3, 7, 5_000] {
            assert_eq!(prompt("r-1", bytes).len(), bytes);
        }
        assert_ne!(prompt("r-1", 40), prompt("r-2", 40));
    }
}
