//! An event stream on its way: `response_body_filter` is this, chunk by chunk.
//!
//! Chunks come in with three meanings: upstream bytes, the heartbeat mark, the failure mark (see
//! `upstream`). Whole events go out with the bytes they came in. Heartbeats and error events stand at
//! event boundaries only; where part of an event is already out, a heartbeat is dropped and a failure
//! breaks the framing, so that no client takes half an event for a whole one.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use crate::failure::Failure;
use crate::metrics::ActiveStream;
use crate::openai::{About, Dialect, Observer};
use crate::rejection::Rejection;
use crate::sse::{Event, EventKind, Reframer, Verdict};
use crate::upstream::{FAILURE, HEARTBEAT, Link, is_mark};

/// The framing of the body must be broken: an error event has no place to stand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// An event stream on its way.
pub(super) struct Stream {
    reframer: Reframer,
    /// What was read of its events.
    pub(super) observer: Observer,
    dialect: Dialect,
    link: Arc<Link>,
    /// When the first data event went by.
    pub(super) first_event: Option<Instant>,
    /// When the first token went by.
    pub(super) first_token: Option<Instant>,
    /// Heartbeats given to the client.
    pub(super) heartbeats: u64,
    /// The usage frame is not for the client.
    cuts_usage: bool,
    _active: ActiveStream,
}

impl Stream {
    /// A stream of which nothing has passed.
    pub(super) fn new(
        event_hold: usize,
        dialect: Dialect,
        link: Arc<Link>,
        cuts_usage: bool,
        active: ActiveStream,
    ) -> Self {
        Self {
            reframer: Reframer::new(event_hold),
            observer: Observer::new(dialect),
            dialect,
            link,
            first_event: None,
            first_token: None,
            heartbeats: 0,
            cuts_usage,
            _active: active,
        }
    }

    /// Turns a chunk into what goes out for it; `about` is what an error event may have to name.
    ///
    /// # Errors
    /// [`Broken`] when the attempt failed while part of an event was out.
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
            Some(chunk) => self.events(chunk, now),
            None => (None, false),
        };
        self.link.mark_chunk(now, data, out.is_some());
        Ok(if end { join(out, self.reframer.finish()) } else { out })
    }

    fn heartbeat(&mut self, chunk: Bytes) -> Option<Bytes> {
        let stands = self.reframer.at_boundary();
        self.heartbeats += u64::from(stands);
        stands.then_some(chunk)
    }

    fn failure(&mut self, about: About<'_>) -> Result<Bytes, Broken> {
        if !self.reframer.at_boundary() {
            return Err(Broken);
        }
        self.reframer.discard();
        let rejection = self.link.failure().map_or(Rejection::Internal, Failure::rejection);
        let message = rejection.message();
        Ok(self.dialect.error_event(&rejection.told(&message, about), self.observer.progress()))
    }

    /// What goes out for upstream bytes, and whether a data event is among them.
    fn events(&mut self, chunk: Bytes, now: Instant) -> (Option<Bytes>, bool) {
        let (mut data, mut token) = (false, false);
        let (observer, cuts_usage) = (&mut self.observer, self.cuts_usage);
        let out = self.reframer.filter(chunk, &mut |event: Event<'_>| {
            let noted = observer.event(&event);
            // A node that is stuck may still say that it is alive.
            data |= event.kind == EventKind::Data && !noted.keep_alive;
            token |= noted.first_token;
            if cuts_usage && noted.usage_only { Verdict::Cut } else { Verdict::Pass }
        });
        if data {
            self.first_event.get_or_insert(now);
        }
        if token {
            self.first_token.get_or_insert(now);
        }
        (out, data)
    }
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
