//! From the first byte of a request to "this goes to that cluster": everything that is decided before
//! a backend is touched.

use std::sync::Arc;

use pingora::{Error, Result};
use pingora_proxy::Session;

use super::admit;
use super::arrival;
use super::body::{self, Bounds, NoBody};
use super::edit;
use super::exchange::Exchange;
use super::hooked;
use super::key;
use super::models;
use super::redirect;
use super::respond::Reply;
use super::session;
use super::shared::Shared;
use super::weigh;
use crate::cluster::load;
use crate::config::{Action, Fixed, HalfClose, Route, Streaming};
use crate::memory::Level;
use crate::openai::{Dialect, request};
use crate::rejection::Rejection;
use crate::route::{self, ByHead};
use crate::upstream::Body;

/// Largest body that is read and edited on a worker thread. Reading goes at about 1 GB/s; beyond this it
/// would hold up the streams of that thread for more than a fraction of a millisecond.
const INLINE_MAX: usize = 256 * 1024;

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

/// What is answered whatever the path: over plain HTTP that leads to https, and to a browser that asks first.
fn without_a_route(session: &Session, exchange: &Exchange) -> Result<Option<Reply>, Rejection> {
    let head = session.req_header();
    if let Some(port) = exchange.client.as_ref().and_then(|client| client.entry().redirect_https) {
        return redirect::to_https(head, port).map(Some);
    }
    let cors = &exchange.snapshot.cors;
    let granted = cors.preflight(&exchange.request.method, &head.headers);
    Ok(granted.map(|granted| Reply::preflight(granted, cors)))
}

/// What the head comes to.
enum Found {
    /// It may be one of these routes; the body decides.
    Candidates(Vec<Arc<Route>>),
    /// It needs none.
    Reply(Reply),
}

/// Looks for routes by the head. Whose request it is has to be known before anything is told of them: which methods,
/// models and headers there are is the business of those who have a key.
fn by_head(shared: &Shared, session: &Session, exchange: &mut Exchange) -> Result<Found, NoBody> {
    let request = &exchange.request;
    let headers = &session.req_header().headers;
    let found = route::by_head(&exchange.snapshot.routes, &request.path, &request.method, headers);
    if let Some(reply) = options(&found, exchange) {
        return Ok(Found::Reply(reply));
    }
    if let ByHead::Candidates(candidates) = &found {
        if let Some((route, fixed)) = route::open(candidates) {
            exchange.route = Some(Arc::clone(route));
            return Ok(Found::Reply(fixed_reply(fixed)));
        }
        exchange.likely_route = route::only(candidates).map(|route| Arc::clone(&route.name));
    }
    if !matches!(found, ByHead::Unknown) || models::is_at(&exchange.request.path) {
        admit::by_address(shared, exchange)?;
        exchange.key = key::of(shared, session.req_header(), exchange)?;
    }
    match found {
        ByHead::Candidates(candidates) => Ok(Found::Candidates(candidates)),
        ByHead::OtherMethod { allow } => Err(Rejection::MethodNotAllowed { allow }.into()),
        unknown => models(exchange, matches!(unknown, ByHead::OtherHeaders)).map(Found::Reply),
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

/// The methods of a path, which everybody may ask for: browsers do so without a key.
fn options(found: &ByHead, exchange: &Exchange) -> Option<Reply> {
    match found {
        _ if exchange.request.method != "OPTIONS" => None,
        ByHead::OtherMethod { allow } => Some(Reply::options(allow.clone())),
        ByHead::Unknown if models::is_at(&exchange.request.path) => Some(models::options()),
        _ => None,
    }
}

/// The list of models, where that is what a path is that no route takes.
fn models(exchange: &Exchange, is_routed: bool) -> Result<Reply, NoBody> {
    let Exchange { snapshot, request, key, .. } = exchange;
    match models::reply(&snapshot.routes, key.as_deref(), &request.method, &request.path) {
        Ok(reply) => Ok(reply),
        Err(Rejection::NotFound) if is_routed => Err(Rejection::NoRoute.into()),
        Err(rejection) => Err(rejection.into()),
    }
}

/// Runs what takes a time that grows with a body: off the worker threads where it is large.
pub(super) async fn inline_if_small<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Rejection> {
    if length <= INLINE_MAX {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| Rejection::Internal)
}

/// Reads the fields that are acted on. `None` for a body that is not JSON by its declared type, or
/// no body at all.
async fn peek(
    session: &Session,
    exchange: &Exchange,
    body: &Body,
) -> Result<Option<request::Peek>, Rejection> {
    if body.bytes.is_empty() || is_opaque(session, &body.bytes) {
        return Ok(None);
    }
    let (bytes, snapshot) = (body.bytes.clone(), Arc::clone(&exchange.snapshot));
    let read = move || request::peek(&bytes, &snapshot.wanted);
    let read = inline_if_small(body.bytes.len(), read).await?;
    read.map(Some).map_err(|invalid| Rejection::invalid(invalid.to_string(), invalid.field()))
}

/// Whether the body is not JSON and passes byte for byte. A body without a type is taken for JSON; one
/// with the type of a form or of plain text is too if it looks like it, as curl's default is a form's.
fn is_opaque(session: &Session, body: &[u8]) -> bool {
    let Some(kind) = session.req_header().headers.get(http::header::CONTENT_TYPE) else { return false };
    let kind = kind.as_bytes().to_ascii_lowercase();
    if memchr::memmem::find(&kind, b"json").is_some() {
        return false;
    }
    let vague: [&[u8]; 2] = [b"application/x-www-form-urlencoded", b"text/plain"];
    let is_vague = vague.iter().any(|prefix| kind.starts_with(prefix));
    !(is_vague && body.trim_ascii_start().starts_with(b"{"))
}

fn fixed_reply(fixed: &Fixed) -> Reply {
    Reply::new(fixed.status, fixed.content_type.clone(), fixed.body.clone().into_bytes().into())
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
