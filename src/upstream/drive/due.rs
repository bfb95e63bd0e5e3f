//! Time: one timer a session, armed for the earliest deadline and moved only when it fires too early. The hard idea:
//! while nothing changes what is waited for, deadlines only move later, so that events in between cost nothing.

use std::task::{Context, Poll};
use std::time::Instant;

use super::Drive;
use crate::deadline::{Due, Earliest};
use crate::failure::Failure;
use crate::upstream::plan::Plan;
use crate::upstream::session::Step;

/// What decides which deadlines run. While it stays the same, each of them only moves later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    reading: bool,
    answered: Option<bool>,
    committed: bool,
    beats: bool,
    holds: bool,
    sent: bool,
    data: bool,
}

impl Drive {
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
    pub(in crate::upstream) fn poll_due(
        &mut self,
        plan: &Plan,
        reading: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Step> {
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
}
