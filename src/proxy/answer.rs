//! The answer on its way to the client: how its chunks are treated, and what was seen of it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use pingora::Result;

use super::exchange::Exchange;
use super::hooked::{Whole, Withheld};
use super::peer;
use super::stream::Stream;
use crate::openai::{self, Unary};
use crate::rejection::Rejection;
use crate::session_map::Mention;
use crate::usage::{Source, Usage};

/// How the body is treated.
#[derive(Default)]
pub(super) enum Mode {
    /// Chunks pass as they are.
    #[default]
    Pass,
    /// A JSON answer: chunks pass, and what matters of them is kept to be read at the end.
    Observe(Unary),
    /// An event stream: whole events pass.
    Reframe(Box<Stream>),
}

/// The answer on its way.
#[derive(Default)]
pub(super) struct Answer {
    /// How its body is treated.
    pub(super) mode: Mode,
    /// Holds its body for an observer, where it is JSON and has one.
    pub(super) whole: Option<Box<Whole>>,
    /// Body bytes given to the client.
    pub(super) bytes: u64,
    /// The engine's own request id.
    pub(super) upstream_id: Option<String>,
    /// Set while a refusal is searched for the word "session".
    pub(super) mention: Option<Mention>,
    /// What a JSON answer said.
    unary: Option<openai::Seen>,
}

/// Lets a chunk of a body pass that is no event stream.
///
/// # Errors
/// Its observer may not see it.
pub(super) fn pass(body: &mut Option<Bytes>, end: bool, exchange: &mut Exchange) -> Result<()> {
    let has_data = body.as_ref().is_some_and(|body| !body.trim_ascii_start().is_empty());
    if let Some(attempt) = exchange.attempt.as_ref().filter(|_| has_data) {
        attempt.link.mark_bytes(Instant::now());
    }
    exchange.answer.note(body.as_ref(), end);
    if let Some(whole) = &mut exchange.answer.whole {
        let out = whole.take(body.take(), end);
        *body = out.map_err(|Withheld| peer::refuse(exchange, Rejection::Withheld))?;
    }
    Ok(())
}

impl Answer {
    /// Whether it is an event stream.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.mode, Mode::Reframe(_))
    }

    /// Notes a chunk of a body that is not reframed.
    fn note(&mut self, chunk: Option<&Bytes>, end: bool) {
        if let Mode::Observe(unary) = &mut self.mode {
            unary.push(chunk.map_or(&[], |chunk| &chunk[..]));
            if end {
                self.unary = Some(std::mem::take(unary).finish());
                self.mode = Mode::Pass;
            }
        }
    }

    /// What has been seen of it.
    pub(super) fn seen(&self) -> Option<&openai::Seen> {
        match &self.mode {
            Mode::Reframe(stream) => Some(stream.observer.seen()),
            _ => self.unary.as_ref(),
        }
    }

    /// Usage, and how it is known.
    pub(super) fn usage(&self) -> Option<(Usage, Source)> {
        match &self.mode {
            Mode::Reframe(stream) => stream.observer.usage(),
            _ => self.unary.as_ref().and_then(|seen| seen.usage),
        }
    }

    /// Tokens that have been seen on their way: those of a stream, one an event.
    pub(super) fn tokens(&self) -> u64 {
        match &self.mode {
            Mode::Reframe(stream) => stream.observer.tokens(),
            _ => 0,
        }
    }

    /// Data events given to the client.
    pub(super) fn events(&self) -> u64 {
        match &self.mode {
            Mode::Reframe(stream) => stream.observer.data_events(),
            _ => 0,
        }
    }

    /// Heartbeats given to the client.
    pub(super) fn heartbeats(&self) -> u64 {
        match &self.mode {
            Mode::Reframe(stream) => stream.heartbeats,
            _ => 0,
        }
    }

    /// When the first data event went by.
    pub(super) fn first_event(&self) -> Option<Instant> {
        match &self.mode {
            Mode::Reframe(stream) => stream.first_event,
            _ => None,
        }
    }

    /// The time from the first token to the last, of a stream that has had one.
    pub(super) fn generating(&self) -> Option<Duration> {
        match &self.mode {
            Mode::Reframe(stream) => stream.generating(),
            _ => None,
        }
    }

    /// When the first token went by.
    pub(super) fn first_token(&self) -> Option<Instant> {
        match &self.mode {
            Mode::Reframe(stream) => stream.first_token,
            _ => None,
        }
    }
}
