//! Commitment: when the response head is let through to the client.
//!
//! At once for an answer that is no event stream; for one that is, with its first data event or when
//! `hold_headers` is over; and, where `early_headers` says so, before the engine has answered at all.
//! Until then every failure is a real status, and another node can take over.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

use pingora_http::ResponseHeader;

use super::is_event_stream;
use super::session::{Session, Step, failure_of};
use crate::deadline::Due;
use crate::failure::Failure;

/// Turns that Pingora's loop needs before it may be given a response: see `let_the_loop_settle`.
const LOOP_SETTLED: u8 = 2;

impl Session {
    /// Reads until the response head may go to the client.
    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.wait_for_commitment().await?;
        self.let_the_loop_settle().await;
        if let Some(plan) = self.plan.as_ref().filter(|_| !self.held.is_empty()) {
            plan.link.mark_body_follows();
        }
        self.drive.committed(self.reframed, Instant::now());
        Ok(())
    }

    /// Pingora's loop leaves only when its (empty) custom message pipes have ended, which it notices
    /// on the second poll. If a whole answer were there before, it would go on reading the client after
    /// the last byte, and take the client's next request for data that must not come.
    async fn let_the_loop_settle(&mut self) {
        while self.waits < LOOP_SETTLED {
            self.waits += 1;
            let mut yielded = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut yielded, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }

    async fn wait_for_commitment(&mut self) -> Result<(), Failure> {
        loop {
            let step = poll_fn(|cx| {
                let step = self.poll_step(cx);
                self.waits = self.waits.saturating_add(u8::from(step.is_pending()));
                step
            });
            match step.await {
                Step::Head => {
                    self.reframed = self.real_head().is_some_and(is_event_stream);
                    if self.bodiless || !self.hold() {
                        return Ok(());
                    }
                }
                Step::Chunk(chunk) => {
                    let most = self.plan.as_ref().map_or(0, |plan| plan.route.stream.event_hold);
                    let enough = self.drive.holds_enough(&chunk, most);
                    self.held.push_back(chunk);
                    if enough {
                        return Ok(());
                    }
                    // It broke right behind comments that nobody has seen: another node may take over.
                    if let Some(failure) = self.pending.take() {
                        return Err(self.lose(failure));
                    }
                }
                Step::End => return self.ended_early().map_or(Ok(()), |failure| Err(self.lose(failure))),
                Step::Due(Due::Hold) => return Ok(()),
                Step::Due(Due::Early) => {
                    self.early = Some(Box::new(early_head()));
                    self.reframed = true;
                    return Ok(());
                }
                Step::Due(due) => {
                    if let Some(failure) = failure_of(due) {
                        return Err(self.lose(failure));
                    }
                }
                Step::Failed(failure) => return Err(self.lose(failure)),
            }
        }
    }

    /// Whether the head is to be held back: it is a stream's, no data event has come yet, and another
    /// node could still take over.
    fn hold(&mut self) -> bool {
        let Some(plan) = &self.plan else { return false };
        let hold = plan.route.stream.hold_headers;
        let held = self.reframed && plan.streaming && !hold.is_zero();
        if held {
            self.drive.hold(Instant::now() + hold);
        }
        held
    }
}

/// The head that is sent when the engine is still silent.
fn early_head() -> ResponseHeader {
    let mut head = ResponseHeader::build(200, Some(4)).expect("200 is a status");
    head.insert_header("content-type", "text/event-stream; charset=utf-8").expect("a plain header");
    head
}
