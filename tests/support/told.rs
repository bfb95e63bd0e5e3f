//! What a client was told by one simulated stream, with every token accounted for.
//!
//! Token n of a simulated answer reads `tok<n>#<hash> `, where the hash is over the id of its request and all tokens
//! before it, and each event carries that id: a token that is lost, doubled, out of order or another request's is a
//! panic here, not a statistic. What came is kept, to be held against the engine's own account
//! ([`Row::settled`](super::Row::settled)).

use serde_json::Value;

use super::client::{Answer, End};
use super::engine::TOKENS;
use super::score::{Proof, tally};
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
        let (mut told, mut chain) = (Self::default(), Chain::of(id));
        for data in sse::data(body) {
            assert!(!told.done && told.error.is_none(), "nothing may follow: {data}");
            if data == "[DONE]" {
                told.done = true;
                continue;
            }
            let event: Value = serde_json::from_str(&data).unwrap_or_else(|e| panic!("{e}: {data}"));
            match event["error"]["code"].as_str() {
                Some(code) => told.error = Some(code.to_owned()),
                None => told.take(&event, id, &mut chain),
            }
        }
        keep(id, told.tokens, chain, told.done);
        told
    }

    fn take(&mut self, event: &Value, id: &str, chain: &mut Chain) {
        assert_eq!(event["id"], format!("chatcmpl-{id}"), "an event of another request: {event}");
        let choice = &event["choices"][0];
        self.finished |= choice["finish_reason"].is_string();
        let content = choice["delta"]["content"].as_str().unwrap_or_default();
        for token in content.split_inclusive(' ') {
            assert_eq!(token, chain.token(self.tokens), "lost, doubled or out of order: {event}");
            chain.pass(token);
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
    let mut chain = Chain::of(id);
    let expected: String = (0..TOKENS)
        .map(|n| {
            let token = chain.token(n);
            chain.pass(&token);
            token
        })
        .collect();
    assert_eq!(body["choices"][0]["message"]["content"], expected);
    keep(id, TOKENS, chain, true);
}

fn keep(id: &str, tokens: usize, chain: Chain, whole: bool) {
    let hash = format!("{:016x}", chain.0);
    tally(|tally| tally.proofs.push(Proof { request_id: id.to_owned(), tokens: tokens as u64, hash, whole }));
}

/// The client's own reckoning of the hash that tokens carry: FNV-1a, 64 bits.
#[derive(Debug, Clone, Copy)]
struct Chain(u64);

impl Chain {
    fn of(id: &str) -> Self {
        let mut chain = Self(14_695_981_039_346_656_037);
        chain.pass(id);
        chain
    }

    /// What token n has to be.
    fn token(self, n: usize) -> String {
        format!("tok{n}#{:016x} ", self.0)
    }

    fn pass(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
        }
    }
}
