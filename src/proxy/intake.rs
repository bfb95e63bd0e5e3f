//! From the first byte of a request to "this goes to that cluster": everything that is decided before
//! a backend is touched.

use std::sync::Arc;

use pingora::{Error, Result};
use pingora_proxy::Session;

use super::body::{self, Bounds, NoBody};
use super::by_head::{Found, by_head, fixed_reply, without_a_route};
use super::exchange::Exchange;
use super::peek::peek;
use super::respond::Reply;
use super::shared::Shared;
use super::{admit, arrival, edit, hooked, key, session, weigh};
use crate::cluster::load;
use crate::config::{Action, HalfClose, Route, Streaming};
use crate::memory::Level;
use crate::openai::{Dialect, request};
use crate::rejection::Rejection;
use crate::route;
use crate::upstream::Body;

/// What becomes of a request.
pub(super) enum Intake {
    /// It goes to the exchange's cluster.
    Proxy,
    /// We answer it.
    Reply(Reply),
    /// We refuse it.
    Reject(Rejection),
}

/// Takes a request in.
///
/// # Errors
/// The client left while its body was read.
pub(super) async fn take(shared: &Shared, session: &mut Session, exchange: &mut Exchange) -> Result<Intake> {
    arrival::note(shared, session, exchange);
    match decide(shared, session, exchange).await {
        Ok(intake) => Ok(intake),
        Err(NoBody::Rejected(rejection)) => Ok(Intake::Reject(rejection)),
        Err(NoBody::Lost(error)) => Err(down(error)),
    }
}

fn down(mut error: Box<Error>) -> Box<Error> {
    error.as_down();
    error
}

async fn decide(shared: &Shared, session: &mut Session, exchange: &mut Exchange) -> Result<Intake, NoBody> {
    if shared.memory.level() >= Level::Refuse {
        return Err(Rejection::Overloaded.into());
    }
    if let Some(reply) = without_a_route(session, exchange)? {
        return Ok(Intake::Reply(reply));
    }
    body::expects_continue(session)?;
    let candidates = match by_head(shared, session, exchange)? {
        Found::Candidates(candidates) => candidates,
        Found::Reply(reply) => return Ok(Intake::Reply(reply)),
    };
    admit::by_head(shared, session, exchange).await?;
    body::is_plain(session)?;
    let bounds = Bounds {
        limit: candidates.iter().map(|route| route.body_bytes).max().unwrap_or(0),
        timeout: exchange.snapshot.server.request.body_timeout,
    };
    let body = body::read(session, bounds, shared).await?;
    let peek = peek(session, exchange, &body).await?;
    exchange.request.model =
        peek.as_ref().and_then(|peek| peek.model.as_ref()).map(|model| model.value.clone());
    exchange.request.streaming = peek.as_ref().and_then(|peek| peek.stream).unwrap_or(false);
    if exchange.request.model.is_some() {
        // Before a route is sought: who may not use a model does not learn either whether it is served.
        key::may_use(shared, exchange)?;
    }
    // Which one it is depends on no guess any more, and may be none.
    exchange.likely_route = None;
    let route = choose(&candidates, exchange, peek.is_some(), &body)?;
    exchange.route = Some(Arc::clone(&route));
    guard(&route, exchange, peek.as_ref(), &body)?;
    match &route.action {
        Action::Respond(fixed) => Ok(Intake::Reply(fixed_reply(fixed))),
        Action::Proxy(_) => prepare(shared, session, exchange, &route, peek, body).await,
    }
}

/// The route among those that the head left. A request without a JSON body is routed by its path alone.
fn choose(
    candidates: &[Arc<Route>],
    exchange: &Exchange,
    is_json: bool,
    body: &Body,
) -> Result<Arc<Route>, Rejection> {
    let model = exchange.request.model.as_deref();
    let found = if is_json { route::by_model(candidates, model) } else { route::by_path_alone(candidates) };
    let unknown = || match is_json {
        true => Rejection::ModelNotFound { model: model.map(str::to_owned) },
        false => Rejection::Internal,
    };
    let route = found.ok_or_else(unknown)?;
    if body.bytes.len() as u64 > route.body_bytes {
        return Err(Rejection::BodyTooLarge { limit: route.body_bytes });
    }
    if route.streaming == Streaming::Required && !exchange.request.streaming {
        return Err(Rejection::invalid("this path only streams: send \"stream\": true", Some("stream")));
    }
    Ok(Arc::clone(route))
}

/// Everything that an attempt will need: the session, what it costs and sticks by, the edited body.
async fn prepare(
    shared: &Shared,
    session: &Session,
    exchange: &mut Exchange,
    route: &Arc<Route>,
    peek: Option<request::Peek>,
    body: Body,
) -> Result<Intake, NoBody> {
    key::may_use(shared, exchange)?;
    exchange.cluster = exchange.snapshot.cluster_of(route).cloned();
    exchange.request.session = session::read(session.req_header(), exchange, peek.as_ref(), &body)?;
    hooked::admit(shared, session, exchange)?;
    let work = weigh::work(&exchange.request.path, peek.as_ref(), &body);
    admit::by_body(shared, exchange, &work).await?;
    exchange.request.cost = load::cost(&work);
    exchange.request.tokens_max = work.tokens_max;
    exchange.request.keys = weigh::keys(exchange, peek.is_some(), &body).await?;
    edit::prepare(route, peek, exchange, body).await?;
    Ok(Intake::Proxy)
}

/// Holds a body against the guard of its route. One that is not JSON by its type could be to an engine that does
/// not ask (llama.cpp), so where something in it matters none is let pass.
fn guard(
    route: &Route,
    exchange: &Exchange,
    peek: Option<&request::Peek>,
    body: &Body,
) -> Result<(), Rejection> {
    if body.bytes.is_empty() {
        return Ok(());
    }
    let dialect = Dialect::of(&exchange.request.path);
    let Some(peek) = peek else {
        let is_read = route.guard.is_some() || (dialect != Dialect::Other && is_metered(route, exchange));
        return if is_read { Err(Rejection::NotJson) } else { Ok(()) };
    };
    match &route.guard {
        Some(guard) => guard.check(&body.bytes, &peek.places, &exchange.snapshot.wanted, dialect),
        None => Ok(()),
    }
}

/// Whether the body says what its key is charged, or what cache it may meet.
fn is_metered(route: &Route, exchange: &Exchange) -> bool {
    let snapshot = &exchange.snapshot;
    let salts =
        route.clusters().filter_map(|(at, _)| snapshot.clusters.get(at)).any(|cluster| cluster.config.salts);
    salts || exchange.key.as_ref().is_some_and(|key| key.limits.tokens.is_some())
}

/// Applies what the route says of the client's connection.
pub(super) fn bind_connection(session: &mut Session, exchange: &Exchange, route: &Route) {
    limit_connection(exchange);
    if route.stream.half_close == HalfClose::Finish {
        session.set_abort_on_close(false);
        if let Some(client) = &exchange.client {
            client.let_half_close();
        }
    }
}

/// Sets the limits of writes to the client as the route has them at the exchange's cluster.
pub(super) fn limit_connection(exchange: &Exchange) {
    if let (Some(client), Some(route)) = (&exchange.client, &exchange.route) {
        client.limit(route.stream.write_stall, exchange.total_at(), route.stream.window);
    }
}
