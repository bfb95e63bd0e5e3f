//! What the head of a request decides: an answer that needs no body, or the routes that are left.
//!
//! Nothing is told of routes, methods or models to who has no key, but what browsers ask without one.

use std::sync::Arc;

use pingora_proxy::Session;

use super::body::NoBody;
use super::exchange::Exchange;
use super::respond::Reply;
use super::shared::Shared;
use super::{admit, key, models, redirect};
use crate::config::{Fixed, Route};
use crate::rejection::Rejection;
use crate::route::{self, ByHead};

/// What is answered whatever the path: over plain HTTP that leads to https, and to a browser that asks first.
pub(super) fn without_a_route(session: &Session, exchange: &Exchange) -> Result<Option<Reply>, Rejection> {
    let head = session.req_header();
    if let Some(port) = exchange.client.as_ref().and_then(|client| client.entry().redirect_https) {
        return redirect::to_https(head, port).map(Some);
    }
    let cors = &exchange.snapshot.cors;
    let granted = cors.preflight(&exchange.request.method, &head.headers);
    Ok(granted.map(|granted| Reply::preflight(granted, cors)))
}

/// What the head comes to.
pub(super) enum Found {
    /// It may be one of these routes; the body decides.
    Candidates(Vec<Arc<Route>>),
    /// It needs none.
    Reply(Reply),
}

/// Looks for routes by the head. Whose request it is has to be known before anything is told of them: which methods,
/// models and headers there are is the business of those who have a key.
pub(super) fn by_head(shared: &Shared, session: &Session, exchange: &mut Exchange) -> Result<Found, NoBody> {
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

/// The answer that a route has ready.
pub(super) fn fixed_reply(fixed: &Fixed) -> Reply {
    Reply::new(fixed.status, fixed.content_type.clone(), fixed.body.clone().into_bytes().into())
}
