//! From a plan to a response head: connect or reuse, send, read the head.
//!
//! One rule of its own: a pooled connection that dies without a single byte of an answer was closed
//! by the engine before it saw the request (uvicorn closes idle connections after 5 s). The request
//! goes out once more on a fresh connection to the same node. That is no attempt and costs no budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingora::protocols::Stream;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::{Error, ErrorType};

use super::dial::Dialer;
use super::duplex::Duplex;
use super::plan::Plan;
use crate::failure::Failure;
use crate::outcome::Phase;

/// Interim (1xx) answers that are skipped before an upstream is taken for broken.
const INTERIM_MAX: usize = 8;

/// A connection that the engine had closed answers a request with a reset within a round trip.
const STALE_WITHIN: Duration = Duration::from_secs(1);

/// A connection whose response head has been read.
pub(super) struct Opened(pub(super) Box<HttpSession>);

/// Connects, sends `head` and the plan's body, and reads the head of the answer.
pub(super) async fn open(dialer: Arc<Dialer>, plan: Arc<Plan>, head: Bytes) -> Result<Opened, Failure> {
    if let Some(pooled) = dialer.pooled(&plan).await {
        match exchange_heads(pooled, head.clone(), &plan).await {
            Err(Lost { failure: Failure::Disconnected, received: false, .. }) if was_stale(&plan) => {
                plan.link.mark_resent();
            }
            done => return done.map_err(|lost| lost.told(&plan)),
        }
    }
    let fresh = dialer.connect(&plan).await?;
    exchange_heads(fresh, head, &plan).await.map_err(|lost| lost.told(&plan))
}

/// Whether a pooled connection that has just died was dead already: it went right after the request was
/// sent, and this is the exchange's first such loss. One that dies later was at work on the request.
fn was_stale(plan: &Plan) -> bool {
    plan.may_resend && plan.link.sent().is_some_and(|sent| sent.elapsed() < STALE_WITHIN)
}

/// A connection that was lost before its head was read.
struct Lost {
    failure: Failure,
    received: bool,
    cause: Option<String>,
}

impl Lost {
    /// What it means for the exchange, its cause noted.
    fn told(self, plan: &Plan) -> Failure {
        if let Some(cause) = self.cause {
            plan.link.explain(cause);
        }
        match self.failure {
            Failure::Disconnected if !self.received => Failure::Unanswered,
            failure => failure,
        }
    }
}

async fn exchange_heads(stream: Stream, head: Bytes, plan: &Plan) -> Result<Opened, Lost> {
    plan.link.mark_sent(Instant::now());
    plan.link.enter(if plan.streaming { Phase::FirstEvent } else { Phase::Unary });
    let mut session = Box::new(HttpSession::new(Box::new(Duplex::new(stream, head, plan.body()))));
    match read_head(&mut session).await {
        Ok(()) => Ok(Opened(session)),
        Err((failure, cause)) => Err(Lost { failure, received: Duplex::received(&session) > 0, cause }),
    }
}

/// The failure comes with what the system says of it.
pub(super) async fn read_head(session: &mut HttpSession) -> Result<(), (Failure, Option<String>)> {
    for _ in 0..=INTERIM_MAX {
        session.read_response().await.map_err(|error| (classify(&error), cause(&error)))?;
        match session.get_status().map(|status| status.as_u16()) {
            Some(101) | None => return Err((Failure::NotHttp, None)),
            Some(100..=199) => {}
            Some(_) => return Ok(()),
        }
    }
    Err((Failure::NotHttp, None))
}

/// What a read error of Pingora's HTTP/1 client means.
pub(super) fn classify(error: &Error) -> Failure {
    match error.etype() {
        ErrorType::ConnectionClosed
        | ErrorType::ReadError
        | ErrorType::WriteError
        | ErrorType::ReadTimedout => Failure::Disconnected,
        _ => Failure::NotHttp,
    }
}

/// The system's own error behind one of Pingora's.
pub(super) fn of_system(error: &Error) -> Option<&std::io::Error> {
    let root: &(dyn std::error::Error + 'static) = error.root_cause();
    let mut chain = std::iter::successors(Some(root), |error| error.source());
    chain.find_map(|error| error.downcast_ref::<std::io::Error>())
}

/// What the system says of an error, as in "connection refused"; `None` where it says nothing.
pub(super) fn cause(error: &Error) -> Option<String> {
    let told = of_system(error)?.to_string();
    // The number behind it says the same again.
    let words = told.split(" (os error").next().unwrap_or(&told);
    Some(words.to_ascii_lowercase())
}
