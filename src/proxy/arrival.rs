//! What the head alone says of an exchange: its id, its path, and whose it is.

use http::HeaderMap;
use pingora_proxy::Session;

use super::exchange::Exchange;
use super::head;
use super::shared::Shared;
use crate::edge::Client;
use crate::forwarded::Peer;
use crate::request_id;
use crate::trace::Trace;

/// Notes all of it.
pub(super) fn note(shared: &Shared, session: &mut Session, exchange: &mut Exchange) {
    let head = session.req_header();
    let given = head.headers.get("x-request-id").and_then(|id| id.to_str().ok());
    exchange.id =
        given.filter(|id| request_id::is_well_formed(id)).map_or_else(|| shared.ids.next(), str::to_owned);
    if shared.traces.is_some() {
        let sample = exchange.snapshot.telemetry.sample;
        exchange.trace = Trace::begin(&head.headers, sample, fastrand::f64(), || fastrand::u64(..));
    }
    exchange.request.method = head.method.as_str().to_owned();
    exchange.request.path = raw_path(session).to_owned();
    exchange.request.origin = exchange.snapshot.cors.origin(&head.headers).cloned();
    let digest = session.downstream_session.digest();
    exchange.request.is_tls = digest.is_some_and(|digest| digest.ssl_digest.is_some());
    exchange.client = Client::of(digest.and_then(|digest| digest.proxy_digest.as_deref())).cloned();
    if let Some(client) = &exchange.client {
        client.unlimit();
        let peer = client.entry().peer;
        note_origin(peer, &session.req_header().headers, exchange);
    }
    if shared.drain.is_leaving() {
        session.set_keepalive(None);
    }
}

/// Whose request it is: the peer's, or that of whom a trusted proxy names.
fn note_origin(peer: Peer, headers: &HeaderMap, exchange: &mut Exchange) {
    exchange.request.client = peer.address();
    if let Some(handed) = exchange.snapshot.server.trusted_proxies.read(peer, headers) {
        exchange.request.client = handed.client;
        exchange.request.is_tls = handed.is_https.unwrap_or(exchange.request.is_tls);
        exchange.request.handed = Some(handed);
    }
}

/// The path as the client wrote it, without the query.
fn raw_path(session: &Session) -> &str {
    let target = head::origin_form(session.req_header());
    target.split('?').next().unwrap_or(target)
}
