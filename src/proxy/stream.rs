//! An event stream on its way: `response_body_filter` is this, chunk by chunk.
//!
//! Chunks come in with four meanings: upstream bytes, the heartbeat mark, the failure mark, and the
//! question whether an end that is in doubt may be one (see `upstream`). Whole events go out with the
//! bytes they came in. Heartbeats and error events stand at event boundaries only; where part of an
//! event is already out, a heartbeat is dropped and a failure breaks the framing, so that no client
//! takes half an event for a whole one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::hooked::Watch;
use crate::failure::Failure;
use crate::hooks::Observe;
use crate::metrics::ActiveStream;
use crate::openai::patch::Unasked;
use crate::openai::{self, About, Dialect, Observer, UsagePlace, running};
use crate::rejection::Rejection;
use crate::sse::{Event, EventKind, Reframer, Verdict};
use crate::upstream::{ENDED, FAILURE, HEARTBEAT, Link, is_mark};

/// Why the framing of the body must be broken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The attempt failed, and an error event has no place to stand.
    Failed,
    /// A hook lets nothing more pass.
    Withheld,
}

/// An event stream on its way.
pub(super) struct Stream {
    reframer: Reframer,
    /// What was read of its events.
    pub(super) observer: Observer,
    dialect: Dialect,
    /// The client asked for a stream.
    streaming: bool,
    link: Arc<Link>,
    /// When the first data event went by.
    pub(super) first_event: Option<Instant>,
    /// When the first token went by.
    pub(super) first_token: Option<Instant>,
    /// Heartbeats given to the client.
    pub(super) heartbeats: u64,
    /// Usage that is not for the client.
    unasked: Unasked,
    active: ActiveStream,
    /// A hook that has a say in its events.
    watch: Option<Watch>,
}

impl Stream {
    /// A stream of which nothing has passed.
    pub(super) fn new(
        event_hold: usize,
        (dialect, streaming): (Dialect, bool),
        link: Arc<Link>,
        unasked: Unasked,
        active: ActiveStream,
        observer: Option<Box<dyn Observe>>,
    ) -> Self {
        Self {
            reframer: Reframer::new(event_hold),
            observer: Observer::new(dialect),
            dialect,
            streaming,
            link,
            first_event: None,
            first_token: None,
            heartbeats: 0,
            unasked,
            active,
            watch: observer.map(Watch::new),
        }
    }

