//! Judges the answer of a stream as it comes. Pure.
//!
//! ```text
//! running --finish reason--> finished --[DONE]--> done
//! running or finished --[DONE]--> done;   anything after done, or text after finished: behind the end
//! ```
//!
//! The one hard idea: what any endpoint must keep is asked of all (every event JSON, no error, an end, nothing behind
//! it); an answer whose first text is a stamped token is a simulated engine's, of which more is known: whose answer it
//! is, each token, how many there were, and that it ends with `[DONE]`.

use bytes::Bytes;

use super::form::{Chunk, DONE};
use super::stamps::Stamps;
use super::wrong::{Wrong, quote};
use crate::sse::{Event, EventKind, Reframer};

/// Largest event that is read.
const EVENT_MAX: usize = 16 << 20;

/// The answer of one stream so far.
#[derive(Debug)]
pub(super) struct Judge {
    reframer: Reframer,
    said: Said,
}

/// What its events have said.
#[derive(Debug)]
struct Said {
    /// The request's id.
    id: String,
    max_tokens: u64,
    state: State,
    /// Some once the first text was a stamped token.
    stamps: Option<Stamps>,
    /// Events with text.
    texts: u64,
    /// Tokens as the usage has them.
    usage: Option<u64>,
    cut_by_limit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Finished,
    Done,
}

/// What one chunk brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Brought {
    /// Events with data.
    pub(super) events: u32,
    /// Those of them that hold text.
    pub(super) texts: u32,
    /// When stamped tokens were sent, in microseconds since 1970.
    pub(super) sent: Vec<u64>,
}

impl Judge {
    /// For the answer to a request with this id, which allows so many tokens.
    pub(super) fn new(id: &str, max_tokens: u32) -> Self {
        let said = Said {
            id: id.to_owned(),
            max_tokens: max_tokens.into(),
            state: State::Running,
            stamps: None,
            texts: 0,
            usage: None,
            cut_by_limit: false,
        };
        Self { reframer: Reframer::new(EVENT_MAX), said }
    }

    /// Takes a chunk of the body.
    ///
    /// # Errors
    /// The first thing that is wrong in it.
    pub(super) fn take(&mut self, chunk: Bytes) -> Result<Brought, Wrong> {
        let (mut brought, mut verdict) = (Brought::default(), Ok(()));
        let said = &mut self.said;
        // The events are all that is wanted of it: whom they go to is the judge.
        drop(self.reframer.push(chunk, &mut |event| {
            if verdict.is_ok() {
                verdict = said.event(&event, &mut brought);
            }
        }));
        if !self.reframer.at_boundary() {
            return Err(Wrong::TooLarge("an event", EVENT_MAX));
        }
        verdict.map(|()| brought)
    }

    /// Whether data has come of an event that is not whole yet.
    pub(super) fn is_within_data(&self) -> bool {
        self.reframer.tail().is_some_and(|event| event.kind == EventKind::Data)
    }

    /// Tokens so far: those of the usage where it has come, else events with text.
    pub(super) fn tokens(&self) -> u64 {
        self.said.usage.unwrap_or(self.said.texts)
    }

    /// The body has ended cleanly: gives the number of tokens.
    ///
    /// # Errors
    /// The answer had not ended, or something is missing in it.
    pub(super) fn end(&self) -> Result<u64, Wrong> {
        let said = &self.said;
        let no_end = |missing| Wrong::NoEnd { tokens: said.texts, missing };
        match (said.state, &said.stamps) {
            (State::Done, _) if self.reframer.held() > 0 => {
                return Err(Wrong::Behind("half an event".into()));
            }
            _ if self.reframer.held() > 0 => return Err(no_end("the end of an event")),
            (State::Running, _) => return Err(no_end("finish reason or [DONE]")),
            (State::Finished, Some(_)) => return Err(no_end("[DONE]")),
            (State::Finished, None) | (State::Done, _) => {}
        }
        let Some(stamps) = &said.stamps else { return Ok(self.tokens()) };
        let due = said.usage.or_else(|| said.cut_by_limit.then_some(said.max_tokens));
        lost(stamps.count(), due)
    }
}

/// Whether as many tokens came as were sent, where that is known.
pub(super) fn lost(got: u64, due: Option<u64>) -> Result<u64, Wrong> {
    match due {
        Some(due) if due != got => Err(Wrong::Lost { got, due }),
        _ => Ok(got),
    }
}

impl Said {
    fn event(&mut self, event: &Event<'_>, brought: &mut Brought) -> Result<(), Wrong> {
        let raw = event.raw.ok_or(Wrong::TooLarge("an event", EVENT_MAX))?;
        if self.state == State::Done {
            return Err(Wrong::Behind(quote(raw)));
        }
        let data = event.data().filter(|_| event.kind == EventKind::Data);
        // Comments are heartbeats, and a block without data is nothing to a client.
        let Some(data) = data else { return Ok(()) };
        brought.events += 1;
        if *data == *DONE {
            self.state = State::Done;
            return Ok(());
        }
        let chunk = Chunk::read(&data)?;
        if let Some(error) = chunk.error() {
            return Err(Wrong::ErrorEvent(error));
        }
        self.chunk(&chunk, brought)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, brought: &mut Brought) -> Result<(), Wrong> {
        if let Some(text) = chunk.text() {
            if self.state == State::Finished {
                return Err(Wrong::Behind(quote(text.as_bytes())));
            }
            if self.texts == 0 && Stamps::begin(text) {
                self.stamps = Some(Stamps::default());
            }
            if let Some(stamps) = &mut self.stamps {
                stamps.take(text, &mut brought.sent)?;
            }
            self.texts += 1;
            brought.texts += 1;
        }
        if self.stamps.is_some() {
            chunk.check_owner(&self.id)?;
        }
        if let Some(reason) = chunk.finish_reason() {
            self.state = State::Finished;
            self.cut_by_limit = reason == "length";
        }
        self.usage = chunk.completion_tokens().or(self.usage);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
