//! Bytes: after a pause one read is given out at once, a token or all that came with it. The hard idea: when data was there
//! on the first look an engine is writing faster than we read, and up to a batch is drained into one chunk, one write, one
//! wake-up.

use std::pin::pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use pingora::protocols::http::v1::client::HttpSession;

use super::{BATCH, Drive};
use crate::failure::Failure;
use crate::upstream::duplex::Duplex;
use crate::upstream::opening::{cause, classify};
use crate::upstream::plan::Plan;

/// Least bytes of framing around a chunk (RFC 9112, 7.1): a digit and two line ends.
const FRAMING: u64 = 5;

/// What one look at the connection brought.
pub(super) struct Read {
    pub(super) chunk: Option<Bytes>,
    pub(super) end: Option<Result<(), Failure>>,
}

impl Drive {
    /// Reads what is there: what the read after a pause brought, up to a batch when the engine is ahead of us.
    pub(super) fn poll_body(
        &mut self,
        session: &mut HttpSession,
        plan: &Plan,
        cx: &mut Context<'_>,
    ) -> Poll<Read> {
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
