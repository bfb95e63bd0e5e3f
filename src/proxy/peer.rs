//! One attempt: a backend is found and the plan for it made.

use std::sync::Arc;
use std::time::Instant;

use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};
use pingora_proxy::Session;

use super::attempt::Attempt;
use super::exchange::Exchange;
use super::holders::Answering;
use super::shared::Shared;
use super::slot;
use crate::cluster::{Backend, Cluster, Watched};
use crate::config::{Route, Timeouts};
use crate::memory::Level;
use crate::rejection::Rejection;
use crate::upstream::{Connector, Credit, Link, Plan};

/// Finds a backend and plans the attempt.
///
/// # Errors
/// There is none; the exchange knows what the client is to be told. Or the client left.
pub(super) async fn start(
    shared: &Shared,
    session: &mut Session,
    exchange: &mut Exchange,
) -> Result<Box<HttpPeer>> {
    let in_flight = slot::find(shared, session, exchange).await?;
    // It was let in, and stood in a queue, or was only just about to begin.
    if shared.memory.level() >= Level::Refuse {
        return Err(refuse(exchange, Rejection::Overloaded));
    }
    let known = (exchange.route.clone(), exchange.cluster.clone(), exchange.timeouts().cloned());
    let (Some(route), Some(cluster), Some(timeouts)) = known else {
        return Err(refuse(exchange, Rejection::Internal));
    };
    let backend = Arc::clone(in_flight.backend());
    if let Some(kept) = in_flight.kept() {
        shared.metrics.kept(&cluster.config.name, kept);
    }
    let link = Arc::new(Link::new(exchange.arrived));
    let credit = Arc::new(Credit::new(route.stream.window, Arc::clone(&shared.memory)));
    let held = exchange.client.as_ref().map(|client| Answering::begin(&shared.memory, client, &credit));
    let peer = peer(&cluster, &route, &timeouts, &backend);
    let ours = Connector::ours(&peer);
    exchange.plan = Some(Arc::new(Plan {
        peer,
        backend: Arc::clone(&backend.name),
        state: Arc::clone(&backend.state),
        tls: backend.tls.clone(),
        body: std::sync::Mutex::new(exchange.request.body.clone()),
        may_resend: !exchange.resent,
        streaming: exchange.request.streaming,
        total_at: exchange.total_at(),
        timeouts,
        ready_at: exchange.ready_at,
        link: Arc::clone(&link),
        credit,
        drain: Arc::clone(&shared.drain),
        route,
    }));
    exchange.note_model(&backend, false);
    let progress = Arc::<Link>::clone(&link);
    let watched = Watched::new(Arc::clone(&backend.state), exchange.request.streaming, progress);
    if let Some(trace) = &mut exchange.trace {
        let names = (Arc::clone(&backend.cluster), Arc::clone(&backend.name));
        trace.attempt(names.0, names.1, Instant::now(), fastrand::u64(..));
    }
    exchange.tried.push(backend);
    exchange.attempt = Some(Attempt {
        in_flight,
        link,
        status: None,
        retry_after: None,
        is_followed: false,
        _second: exchange.second.take(),
        _watched: watched,
        _held: held,
    });
    Ok(ours)
}

/// Plain in Pingora's eyes, also under TLS; the group key keeps connections apart.
fn peer(cluster: &Cluster, route: &Route, timeouts: &Timeouts, backend: &Backend) -> HttpPeer {
    let mut peer = HttpPeer::new(backend.addr, false, String::new());
    peer.group_key = backend.tls.as_ref().map_or(0, |tls| tls.key);
    peer.options.connection_timeout = Some(timeouts.connect);
    peer.options.idle_timeout = Some(cluster.config.keepalive);
    peer.options.tcp_recv_buf = Some(route.stream.window);
    peer
}

/// The error that ends the exchange with `rejection`.
pub(super) fn refuse(exchange: &mut Exchange, rejection: Rejection) -> Box<Error> {
    exchange.rejection = Some(rejection);
    let mut error = Error::new(ErrorType::InternalError);
    error.set_retry(false);
    error
}
