//! The session of one attempt: a small state machine that Pingora reads a response from.
//!
//! ```text
//! Idle --head given--> Opening --response head--> Body --end--> Done
//!                         |                         |
//!                         +--------- failed --------+--> Done (the connection is dropped at once)
//! ```
//!
//! When the response head is let through, `commit` decides.

mod reading;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use http::{Method, StatusCode};
use pingora::protocols::Stream;
use pingora::protocols::http::v1::client::{HttpSession, http_req_header_to_wire};
use pingora_http::{RequestHeader, ResponseHeader};

use super::dial::Dialer;
use super::doubt::Doubt;
use super::drive::Drive;
use super::duplex::Duplex;
use super::is_event_stream;
use super::opening::{Opened, open};
use super::plan::Plan;
use super::whole::Whole;
use crate::deadline::Due;
use crate::failure::Failure;
use crate::outcome::Phase;

/// What reading came to.
pub(super) enum Step {
    /// The response head is there: see `Session::real_head`.
    Head,
    /// Upstream bytes.
    Chunk(Bytes),
    /// The response is complete.
    End,
    /// The attempt is over.
    Failed(Failure),
    /// A deadline has passed.
    Due(Due),
}

type Opening = Pin<Box<dyn Future<Output = Result<Opened, Failure>> + Send>>;

/// Where the attempt is.
pub(super) enum Stage {
    /// No request has been given.
    Idle,
    /// Connecting, sending, waiting for the head. The mutex is never locked: it only makes a future
    /// that no two threads poll at once shareable in the eyes of the compiler.
    Opening(Mutex<Opening>),
    /// The body is being read.
    Body(Box<HttpSession>),
    /// Nothing more will come.
    Done,
}

/// One attempt on one backend.
pub struct Session {
    dialer: Arc<Dialer>,
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) stage: Stage,
    pub(super) drive: Drive,
    /// The head that Pingora is given when committed early, before there is one of the engine's.
    pub(super) early: Option<Box<ResponseHeader>>,
    /// Chunks that came before the head was let through.
    pub(super) held: VecDeque<Bytes>,
    /// A failure that is told once `held` chunks and drained bytes are out.
    pub(super) pending: Option<Failure>,
    /// The body is an event stream that the filters reframe.
    pub(super) reframed: bool,
    /// The last chunk has been given out.
    pub(super) finished: bool,
    /// The ends of the body, by which a half one is known.
    pub(super) whole: Whole,
    /// Whether the body has ended where it may not have.
    pub(super) doubt: Doubt,
    /// The response is complete, so the connection may serve again.
    clean: bool,
    /// The response has no body, whatever its head says: the request was a HEAD.
    pub(super) bodiless: bool,
    /// Break the framing at the next read.
    broken: bool,
    /// How often the wait for commitment has been interrupted, which is how often the rest of
    /// Pingora's loop has run.
    pub(super) waits: u8,
}

impl Session {
    pub(super) fn new(dialer: Arc<Dialer>) -> Self {
        Self {
            dialer,
            plan: None,
            stage: Stage::Idle,
            drive: Drive::new(),
            early: None,
            held: VecDeque::new(),
            pending: None,
            reframed: false,
            finished: false,
            whole: Whole::default(),
            doubt: Doubt::None,
            clean: false,
            bodiless: false,
            broken: false,
            waits: 0,
        }
    }

    /// Takes the request. Nothing is connected before the response is read.
    pub(super) fn begin(&mut self, mut head: RequestHeader, now: Instant) -> Result<(), Failure> {
        let plan = head.extensions_mut().remove::<Arc<Plan>>().ok_or(Failure::NotHttp)?;
        let wire = http_req_header_to_wire(&head).ok_or(Failure::NotHttp)?.freeze();
        self.bodiless = head.method == Method::HEAD;
        self.drive.begin(&plan, now);
        let opening: Opening = Box::pin(open(Arc::clone(&self.dialer), Arc::clone(&plan), wire));
        self.stage = Stage::Opening(Mutex::new(opening));
        self.plan = Some(plan);
        Ok(())
    }

    /// Notes the failure and lets go of the connection.
    pub(super) fn lose(&mut self, failure: Failure) -> Failure {
        if let Some(plan) = &self.plan {
            plan.link.fail(failure);
        }
        self.close();
        failure
    }

    pub(super) fn close(&mut self) {
        if !matches!(self.stage, Stage::Done) {
            self.stage = Stage::Done;
            if let Some(plan) = &self.plan {
                plan.link.mark_closed(Instant::now());
            }
        }
    }

    /// The engine's own response head.
    pub(super) fn real_head(&self) -> Option<&ResponseHeader> {
        match &self.stage {
            Stage::Body(session) => session.resp_header(),
            _ => None,
        }
    }

    pub(super) fn opened(&mut self, session: Box<HttpSession>) {
        if let Some(plan) = &self.plan {
            plan.drop_body();
            let is_stream = session.resp_header().is_some_and(is_event_stream);
            plan.link.enter(if is_stream { Phase::FirstEvent } else { Phase::Unary });
            self.drive.answered(is_stream);
            self.whole = session.resp_header().filter(|_| !self.bodiless).map(Whole::of).unwrap_or_default();
            if self.whole.is_open() {
                plan.link.mark_open_ended();
            }
        }
        self.stage = Stage::Body(session);
    }

    pub(super) fn complete(&mut self) {
        self.clean = true;
    }

    pub(super) fn fail_later(&mut self, failure: Failure) {
        self.pending = Some(failure);
    }

    /// The connection, if it may serve another request.
    pub(super) async fn into_idle(mut self) -> Option<Stream> {
        let idle = match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Body(session) if self.clean && !session.resp_header().is_some_and(promises_too_much) => {
                Some(session)
            }
            unfinished => {
                drop(unfinished);
                None
            }
        };
        self.close();
        let mut session = idle?;
        session.respect_keepalive();
        let stream = session.reuse().await?;
        stream.into_any().downcast::<Duplex>().ok().and_then(|duplex| duplex.into_idle())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// Whether an answer that has no body by its status speaks of one all the same. It may come yet, and must
/// not be taken for the answer to another request.
fn promises_too_much(head: &ResponseHeader) -> bool {
    let bodiless = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = head.headers.get(http::header::CONTENT_LENGTH);
    bodiless
        && (head.headers.contains_key(http::header::TRANSFER_ENCODING)
            || length.is_some_and(|length| length.as_bytes() != b"0"))
}

/// The failure that a passed deadline is, if it is one.
pub(super) fn failure_of(due: Due) -> Option<Failure> {
    match due {
        Due::Total => Some(Failure::TotalTimeout),
        Due::Unary => Some(Failure::UnaryTimeout),
        Due::FirstEvent => Some(Failure::FirstEventTimeout),
        Due::Idle => Some(Failure::IdleTimeout),
        Due::Hold | Due::Early | Due::Heartbeat => None,
    }
}
