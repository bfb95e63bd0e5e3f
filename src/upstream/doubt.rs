//! An end that is in doubt.
//!
//! What the end of an event stream is worth depends on what its events have said, and the session does not read them.
//! The hard idea: it asks those who do, in the order of the bytes. A mark goes where the end would, and the end itself
//! waits for their word.
//!
//! ```text
//! None --an end that says nothing--> Felt --`ENDED` given out--> Asked --their word--> the end, or a failure
//! ```

use std::task::{Context, Poll};

use bytes::Bytes;

use super::ENDED;
use super::session::{Session, Step};
use super::whole::End;
use crate::failure::Failure;
use crate::openai;
use crate::sse::Reframer;

/// How far a doubt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// There is none.
    None,
    /// The body has ended, and nobody has been asked.
    Felt,
    /// The filters have been asked, or are about to be.
    Asked,
}

impl Session {
    /// What the end of the body is, now that it is here.
    pub(super) fn end(&self) -> End {
        let has_data = self.plan.as_ref().is_some_and(|plan| plan.link.last_data().is_some());
        match self.whole.end() {
            // It may have had nothing but comments.
            End::Whole if self.whole.is_events() && !has_data => End::InDoubt,
            end => end,
        }
    }

    /// The body has ended, but perhaps not the answer.
    pub(super) fn doubt(&mut self) {
        self.doubt = Doubt::Felt;
    }

    /// The mark that asks for a word, if it is time for it.
    pub(super) fn raise_doubt(&mut self) -> Option<Bytes> {
        (self.doubt == Doubt::Felt).then(|| {
            self.doubt = Doubt::Asked;
            Bytes::from_static(ENDED)
        })
    }

    /// What the filters say; until then the end of the exchange may come first.
    pub(super) fn poll_word(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let Some(plan) = &self.plan else { return Poll::Ready(Step::Failed(Failure::NotHttp)) };
        // The engine has nothing more to do with it.
        plan.link.pause(true);
        match plan.link.poll_word(cx) {
            Poll::Ready(Ok(())) => {
                self.complete();
                Poll::Ready(Step::End)
            }
            Poll::Ready(Err(failure)) => Poll::Ready(Step::Failed(failure)),
            Poll::Pending => self.drive.poll_due(plan, false, cx),
        }
    }

    /// The failure that it is to end before any event has come, while its head is still held; `None` where the filters
    /// have something to read.
    pub(super) fn ended_early(&self) -> Option<Failure> {
        if !self.whole.is_events() {
            return None;
        }
        // What is held is bounded by `event_hold`.
        let mut reframer = Reframer::new(usize::MAX);
        for chunk in &self.held {
            reframer.push(chunk.clone(), &mut |_| {});
        }
        match reframer.tail() {
            None => Some(Failure::Empty),
            Some(event) if openai::is_whole(&event) => None,
            Some(_) => Some(Failure::Unfinished),
        }
    }
}
