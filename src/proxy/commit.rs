//! The moment of commitment: the head of an answer becomes the client's, and how its body passes is settled.

use std::sync::Arc;

use pingora::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::answer::Mode;
use super::attempt::Attempt;
use super::exchange::Exchange;
use super::hooked::{self, Withheld};
use super::shared::Shared;
use super::stream::Stream;
use super::{admit, cors, head as heads, http10, peer, session as sessions};
use crate::config::Route;
use crate::hooks::Observe;
use crate::metrics::Streaming;
use crate::openai::{Dialect, Unary};
use crate::rejection::Rejection;
use crate::upstream;

/// Edits the head that the client will read, and decides what happens to the body behind it.
///
/// # Errors
/// A head that cannot be written, or an answer that its observer may not see.
pub(super) fn answer(
    shared: &Shared,
    session: &mut Session,
    head: &mut ResponseHeader,
    exchange: &mut Exchange,
) -> Result<()> {
    let is_stream = upstream::is_event_stream(head);
    exchange.ending.status = head.status.as_u16();
    exchange.answer.mention = sessions::may_complain(head);
    exchange.answer.upstream_id = heads::response(head, &exchange.id, is_stream)?;
    let mut observer = hooked::begin(shared, exchange);
    if let Some(observer) = observer.take_if(|_| !is_stream) {
        let whole = hooked::whole(observer, head, exchange);
        exchange.answer.whole = whole.map_err(|Withheld| peer::refuse(exchange, Rejection::Withheld))?;
    }
    cors::strip(head);
    cors::write(head, exchange)?;
    admit::tell(head, exchange)?;
    http10::note_open_end(session, head, exchange);
    exchange.answer.mode = mode(shared, head, exchange, observer);
    if shared.drain.is_leaving() {
        session.set_keepalive(None);
    }
    Ok(())
}

/// How the body passes: an event stream by whole events, JSON with an eye on what it says, all else as it is.
fn mode(
    shared: &Shared,
    head: &ResponseHeader,
    exchange: &Exchange,
    observer: Option<Box<dyn Observe>>,
) -> Mode {
    match (&exchange.route, &exchange.attempt) {
        (Some(route), Some(attempt)) if upstream::is_event_stream(head) => {
            Mode::Reframe(Box::new(stream(shared, exchange, route, attempt, observer)))
        }
        _ if upstream::is_json(head) => Mode::Observe(Unary::default()),
        _ => Mode::Pass,
    }
}

fn stream(
    shared: &Shared,
    exchange: &Exchange,
    route: &Route,
    attempt: &Attempt,
    observer: Option<Box<dyn Observe>>,
) -> Stream {
    if let Some(client) = exchange.client.as_ref().filter(|_| attempt.link.body_follows()) {
        client.body_follows();
    }
    let active = shared.metrics.stream(Streaming {
        route: &route.name,
        cluster: exchange.cluster.as_ref().map(|cluster| Arc::clone(&cluster.state)),
        backend: Arc::clone(&attempt.in_flight.backend().state),
        arrived: exchange.arrived,
        sent: attempt.link.sent(),
    });
    let request = &exchange.request;
    Stream::new(
        route.stream.event_hold,
        (Dialect::of(&request.path), request.streaming),
        Arc::clone(&attempt.link),
        request.unasked,
        active,
        observer,
    )
}
