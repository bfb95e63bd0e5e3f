//! What a client was told by one simulated stream, with every token accounted for.
//!
//! Token n of any simulated answer reads `tok<n> `, and each event carries the id of its request, so a
//! token that is lost, doubled, out of order or another request's is a panic here, not a statistic.

use serde_json::Value;

use super::client::{Answer, End};
use super::engine::TOKENS;
use super::sse;

/// One stream, read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Told {
    /// Tokens 0 to this, each once and in order.
    pub(crate) tokens: usize,
    /// The code of the error event, which nothing follows.
    pub(crate) error: Option<String>,
    /// The engine's finish reason came.
    pub(crate) finished: bool,
    /// `[DONE]` came.
    pub(crate) done: bool,
}

impl Told {
    /// All that a healthy engine has to say.
    pub(crate) fn whole() -> Self {
        Self { tokens: TOKENS, error: None, finished: true, done: true }
    }

    /// So many tokens, then an error event, and no end marker.
    pub(crate) fn cut(tokens: usize, code: &str) -> Self {
        Self { tokens, error: Some(code.to_owned()), ..Self::default() }
    }

    /// Reads a stream that ended cleanly.
    pub(crate) fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.end, End::Clean, "{}", answer.text());
        let id = answer.head.get("x-request-id").expect("each answer names its request");
        Self::read(&answer.body, id)
    }

    /// Reads the whole events among these bytes, which answer request `id`.
    pub(crate) fn read(body: &[u8], id: &str) -> Self {
        let mut told = Self::default();
        for data in sse::data(body) {
            assert!(!told.done && told.error.is_none(), "nothing may follow: {data}");
            if data == "[DONE]" {
                told.done = true;
                continue;
            }
            let event: Value = serde_json::from_str(&data).unwrap_or_else(|e| panic!("{e}: {data}"));
            match event["error"]["code"].as_str() {
                Some(code) => told.error = Some(code.to_owned()),
                None => told.take(&event, id),
            }
        }
        told
    }

    fn take(&mut self, event: &Value, id: &str) {
        assert_eq!(event["id"], format!("chatcmpl-{id}"), "an event of another request: {event}");
        let choice = &event["choices"][0];
        self.finished |= choice["finish_reason"].is_string();
        let content = choice["delta"]["content"].as_str().unwrap_or_default();
        for token in content.split_whitespace() {
            assert_eq!(token, format!("tok{}", self.tokens), "lost, doubled or out of order: {event}");
            self.tokens += 1;
        }
    }
}

/// A whole answer that is no stream: nothing but the tokens of this request.
pub(crate) fn whole_json(answer: &Answer) {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.end, End::Clean, "{}", answer.text());
    let id = answer.head.get("x-request-id").expect("each answer names its request");
    let body = answer.json();
    assert_eq!(body["id"], format!("chatcmpl-{id}"), "the answer of another request: {body}");
    let expected: String = (0..TOKENS).map(|n| format!("tok{n} ")).collect();
    assert_eq!(body["choices"][0]["message"]["content"], expected);
}
