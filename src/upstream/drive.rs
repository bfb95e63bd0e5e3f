//! What keeps a session moving: bytes while there are any, otherwise the next deadline.
//!
//! The hard idea is to be lazy twice: with bytes (`read`) and with time (`due`).

mod due;
mod read;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use due::Mode;
use read::Read;
use tokio::time::Sleep;

use super::doubt::Doubt;
use super::opening::Opened;
use super::paused::Paused;
use super::plan::Plan;
use super::session::{Session, Stage, Step};
use super::whole::End;
use crate::drain::CutSignal;
use crate::failure::Failure;
use crate::sse::DataWatch;

/// Most bytes drained into one chunk. Measured: 16 KiB costs 0.36 us an event where an engine
/// writes in bursts, 8 KiB 0.43, and a batch is what a stalled stream may hold beyond its window.
pub(super) const BATCH: usize = 16 * 1024;

/// Clocks and buffers of one session.
pub(super) struct Drive {
    timer: Option<Pin<Box<Sleep>>>,
    /// The timer is armed for no later than the earliest deadline of this mode.
    armed: Option<Mode>,
    cut: Option<CutSignal>,
    /// The last look for bytes found none.
    waited: bool,
    /// Bytes of the answer that have been taken out of Pingora's buffer, or fewer.
    taken: u64,
    /// A chunk has just been given out, and the rest of Pingora's loop has its turn: it is written
    /// before anybody looks for more, which would be a look in vain after each token.
    given: bool,
    /// The head of the answer has been read; whether it is an event stream.
    answered: Option<bool>,
    /// The response head has gone to the client.
    committed: bool,
    /// Heartbeats may be given out: the committed body is an event stream.
    beats: bool,
    /// When the silence that the next heartbeat ends began, as far as the session knows.
    silent_since: Option<Instant>,
    hold_until: Option<Instant>,
    watch: DataWatch,
    held: usize,
    paused: Paused,
}

impl Drive {
    pub(super) fn new() -> Self {
        Self {
            timer: None,
            armed: None,
            cut: None,
            waited: false,
            taken: 0,
            given: false,
            answered: None,
            committed: false,
            beats: false,
            silent_since: None,
            hold_until: None,
            watch: DataWatch::new(0),
            held: 0,
            paused: Paused::default(),
        }
    }

    pub(super) fn begin(&mut self, plan: &Plan, now: Instant) {
        self.cut = Some(plan.drain.cut_signal_on(Arc::clone(&plan.state)));
        self.watch = DataWatch::new(plan.route.stream.event_hold);
        self.silent_since = Some(now);
    }

    pub(super) fn answered(&mut self, is_stream: bool) {
        self.answered = Some(is_stream);
    }

    pub(super) fn committed(&mut self, beats: bool, now: Instant) {
        self.committed = true;
        self.beats = beats;
        self.hold_until = None;
        self.silent_since = Some(now);
    }

    /// Begins to hold the head back until `until`.
    pub(super) fn hold(&mut self, until: Instant) {
        self.hold_until = Some(until);
    }

    /// Whether `chunk` ends the holding: a data event has come, or more than may be kept.
    pub(super) fn holds_enough(&mut self, chunk: &[u8], most: usize) -> bool {
        self.held += chunk.len();
        self.watch.push(chunk).is_some() || self.held > most
    }

    /// A read begins: the time since the last one was the client's.
    pub(super) fn resume(&mut self, data: Option<Instant>) {
        self.paused.end(data, Instant::now);
    }

    /// A chunk has been given out.
    pub(super) fn pause(&mut self, now: Instant) {
        self.given = true;
        self.paused.start(now);
    }
}

impl Session {
    /// The next thing that happens to this attempt.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if self.doubt == Doubt::Asked {
            return self.poll_word(cx);
        }
        let Some(plan) = &self.plan else { return Poll::Ready(Step::Failed(Failure::NotHttp)) };
        let mut reading = true;
        match &mut self.stage {
            Stage::Idle | Stage::Done => return Poll::Ready(Step::Failed(Failure::Disconnected)),
            Stage::Opening(opening) => {
                let Ok(opening) = opening.get_mut() else {
                    return Poll::Ready(Step::Failed(Failure::Disconnected));
                };
                match opening.as_mut().poll(cx) {
                    Poll::Ready(Ok(Opened(session))) => {
                        self.opened(session);
                        return Poll::Ready(Step::Head);
                    }
                    Poll::Ready(Err(failure)) => return Poll::Ready(Step::Failed(failure)),
                    Poll::Pending => {}
                }
            }
            Stage::Body(_) if std::mem::take(&mut self.drive.given) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Stage::Body(session) => {
                reading = plan.credit.poll_free(cx).is_ready();
                plan.link.pause(!reading);
                if reading {
                    self.drive.paused.end(plan.link.last_data(), Instant::now);
                    if let Poll::Ready(read) = self.drive.poll_body(session, plan, cx) {
                        return Poll::Ready(self.take_in(read));
                    }
                } else {
                    self.drive.paused.start(Instant::now());
                }
            }
        }
        self.drive.poll_due(plan, reading, cx)
    }

    fn take_in(&mut self, read: Read) -> Step {
        if let Some(chunk) = &read.chunk {
            self.whole.push(chunk);
        }
        match read.end {
            Some(Ok(())) => match self.end() {
                End::Whole => self.complete(),
                End::InDoubt => self.doubt(),
                End::Half if read.chunk.is_none() => return Step::Failed(Failure::Unfinished),
                End::Half => self.fail_later(Failure::Unfinished),
            },
            Some(Err(failure)) if read.chunk.is_some() => self.fail_later(failure),
            Some(Err(failure)) => return Step::Failed(failure),
            None => {}
        }
        read.chunk.map_or(Step::End, Step::Chunk)
    }
}
