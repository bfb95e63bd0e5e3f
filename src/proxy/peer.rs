//! One attempt: a backend is picked and the plan for it made.

use std::sync::Arc;

use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};

use super::exchange::{Attempt, Exchange};
use super::shared::Shared;
use crate::cluster::{Backend, Cluster};
use crate::config::Route;
use crate::rejection::Rejection;
use crate::upstream::{Connector, Credit, Link, Plan};

/// Picks a backend and plans the attempt.
///
/// # Errors
/// No backend is left; the exchange knows what the client is to be told.
pub(super) fn start(shared: &Shared, exchange: &mut Exchange) -> Result<Box<HttpPeer>> {
    let (Some(route), Some(cluster)) = (exchange.route.clone(), exchange.cluster.clone()) else {
        return Err(refuse(exchange, Rejection::Internal));
    };
    let in_flight = match cluster.pick(&exchange.tried) {
        Ok(in_flight) => in_flight,
        Err(none) => {
            log::warn!("cluster {}: {none}", cluster.config.name);
            return Err(refuse(exchange, Rejection::NoBackend));
        }
    };
    let backend = Arc::clone(in_flight.backend());
    let link = Arc::new(Link::new(exchange.arrived));
    let peer = peer(&cluster, &route, &backend);
    let ours = Connector::ours(&peer);
    exchange.plan = Some(Arc::new(Plan {
        peer,
        backend: Arc::clone(&backend.name),
        tls: backend.tls.clone(),
        body: std::sync::Mutex::new(exchange.request.body.clone()),
        may_resend: !exchange.resent,
        streaming: exchange.request.streaming,
        total_at: exchange.arrived + route.timeouts.total,
        ready_at: exchange.ready_at,
        link: Arc::clone(&link),
        credit: Arc::new(Credit::new(route.stream.window, Arc::clone(&shared.stream_bytes))),
        drain: Arc::clone(&shared.drain),
        route,
    }));
    exchange.tried.push(backend);
    exchange.attempt = Some(Attempt { in_flight, link });
    Ok(ours)
}

/// Plain in Pingora's eyes, also under TLS; the group key keeps connections apart.
fn peer(cluster: &Cluster, route: &Route, backend: &Backend) -> HttpPeer {
    let mut peer = HttpPeer::new(backend.addr, false, String::new());
    peer.group_key = backend.tls.as_ref().map_or(0, |tls| tls.key);
    peer.options.connection_timeout = Some(route.timeouts.connect);
    peer.options.idle_timeout = Some(cluster.config.keepalive);
    peer.options.tcp_recv_buf = Some(route.stream.window);
    peer
}

fn refuse(exchange: &mut Exchange, rejection: Rejection) -> Box<Error> {
    exchange.rejection = Some(rejection);
    let mut error = Error::new(ErrorType::InternalError);
    error.set_retry(false);
    error
}
