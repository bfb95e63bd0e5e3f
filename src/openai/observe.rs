//! Watching a stream of events go by.
//!
//! The [`Observer`] is told of every event and remembers what matters: first token, usage, finish
//! reason, error, end marker. It is a side observer, never a gate: it changes nothing and cannot fail.
//!
//! The one hard idea: once the first token is known, a frame is parsed only where its name or a cheap
//! search says that it holds something that matters. Ordinary deltas cost three substring searches, or
//! a look at their `event:` line.

use super::answer::{Answer, failure};
use super::dialects::{Dialect, Progress, Reading};
use super::lax;
use super::needles;
use super::seen::{Said, Seen};
use crate::sse::{Ends, Event, EventKind, decode};
use crate::usage::{Source, Usage};

/// What is known of a stream so far.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    dialect: Dialect,
    seen: Seen,
    progress: Progress,
    data_events: u64,
    tokens: u64,
    done: bool,
}

/// What one event was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noted {
    /// It brought the first token.
    pub first_token: bool,
    /// It brought usage and has an empty `choices`: OpenAI's and vLLM's extra frame. Never true of a
    /// frame that carries anything for the client besides.
    pub usage_only: bool,
    /// It has data, but only says that the engine is alive (Anthropic's `ping`).
    pub keep_alive: bool,
}

impl Observer {
    /// An observer of a stream of this dialect.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// Takes note of one event.
    pub fn event(&mut self, event: &Event<'_>) -> Noted {
        match event.kind {
            EventKind::Comment => Noted::default(),
            EventKind::Other => {
                self.dataless(event.raw);
                Noted::default()
            }
            EventKind::Data => {
                self.data_events += 1;
                match (event.raw, event.data()) {
                    (Some(raw), Some(data)) => self.data(raw, &data),
                    _ => self.large(event.ends),
                }
            }
        }
    }

    /// Usage, finish reason and error as far as they have been sent.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// How far the stream came, for the error event that may have to end it.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The engine's figures; where it told none of the completion, once a token has passed, an
    /// estimate: one token an event.
    pub fn usage(&self) -> Option<(Usage, Source)> {
        let usage = match self.seen.usage {
            Some((usage, Source::Running)) if usage.completion.is_none() => usage,
            Some(told) => return Some(told),
            None if self.tokens == 0 => return None,
            None => Usage::default(),
        };
        Some((Usage { completion: Some(self.tokens), ..usage }, Source::Estimated))
    }

    /// Whether a token has passed.
    pub fn has_token(&self) -> bool {
        self.tokens > 0
    }

    /// Whether the end marker has passed: `[DONE]`, or the event that ends an answer of Responses or
    /// Messages. By itself it proves no success, as vLLM sends it after an error.
    pub fn done(&self) -> bool {
        self.done
    }

    /// Data events so far, the end marker included.
    pub fn data_events(&self) -> u64 {
        self.data_events
    }

