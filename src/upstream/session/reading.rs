//! The body of an answer, chunk by chunk, from commitment to its end: the engine's bytes, heartbeats of ours, or the
//! mark of a failure.

use std::future::poll_fn;
use std::time::Instant;

use bytes::Bytes;
use pingora_http::ResponseHeader;

use super::super::doubt::Doubt;
use super::super::{FAILURE, HEARTBEAT, is_event_stream};
use super::{Session, Step, failure_of};
use crate::config::FailureEnd;
use crate::deadline::Due;
use crate::failure::Failure;

impl Session {
    /// The next chunk for the client, or none at the end.
    pub(in crate::upstream) async fn next_chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let data = self.plan.as_ref().and_then(|plan| plan.link.last_data());
        self.drive.resume(data);
        self.tell_paused(false);
        let next = self.read_chunk().await;
        self.tell_paused(true);
        self.drive.pause(Instant::now());
        next
    }

    fn tell_paused(&self, paused: bool) {
        if let Some(plan) = &self.plan {
            plan.link.pause(paused);
        }
    }

    async fn read_chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if let Some(chunk) = self.held.pop_front() {
            self.finished = self.held.is_empty() && self.clean && self.pending.is_none();
            return Ok(Some(chunk));
        }
        if let Some(failure) = self.pending.take() {
            return self.fail(failure);
        }
        if self.broken {
            return Err(self
                .plan
                .as_ref()
                .and_then(|plan| plan.link.failure())
                .unwrap_or(Failure::Disconnected));
        }
        if self.finished {
            return Ok(None);
        }
        if self.clean || self.bodiless {
            self.finished = true;
            return Ok(Some(Bytes::new()));
        }
        loop {
            if let Some(ended) = self.raise_doubt() {
                return Ok(Some(ended));
            }
            match poll_fn(|cx| self.poll_step(cx)).await {
                Step::Head => {
                    if let Some(failure) = self.real_head().and_then(unfit) {
                        return self.fail(failure);
                    }
                }
                Step::Chunk(chunk) => {
                    self.finished = self.clean;
                    return Ok(Some(chunk));
                }
                Step::End if self.doubt == Doubt::Felt => {}
                // An empty last chunk, so that the filters see the end and let go of what they hold.
                Step::End => {
                    self.finished = true;
                    return Ok(Some(Bytes::new()));
                }
                Step::Due(Due::Heartbeat) => return Ok(Some(Bytes::from_static(HEARTBEAT))),
                Step::Due(due) => {
                    if let Some(failure) = failure_of(due) {
                        return self.fail(failure);
                    }
                }
                Step::Failed(failure) => return self.fail(failure),
            }
        }
    }

    /// The attempt failed after commitment: an event stream gets a mark that the filters turn into
    /// an error event; any other body breaks its framing.
    fn fail(&mut self, failure: Failure) -> Result<Option<Bytes>, Failure> {
        let failure = self.lose(failure);
        if !self.reframed {
            return Err(failure);
        }
        let clean = self.plan.as_ref().is_none_or(|plan| plan.route.stream.failure_end == FailureEnd::Clean);
        self.finished = clean;
        self.broken = !clean;
        Ok(Some(Bytes::from_static(FAILURE)))
    }
}

/// Why an answer cannot go on behind a head that was sent early, which promised an event stream: the engine's own head
/// can no longer pass.
fn unfit(head: &ResponseHeader) -> Option<Failure> {
    if is_event_stream(head) {
        None
    } else if head.status.is_success() {
        Some(Failure::NoStream)
    } else {
        Some(Failure::Status(head.status.as_u16()))
    }
}
