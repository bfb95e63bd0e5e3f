//! What keeps a session moving: bytes while there are any, otherwise the next deadline.
//!
//! The hard idea is to be lazy twice. *Bytes*: after a pause one read is given out at once, a token or all
//! that came with it; when data was there on the first look an engine is writing faster than we read, and
//! up to a batch is drained into one chunk, one write, one wake-up. *Time*: one timer a session, armed
//! for the earliest deadline and moved only when it fires too early; events in between cost nothing.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use pingora::protocols::http::v1::client::HttpSession;
use tokio::time::Sleep;

use super::duplex::Duplex;
use super::opening::{Opened, cause, classify};
use super::paused::Paused;
use super::plan::Plan;
use super::session::{Session, Stage, Step};
use crate::deadline::{Due, Earliest};
use crate::drain::CutSignal;
use crate::failure::Failure;
use crate::sse::DataWatch;

/// Most bytes drained into one chunk. Measured: 16 KiB costs 0.36 us an event where an engine
/// writes in bursts, 8 KiB 0.43, and a batch is what a stalled stream may hold beyond its window.
pub(super) const BATCH: usize = 16 * 1024;

/// Least bytes of framing around a chunk (RFC 9112, 7.1): a digit and two line ends.
const FRAMING: u64 = 5;

/// What decides which deadlines run. While it stays the same, each of them only moves later.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mode {
    reading: bool,
    answered: Option<bool>,
    committed: bool,
    beats: bool,
    holds: bool,
    sent: bool,
    data: bool,
}

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

    fn mode(&self, plan: &Plan, reading: bool) -> Mode {
        Mode {
            reading,
            answered: self.answered,
            committed: self.committed,
            beats: self.beats,
            holds: self.hold_until.is_some(),
            sent: plan.link.sent().is_some(),
            data: plan.link.last_data().is_some(),
        }
    }

    fn earliest(&self, plan: &Plan, reading: bool) -> Earliest {
        let earliest = Earliest::none().or(Due::Total, Some(plan.total_at));
        if !reading {
            return earliest;
        }
        let stream = &plan.route.stream;
        let waiting = if self.committed { None } else { self.hold_until };
        let early = if plan.streaming && !self.committed && self.answered.is_none() {
            stream.early_headers.map(|after| plan.ready_at + after)
        } else {
            None
        };
        let silent_since = self.silent_since.max(plan.link.last_out());
        let beat =
            stream.heartbeat.zip(silent_since).filter(|_| self.beats).map(|(every, since)| since + every);
        self.budget(plan, earliest).or(Due::Hold, waiting).or(Due::Early, early).or(Due::Heartbeat, beat)
    }

    /// The budget of the engine: until its first event, between its events, or for its whole answer.
    fn budget(&self, plan: &Plan, earliest: Earliest) -> Earliest {
        let timeouts = &plan.timeouts;
        let sent = plan.link.sent();
        if !self.answered.unwrap_or(plan.streaming) {
            return earliest.or(Due::Unary, sent.map(|sent| sent + timeouts.unary));
        }
        match plan.link.last_data() {
            None => earliest.or(Due::FirstEvent, sent.map(|sent| sent + timeouts.first_event)),
            Some(data) => {
                let paused = self.paused.since_data(data);
                earliest.or(Due::Idle, Some(data + timeouts.idle + paused))
            }
        }
    }

    /// Ready when a deadline has passed or the drain is over.
    fn poll_due(&mut self, plan: &Plan, reading: bool, cx: &mut Context<'_>) -> Poll<Step> {
        if self.cut.as_mut().is_some_and(|cut| cut.poll(cx).is_ready()) {
            let is_end = plan.drain.is_cut();
            let failure = if is_end { Failure::ShuttingDown } else { Failure::BackendRemoved };
            return Poll::Ready(Step::Failed(failure));
        }
        let mode = self.mode(plan, reading);
        if self.armed == Some(mode)
            && self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_pending())
        {
            return Poll::Pending;
        }
        let Some((at, due)) = self.earliest(plan, reading).get() else { return Poll::Pending };
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
            if timer.deadline().into_std() > at {
                timer.as_mut().reset(at.into());
            }
            if timer.as_mut().poll(cx).is_pending() {
                self.armed = Some(mode);
                return Poll::Pending;
            }
            let now = Instant::now();
            if now >= at {
                match due {
                    Due::Hold => self.hold_until = None,
                    // Where none may stand the filter drops it: the next one comes a whole beat later.
                    Due::Heartbeat => self.silent_since = Some(now),
                    _ => {}
                }
                return Poll::Ready(Step::Due(due));
            }
            timer.as_mut().reset(at.into());
        }
    }

    /// Reads what is there: what the read after a pause brought, up to a batch when the engine is ahead of us.
    fn poll_body(&mut self, session: &mut HttpSession, plan: &Plan, cx: &mut Context<'_>) -> Poll<Read> {
        let one_read = std::mem::take(&mut self.waited);
        let mut batch = BytesMut::new();
        let end = loop {
            let read = pin!(session.read_body_ref()).poll(cx);
            match read {
                Poll::Ready(Ok(Some(slice))) => {
                    batch.extend_from_slice(slice);
                    self.taken += slice.len() as u64 + FRAMING;
                    if session.is_body_done() {
                        break Some(Ok(()));
                    }
                    let unread = self.unread(session);
                    if !batch.is_empty() && (batch.len() >= BATCH || one_read && unread == 0) {
                        break None;
                    }
                    batch.reserve(unread);
                }
                Poll::Ready(Ok(None)) => break Some(Ok(())),
                Poll::Ready(Err(error)) => {
                    if let Some(cause) = cause(&error) {
                        plan.link.explain(cause);
                    }
                    break Some(Err(classify(&error)));
                }
                Poll::Pending => {
                    self.taken = Duplex::received(session);
                    self.waited = batch.is_empty();
                    if self.waited {
                        return Poll::Pending;
                    }
                    break None;
                }
            }
        };
        let chunk = (!batch.is_empty()).then(|| plan.credit.charge(batch));
        Poll::Ready(Read { chunk, end })
    }

    /// Bytes that have been read and not yet taken: 0 where there are none, or where they are so few that they
    /// may be framing counted too low. Too many are a look in vain, no more.
    fn unread(&self, session: &HttpSession) -> usize {
        let unread = Duplex::received(session).saturating_sub(self.taken);
        if unread < FRAMING { 0 } else { usize::try_from(unread).map_or(BATCH, |unread| unread.min(BATCH)) }
    }
}

/// What one look at the connection brought.
struct Read {
    chunk: Option<Bytes>,
    end: Option<Result<(), Failure>>,
}

impl Session {
    /// The next thing that happens to this attempt.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
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
            Some(Ok(())) if !self.whole.may_end() => {
                if read.chunk.is_none() {
                    return Step::Failed(Failure::Unfinished);
                }
                self.fail_later(Failure::Unfinished);
            }
            Some(Ok(())) => self.complete(),
            Some(Err(failure)) if read.chunk.is_some() => self.fail_later(failure),
            Some(Err(failure)) => return Step::Failed(failure),
            None => {}
        }
        read.chunk.map_or(Step::End, Step::Chunk)
    }
}