    /// Turns a chunk into what goes out for it; `about` is what an error event may have to name.
    ///
    /// # Errors
    /// [`Broken`] when the attempt failed while part of an event was out, or a hook says so.
    pub(super) fn filter<'a>(
        &mut self,
        chunk: Option<Bytes>,
        end: bool,
        now: Instant,
        about: impl FnOnce() -> About<'a>,
    ) -> Result<Option<Bytes>, Broken> {
        let (out, data) = match chunk {
            Some(chunk) if is_mark(&chunk, HEARTBEAT) => (self.heartbeat(chunk), false),
            Some(chunk) if is_mark(&chunk, FAILURE) => return self.failure(about()).map(Some),
            Some(chunk) if is_mark(&chunk, ENDED) => {
                let word = self.word();
                self.link.give_word(word);
                return Ok(None);
            }
            Some(chunk) => self.events(Some(chunk), now),
            None => (None, false),
        };
        self.link.mark_chunk(now, data, out.is_some());
        // What is left goes out as it is: that it may was said before, or nobody was in doubt.
        let out = if end { join(out, self.events(None, now).0) } else { out };
        match &self.watch {
            Some(watch) if watch.is_withheld() => Err(Broken::Withheld),
            _ => Ok(out),
        }
    }

    /// The time from the first token to the last.
    pub(super) fn generating(&self) -> Option<Duration> {
        Some(self.active.last_token()?.saturating_duration_since(self.first_token?))
    }

    fn heartbeat(&mut self, chunk: Bytes) -> Option<Bytes> {
        let stands = self.reframer.at_boundary();
        self.heartbeats += u64::from(stands);
        stands.then_some(chunk)
    }

    fn failure(&mut self, about: About<'_>) -> Result<Bytes, Broken> {
        if !self.reframer.at_boundary() {
            return Err(Broken::Failed);
        }
        self.reframer.discard();
        let rejection = self.link.failure().map_or(Rejection::Internal, Failure::rejection);
        let message = rejection.message();
        Ok(self.dialect.error_event(&rejection.told(&message, about), self.observer.progress()))
    }

    /// Whether the answer may end here, where its bytes do not say so.
    ///
    /// An event that wants nothing but its blank line counts as one. An end that is the connection's own could be a cut,
    /// so that the answer must have said that it is over.
    fn word(&mut self) -> Result<(), Failure> {
        let tail = self.reframer.tail();
        let mut further = self.observer.clone();
        if let Some(tail) = &tail {
            if !openai::is_whole(tail) {
                return Err(Failure::Unfinished);
            }
            further.event(tail);
        }
        let expected = self.streaming || self.dialect.has_end();
        if expected && further.data_events() == 0 {
            return Err(Failure::Empty);
        }
        if self.link.is_open_ended() && self.dialect.has_end() && !further.is_over() {
            self.observer.take_figures(&further);
            return Err(Failure::Unfinished);
        }
        // One that is out already is not met again.
        if !self.reframer.at_boundary() {
            self.observer = further;
        }
        Ok(())
    }

    /// What goes out for upstream bytes, or for their end, and whether a data event is among them.
    fn events(&mut self, chunk: Option<Bytes>, now: Instant) -> (Option<Bytes>, bool) {
        let (mut data, before) = (false, self.observer.tokens());
        if self.link.is_open_ended() {
            self.observer.look_for_choices();
        }
        let (observer, unasked, watch) = (&mut self.observer, self.unasked, &mut self.watch);
        let judge = &mut |event: Event<'_>| {
            let noted = observer.event(&event);
            // A node that is stuck may still say that it is alive.
            data |= event.kind == EventKind::Data && !noted.keep_alive;
            let ours = match noted.usage {
                UsagePlace::Frame if unasked.frame => Verdict::Cut,
                UsagePlace::Beside if unasked.running => running_usage(&event),
                _ => Verdict::Pass,
            };
            match watch {
                Some(watch) => watch.judge(&event, ours),
                None => ours,
            }
        };
        let out = match chunk {
            Some(chunk) => self.reframer.filter(chunk, judge),
            None => self.reframer.finish_with(judge),
        };
        if let Some(watch) = watch
            && !self.reframer.at_boundary()
        {
            // Part of an event is in what goes out.
            watch.misses();
        }
        if data && self.first_event.is_none() {
            self.first_event = Some(now);
            self.active.first_event(now);
        }
        let tokens = self.observer.tokens() - before;
        if tokens > 0 {
            self.first_token.get_or_insert(now);
            self.active.tokens(tokens, now);
        }
        (out, data)
    }
}

/// The figures of an event that brings something else besides are taken out of it. Where they cannot be found the event
/// passes as it is: a client can bear figures that it did not ask for, and no event that was tampered with.
fn running_usage(event: &Event<'_>) -> Verdict {
    let place = event.raw.filter(|_| event.single).and_then(running::usage_member);
    place.map_or(Verdict::Pass, |place| Verdict::CutPart { from: place.start, to: place.end })
}

fn join(first: Option<Bytes>, second: Option<Bytes>) -> Option<Bytes> {
    match (first, second) {
        (Some(first), Some(second)) => {
            let mut both = BytesMut::with_capacity(first.len() + second.len());
            both.extend_from_slice(&first);
            both.extend_from_slice(&second);
            Some(both.freeze())
        }
        (first, second) => first.or(second),
    }
}
