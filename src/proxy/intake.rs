//! From the first byte of a request to "this goes to that cluster": everything that is decided before
//! a backend is touched.

use std::sync::Arc;

use pingora::protocols::l4::socket::SocketAddr;
use pingora::{Error, Result};
use pingora_proxy::Session;

use super::body::{self, Bounds, NoBody};
use super::exchange::Exchange;
use super::head;
use super::models;
use super::respond::Reply;
use super::session;
use super::shared::Shared;
use crate::config::{Action, Fixed, HalfClose, Route, Streaming};
use crate::edge::Client;
use crate::openai::patch::{self, Edits};
use crate::openai::profiles::{self, UsageFrame};
use crate::openai::{Dialect, request};
use crate::rejection::Rejection;
use crate::request_id;
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
    note_head(shared, session, exchange);
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
    body::expects_continue(session)?;
    let candidates = match by_head(session, exchange) {
        ByHead::Candidates(candidates) => candidates,
        ByHead::OtherMethod { allow } if exchange.request.method == "OPTIONS" => {
            return Ok(Intake::Reply(Reply::options(allow)));
        }
        ByHead::OtherMethod { allow } => return Err(Rejection::MethodNotAllowed { allow }.into()),
        unknown => return models(exchange, matches!(unknown, ByHead::OtherHeaders)),
    };
    let bounds = Bounds {
        limit: candidates.iter().map(|route| route.body_bytes).max().unwrap_or(0),
        timeout: exchange.snapshot.server.request.body_timeout,
    };
    let mut body = body::read(session, bounds, &shared.ledger, &shared.drain).await?;
    let peek = peek(session, exchange, &body).await?;
    let model = peek.as_ref().and_then(|peek| peek.model.as_ref()).map(|model| model.value.clone());
    let streaming = peek.as_ref().and_then(|peek| peek.stream).unwrap_or(false);
    exchange.request.model.clone_from(&model);
    exchange.request.streaming = streaming;
    // A request without a JSON body is routed by its path alone.
    let route = match &peek {
        Some(_) => {
            route::by_model(&candidates, model.as_deref()).ok_or(Rejection::ModelNotFound { model })?
        }
        None => route::by_path_alone(&candidates).ok_or(Rejection::Internal)?,
    };
    exchange.route = Some(Arc::clone(route));
    if body.bytes.len() as u64 > route.body_bytes {
        return Err(Rejection::BodyTooLarge { limit: route.body_bytes }.into());
    }
    if route.streaming == Streaming::Required && !streaming {
        let message = "this path only streams: send \"stream\": true";
        return Err(Rejection::invalid(message, Some("stream")).into());
    }
    let route = Arc::clone(route);
    match &route.action {
        Action::Respond(fixed) => Ok(Intake::Reply(fixed_reply(fixed))),
        Action::Proxy(_) => {
            exchange.cluster = exchange.snapshot.cluster_of(&route).cloned();
            exchange.request.session = session::read(session.req_header(), exchange, peek.as_ref(), &body)?;
            if let Some(peek) = &peek {
                edit(&route, peek, exchange, &mut body).await?;
            }
            exchange.request.body = Some(body);
            Ok(Intake::Proxy)
        }
    }
}

fn by_head(session: &Session, exchange: &Exchange) -> ByHead {
    let Exchange { snapshot, request, .. } = exchange;
    route::by_head(&snapshot.routes, &request.path, &request.method, &session.req_header().headers)
}

/// The list of models, where that is what a path is that no route takes.
fn models(exchange: &Exchange, is_routed: bool) -> Result<Intake, NoBody> {
    let Exchange { snapshot, request, .. } = exchange;
    match models::reply(&snapshot.routes, &request.method, &request.path) {
        Ok(reply) => Ok(Intake::Reply(reply)),
        Err(Rejection::NotFound) if is_routed => Err(Rejection::NoRoute.into()),
        Err(rejection) => Err(rejection.into()),
    }
}

/// Makes every change to a JSON body at once: usage asked for, the model's alias, the session id.
async fn edit(
    route: &Route,
    peek: &request::Peek,
    exchange: &mut Exchange,
    body: &mut Body,
) -> Result<(), Rejection> {
    let mut edits = Edits::default();
    // Where the client had not asked, the frame is ours, and is cut out again.
    exchange.request.usage_is_ours = wants_usage(route, exchange) && patch::ask_for_usage(&mut edits, peek);
    let alias = peek.model.as_ref().and_then(|model| Some((model, route.aliases.get(&model.value)?)));
    if let Some((model, alias)) = alias {
        edits.replace(model.span.clone(), &alias.as_str().into());
    }
    session::to_body(&mut edits, exchange, peek, body);
    if !edits.is_empty() {
        let bytes = body.bytes.clone();
        body.bytes = inline_if_small(bytes.len(), move || edits.apply(&bytes)).await?;
    }
    Ok(())
}

/// Runs what takes a time that grows with a body: off the worker threads where it is large.
async fn inline_if_small<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Rejection> {
    if length <= INLINE_MAX {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| Rejection::Internal)
}

/// Everything the head alone says.
fn note_head(shared: &Shared, session: &mut Session, exchange: &mut Exchange) {
    let head = session.req_header();
    let given = head.headers.get("x-request-id").and_then(|id| id.to_str().ok());
    exchange.id =
        given.filter(|id| request_id::is_well_formed(id)).map_or_else(|| shared.ids.next(), str::to_owned);
    exchange.request.method = head.method.as_str().to_owned();
    exchange.request.path = raw_path(session).to_owned();
    exchange.request.client = session.client_addr().and_then(SocketAddr::as_inet).map(|addr| addr.ip());
    let digest = session.downstream_session.digest();
    exchange.request.is_tls = digest.is_some_and(|digest| digest.ssl_digest.is_some());
    exchange.client = Client::of(digest.and_then(|digest| digest.proxy_digest.as_deref())).cloned();
    if let Some(client) = &exchange.client {
        client.unlimit();
    }
    if shared.drain.is_leaving() {
        session.set_keepalive(None);
    }
}

/// The path as the client wrote it, without the query.
fn raw_path(session: &Session) -> &str {
    let target = head::origin_form(session.req_header());
    target.split('?').next().unwrap_or(target)
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
    let read = move || request::peek(&bytes, &snapshot.session.pointers);
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

/// Whether the usage of this request is to be asked for: it streams, its endpoint knows the option, and
/// the engine would not tell it anyway.
fn wants_usage(route: &Route, exchange: &Exchange) -> bool {
    let request = &exchange.request;
    let profile = exchange.cluster.as_ref().map(|cluster| profiles::of(cluster.config.profile));
    route.include_usage
        && request.streaming
        && Dialect::of(&request.path).has_stream_options()
        && profile.is_some_and(|profile| profile.usage == UsageFrame::Asked)
}

fn fixed_reply(fixed: &Fixed) -> Reply {
    Reply::new(fixed.status, fixed.content_type.clone(), fixed.body.clone().into_bytes().into())
}

/// Applies what the route says of the client's connection.
pub(super) fn bind_connection(session: &mut Session, exchange: &Exchange, route: &Route) {
    if let Some(client) = &exchange.client {
        let total_at = exchange.arrived + route.timeouts.total;
        client.limit(route.stream.write_stall, total_at, route.stream.window);
    }
    if route.stream.half_close == HalfClose::Finish {
        session.set_abort_on_close(false);
        if let Some(client) = &exchange.client {
            client.let_half_close();
        }
    }
}