    fn data(&mut self, raw: &[u8], data: &[u8]) -> Noted {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Noted::default();
        }
        let first = !self.has_token();
        match self.dialect.read(raw, data, first, &mut self.progress) {
            None => self.chunk(data),
            Some(Reading::Unknown) => {
                let text = lax::utf8(data);
                let error = Answer::parse(&text).and_then(|answer| answer.said().error);
                self.said(Said { error, ..Said::default() })
            }
            Some(reading) => self.take(reading),
        }
    }

    fn take(&mut self, reading: Reading) -> Noted {
        match reading {
            Reading::Said(said) => self.said(said),
            Reading::End(said) => {
                self.done = true;
                self.said(said)
            }
            Reading::Token => Noted { first_token: self.token(), ..Noted::default() },
            Reading::KeepAlive => Noted { keep_alive: true, ..Noted::default() },
            Reading::Nothing | Reading::Unknown => Noted::default(),
        }
    }

    /// An event too large to be held: its ends tell what it is where the endpoint has large events
    /// besides tokens; else only text or a tool call grows like that.
    fn large(&mut self, ends: Option<Ends<'_>>) -> Noted {
        let reading = ends.and_then(|ends| self.dialect.read_ends(ends, &mut self.progress));
        match reading {
            Some(reading) => self.take(reading),
            None => Noted { first_token: self.token(), ..Noted::default() },
        }
    }

    /// Reads a frame of chat/completions and its like.
    fn chunk(&mut self, data: &[u8]) -> Noted {
        if self.has_token() && !needles::any(data) {
            self.tokens += 1;
            return Noted::default();
        }
        let text = lax::utf8(data);
        Answer::parse(&text).map(|frame| self.said(frame.said())).unwrap_or_default()
    }

    /// An event without data: older llama.cpp tells an error in a field of its own.
    fn dataless(&mut self, raw: Option<&[u8]>) {
        let Some(raw) = raw else { return };
        let Some(field) = decode::fields(raw).find(|field| field.name == b"error") else { return };
        let text = lax::utf8(field.value);
        let error = serde_json::from_str(&text).ok().and_then(failure);
        self.seen.take(Said { error, ..Said::default() });
    }

    fn said(&mut self, said: Said) -> Noted {
        let (token, usage_only) = (said.token, said.usage_only);
        self.seen.take(said);
        Noted { first_token: token && self.token(), usage_only, keep_alive: false }
    }

    /// Counts a token; true for the first.
    fn token(&mut self) -> bool {
        self.tokens += 1;
        self.tokens == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(observer: &mut Observer, data: &str) -> Noted {
        let raw = format!("data: {data}\n");
        observer.event(&Event { kind: EventKind::Data, raw: Some(raw.as_bytes()), ends: None })
    }

    fn delta(delta: &str) -> String {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
    }

    const FIRST: Noted = Noted { first_token: true, usage_only: false, keep_alive: false };

    #[test]
    fn the_first_token_is_text_reasoning_or_a_tool_call() {
        let tool = r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#;
        for token in [r#"{"content":"x"}"#, r#"{"reasoning":"x"}"#, r#"{"reasoning_content":"x"}"#, tool] {
            let mut observer = Observer::default();
            for empty in
                [r#"{"role":"assistant","content":""}"#, r#"{"content":null}"#, r#"{"tool_calls":[]}"#]
            {
                assert_eq!(tell(&mut observer, &delta(empty)), Noted::default(), "{empty}");
            }
            assert_eq!(tell(&mut observer, &delta(token)), FIRST, "{token}");
            assert_eq!(tell(&mut observer, &delta(token)), Noted::default(), "{token}");
        }
        assert_eq!(tell(&mut Observer::default(), r#"{"choices":[{"text":"x"}]}"#), FIRST);
    }

    #[test]
    fn usage_comes_on_a_frame_of_its_own() {
        let mut observer = Observer::default();
        tell(&mut observer, &delta(r#"{"content":"x"}"#));
        tell(&mut observer, r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#);
        let noted = tell(
            &mut observer,
            r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#,
        );
        assert_eq!(noted, Noted { usage_only: true, ..Noted::default() });
        tell(&mut observer, "[DONE]");
        let usage = Usage { prompt: Some(7), completion: Some(3), total: Some(10), ..Usage::default() };
        assert_eq!(observer.usage(), Some((usage, Source::Reported)));
        assert_eq!(observer.seen().finish_reason.as_deref(), Some("stop"));
        assert_eq!((observer.done(), observer.data_events()), (true, 4));
    }

    #[test]
    fn usage_on_the_last_chunk_is_final_and_is_not_a_frame_to_cut() {
        let mut observer = Observer::default();
        let last =
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":7}}"#;
        assert_eq!(tell(&mut observer, last), Noted::default());
        let usage = Usage { prompt: Some(7), ..Usage::default() };
        assert_eq!(observer.usage(), Some((usage, Source::Reported)));
    }

    #[test]
    fn running_usage_is_overwritten_and_marked() {
        let mut observer = Observer::default();
        for tokens in 1..=3 {
            let frame = format!(
                r#"{{"choices":[{{"delta":{{"content":"x"}}}}],"usage":{{"completion_tokens":{tokens}}}}}"#
            );
            tell(&mut observer, &frame);
        }
        let usage = Usage { completion: Some(3), ..Usage::default() };
        assert_eq!(observer.usage(), Some((usage, Source::Running)));
    }

    #[test]
    fn without_usage_tokens_are_estimated() {
        let mut observer = Observer::default();
        assert_eq!(observer.usage(), None);
        tell(&mut observer, &delta(r#"{"role":"assistant"}"#));
        tell(&mut observer, &delta(r#"{"content":"x"}"#));
        tell(&mut observer, &delta(r#"{"content":"\"usage\": {\"prompt_tokens\": 9}"}"#));
        let usage = Usage { completion: Some(2), ..Usage::default() };
        assert_eq!(observer.usage(), Some((usage, Source::Estimated)));
    }

    #[test]
    fn an_error_then_done_is_an_error() {
        let mut observer = Observer::default();
        let noted = tell(&mut observer, r#"{"error":{"message":"EngineCore died","type":"x","code":500}}"#);
        tell(&mut observer, "[DONE]");
        let code = observer.seen().error.as_ref().and_then(|failure| failure.code.as_deref());
        assert_eq!((noted, code, observer.done()), (Noted::default(), Some("500"), true));
    }

    #[test]
    fn odd_events_are_just_not_observed() {
        let mut observer = Observer::default();
        for odd in ["", "not JSON", "[1]", r#"{"choices":"x"}"#, r#"{"choices":[{"delta":3}]}"#] {
            assert_eq!(tell(&mut observer, odd), Noted::default(), "{odd}");
        }
        let bad = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n";
        assert_eq!(observer.event(&Event { kind: EventKind::Data, raw: Some(bad), ends: None }), FIRST);
        assert_eq!(
            observer.event(&Event { kind: EventKind::Comment, raw: Some(b": x\n"), ends: None }),
            Noted::default()
        );
        assert_eq!(observer.data_events(), 6);
    }

    #[test]
    fn an_event_too_large_to_see_counts_as_a_token() {
        assert_eq!(Observer::default().event(&Event { kind: EventKind::Data, raw: None, ends: None }), FIRST);
    }
}
