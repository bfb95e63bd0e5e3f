//! The hooks of a program that embeds the gateway, as an exchange meets them (see [`crate::hooks`]).
//!
//! The one hard idea: an observer that protects somebody must not be gone around. Whatever it does not get to see is
//! put to its [`Observe::unseen`], here and nowhere else: bodies by their head, events and bodies by their size.

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HeaderValue};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use twox_hash::XxHash3_64;

use super::exchange::Exchange;
use super::shared::Shared;
use crate::hooks::{ANSWER_MAX, Change, Observe, OwnedFacts, Unseen, as_lines};
use crate::ledger::Reservation;
use crate::rejection::Rejection;
use crate::sse::{Event, Verdict};
use crate::upstream;

/// The answer may not go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Withheld;

/// Lets an exchange in by the hook, and notes what hooks may ask of it later.
pub(super) fn admit(shared: &Shared, session: &Session, exchange: &mut Exchange) -> Result<(), Rejection> {
    if shared.hooks.is_empty() {
        return Ok(());
    }
    let facts = Box::new(facts(session, exchange));
    let admitted = shared.hooks.admit.as_ref().map_or(Ok(()), |hook| hook.admit(&facts.facts()));
    exchange.facts = Some(facts);
    admitted.map_err(Rejection::Refused)
}

fn facts(session: &Session, exchange: &Exchange) -> OwnedFacts {
    let head = session.req_header();
    let request = &exchange.request;
    OwnedFacts {
        id: exchange.id.clone(),
        method: request.method.clone(),
        path: request.path.clone(),
        headers: head.headers.clone(),
        client: request.client,
        route: exchange.route.as_ref().map(|route| route.name.clone()).unwrap_or_default(),
        model: request.model.clone(),
        key: exchange.key.as_ref().map(|key| key.name.clone()),
        session: request.session.id.as_ref().map(|id| XxHash3_64::oneshot(id.as_bytes())),
        streaming: request.streaming,
    }
}

/// The observer of an answer that begins, where it has one.
pub(super) fn begin(shared: &Shared, exchange: &Exchange) -> Option<Box<dyn Observe>> {
    let facts = exchange.facts.as_ref()?;
    shared.hooks.observe.as_ref()?(&facts.facts())
}

/// Prepares for the body of an answer that is no event stream.
///
/// # Errors
/// The observer cannot see it, and it is not to pass then.
pub(super) fn whole(
    observer: Box<dyn Observe>,
    head: &mut ResponseHeader,
    exchange: &Exchange,
) -> Result<Option<Box<Whole>>, Withheld> {
    if has_no_body(head, &exchange.request.method) {
        return Ok(None);
    }
    if !upstream::is_json(head) || !upstream::is_plain(head) {
        return match observer.unseen() {
            Unseen::Pass => Ok(None),
            Unseen::Break => Err(Withheld),
        };
    }
    // What it will be is known at its end.
    head.remove_header(&CONTENT_LENGTH);
    let reserved = exchange.shared.ledger.open();
    Ok(Some(Box::new(Whole { observer, held: BytesMut::new(), reserved, is_passing: false })))
}

fn has_no_body(head: &ResponseHeader, method: &str) -> bool {
    method == "HEAD"
        || matches!(head.status.as_u16(), 204 | 304)
        || head.headers.get(CONTENT_LENGTH).is_some_and(|length: &HeaderValue| length == "0")
}

/// A JSON answer that is held until its observer has seen it.
pub(super) struct Whole {
    observer: Box<dyn Observe>,
    held: BytesMut,
    /// The room of what is held.
    reserved: Reservation,
    /// It has grown too large to be held, and may pass.
    is_passing: bool,
}

impl Whole {
    /// What goes out for a chunk.
    ///
    /// # Errors
    /// The answer is to be broken off.
    pub(super) fn take(&mut self, chunk: Option<Bytes>, end: bool) -> Result<Option<Bytes>, Withheld> {
        if self.is_passing {
            return Ok(chunk);
        }
        let chunk = chunk.unwrap_or_default();
        let fits = self.held.len() + chunk.len() <= ANSWER_MAX && self.reserved.grow(chunk.len() as u64);
        self.held.extend_from_slice(&chunk);
        if !fits {
            return match self.observer.unseen() {
                Unseen::Pass => {
                    self.is_passing = true;
                    Ok(Some(std::mem::take(&mut self.held).freeze()))
                }
                Unseen::Break => Err(Withheld),
            };
        }
        if !end || self.held.is_empty() {
            return Ok(None);
        }
        let body = std::mem::take(&mut self.held).freeze();
        match self.observer.answer(&body) {
            Change::Pass => Ok(Some(body)),
            Change::Drop => Ok(None),
            Change::Replace(with) => Ok(Some(with)),
            Change::Break => Err(Withheld),
        }
    }
}

/// The observer of an event stream.
pub(super) struct Watch {
    observer: Box<dyn Observe>,
    is_withheld: bool,
}

impl Watch {
    /// An observer that has seen nothing.
    pub(super) fn new(observer: Box<dyn Observe>) -> Self {
        Self { observer, is_withheld: false }
    }

    /// What becomes of an event of which `ours` is to become what we want; what is not for the client is not for the
    /// observer either.
    pub(super) fn judge(&mut self, event: &Event<'_>, ours: Verdict) -> Verdict {
        if self.is_withheld {
            return ours;
        }
        match (ours, event.raw) {
            (Verdict::Cut, _) => Verdict::Cut,
            (ours, None) => {
                self.misses();
                ours
            }
            (Verdict::CutPart { from, to }, Some(raw)) => {
                let rest = [&raw[..from], &raw[to..]].concat();
                let seen = Event { raw: Some(&rest), ..*event };
                self.verdict(&seen, &rest).unwrap_or(Verdict::CutPart { from, to })
            }
            (ours, Some(raw)) => self.verdict(event, raw).unwrap_or(ours),
        }
    }

    /// What the observer wants to become of it; `None` for nothing.
    fn verdict(&mut self, event: &Event<'_>, raw: &[u8]) -> Option<Verdict> {
        match self.observer.event(event) {
            Change::Pass => None,
            Change::Drop => Some(Verdict::Cut),
            Change::Replace(with) => Some(as_lines(with, raw).map_or(Verdict::Cut, Verdict::Replace)),
            Change::Break => {
                self.is_withheld = true;
                None
            }
        }
    }

    /// Something goes out that it does not see.
    pub(super) fn misses(&mut self) {
        self.is_withheld |= self.observer.unseen() == Unseen::Break;
    }

    /// Whether nothing more may go out, that of this chunk included.
    pub(super) fn is_withheld(&self) -> bool {
        self.is_withheld
    }
}

#[cfg(test)]
mod tests;
