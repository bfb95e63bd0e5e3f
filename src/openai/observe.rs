//! Watching a stream of events go by.
//!
//! The [`Observer`] is told of every event and remembers what matters: first token, usage, finish
//! reason, error, end marker. It is a side observer, never a gate: it changes nothing and cannot fail.
//!
//! The one hard idea: once the first token is known, a frame is parsed only where its name or a cheap
//! search says that it holds something that matters. Ordinary deltas cost one search for three words, or a look at their
//! `event:` line.

use super::answer::{Answer, failure};
use super::choices::{Choices, Met};
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
    choices: Choices,
    /// Where the events alone say when the answer is over.
    met: Option<Met>,
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
    /// Where it has usage.
    pub usage: UsagePlace,
    /// It has data, but only says that the engine is alive (Anthropic's `ping`).
    pub keep_alive: bool,
}

/// Where an event has usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsagePlace {
    /// Nowhere.
    #[default]
    Nowhere,
    /// Beside what else it brings.
    Beside,
    /// It is a frame of usage with an empty `choices`, OpenAI's and vLLM's: there is nothing else in it for the client.
    Frame,
}

impl Observer {
    /// An observer of a stream of this dialect.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// The answer ends with its connection, which says nothing: every choice is looked out for from now on. That costs a
    /// search an event, which others do without.
    pub fn look_for_choices(&mut self) {
        self.met.get_or_insert_default();
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
            Some((usage, _)) if usage.completion.or(usage.total).is_none() && self.has_token() => usage,
            Some(told) => return Some(told),
            None if self.tokens == 0 => return None,
            None => Usage::default(),
        };
        Some((Usage { completion: Some(self.tokens), ..usage }, Source::Estimated))
    }

    /// Tokens that have passed: one an event that brings some.
    pub fn tokens(&self) -> u64 {
        self.tokens
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

    /// Whether the answer has said that it is over: by its end marker, by why it stopped (of several choices each that
    /// has begun), or by an error.
    pub fn is_over(&self) -> bool {
        let stopped = self.seen.finish_reason.as_deref().is_some_and(|reason| !reason.is_empty());
        self.done || (stopped && self.choices.have_ended()) || self.seen.error.is_some()
    }

    /// Takes the figures of another observer, which has read one event more than anybody will be given.
    pub fn take_figures(&mut self, further: &Self) {
        self.seen.usage = further.seen.usage;
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

    fn has_new_choice(&mut self, data: &[u8]) -> bool {
        self.met.as_mut().is_some_and(|met| met.is_new(data))
    }

    /// Reads a frame of chat/completions and its like.
    fn chunk(&mut self, data: &[u8]) -> Noted {
        if self.has_token() && !needles::any(data) && !self.has_new_choice(data) {
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
        let usage = match (said.usage_only, said.usage.is_empty()) {
            (true, _) => UsagePlace::Frame,
            (false, false) => UsagePlace::Beside,
            (false, true) => UsagePlace::Nowhere,
        };
        let token = said.token;
        self.choices.take(said.choices);
        self.seen.take(said);
        Noted { first_token: token && self.token(), usage, keep_alive: false }
    }

    /// Counts a token; true for the first.
    fn token(&mut self) -> bool {
        self.tokens += 1;
        self.tokens == 1
    }
}

#[cfg(test)]
mod tests;
