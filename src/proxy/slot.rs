//! A backend for the next attempt: picked at once, waited for, or found in the next cluster of the route.
//!
//! Clusters are tried in their order. One whose backends are full is waited for first, in its queue, as long as
//! `timeouts.queue` allows; where the queue is full or the wait is over, the next cluster is asked. Backends that
//! rest come last: only where no cluster has another to offer.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use pingora::{Error, Result};
use pingora_proxy::Session;

use super::exchange::Exchange;
use super::shared::Shared;
use super::{edit, intake, peer, tell};
use crate::cluster::{Ask, Cluster, InFlight, NoBackend, Place};
use crate::rejection::Rejection;

/// Why there is no backend.
enum Nothing {
    /// This cluster has none; the next one may.
    Here(Rejection),
    /// The exchange is over: its client left, or there is no time.
    Over(Box<Error>),
}

impl From<Rejection> for Nothing {
    fn from(rejection: Rejection) -> Self {
        Self::Here(rejection)
    }
}

/// Finds a backend for the next attempt of the exchange, which is at its cluster from then on.
///
/// # Errors
/// There is none; the exchange knows what the client is to be told. Or the client left.
pub(super) async fn find(
    shared: &Shared,
    session: &mut Session,
    exchange: &mut Exchange,
) -> Result<InFlight> {
    if let Some((hop, in_flight)) = sound(exchange) {
        return enter(shared, exchange, hop, in_flight).await;
    }
    let mut why = Rejection::NoBackend;
    // Where there is another cluster, none of them is asked for backends that are in doubt before all have been
    // asked for others.
    let lenience: &[bool] = if exchange.cluster_at(1).is_some() { &[false, true] } else { &[true] };
    for &lenient in lenience {
        let mut hop = 0;
        while let Some(cluster) = exchange.cluster_at(hop) {
            match pick_or_wait(shared, session, exchange, &cluster, lenient).await {
                Ok(in_flight) => return enter(shared, exchange, hop, in_flight).await,
                Err(Nothing::Over(error)) => return Err(error),
                // That there is a queue says more than that there is nothing.
                Err(Nothing::Here(Rejection::NoBackend)) => {}
                Err(Nothing::Here(rejection)) => why = rejection,
            }
            hop += 1;
        }
    }
    let ask = exchange.ask(Instant::now());
    if let Some((hop, in_flight)) = first(exchange, |cluster| cluster.pick_resting(&ask)) {
        return enter(shared, exchange, hop, in_flight).await;
    }
    tell::refused(exchange, &why, Instant::now());
    Err(peer::refuse(exchange, why))
}

/// What the first of its clusters gives that has something to give.
fn first(
    exchange: &Exchange,
    pick: impl Fn(&Cluster) -> Result<InFlight, NoBackend>,
) -> Option<(usize, InFlight)> {
    exchange.clusters().enumerate().find_map(|(hop, cluster)| Some((hop, pick(&cluster).ok()?)))
}

/// For the last attempt, where there is more than one cluster: a backend that has not just failed for others.
/// Where all own nodes die at once, the attempt that is left is not to be spent on the next dead one.
fn sound(exchange: &Exchange) -> Option<(usize, InFlight)> {
    if exchange.tried.is_empty() || exchange.cluster_at(1).is_none() {
        return None;
    }
    let ask = Ask { sound: true, lenient: false, ..exchange.ask(Instant::now()) };
    first(exchange, |cluster| cluster.pick(&ask))
}

/// Makes the exchange one of this cluster of its route.
async fn enter(
    shared: &Shared,
    exchange: &mut Exchange,
    hop: usize,
    in_flight: InFlight,
) -> Result<InFlight> {
    exchange.waiting = false;
    exchange.cluster = exchange.cluster_at(hop);
    if exchange.hop != hop {
        exchange.hop = hop;
        intake::limit_connection(exchange);
    }
    match edit::for_cluster(shared, exchange).await {
        Ok(()) => Ok(in_flight),
        Err(rejection) => Err(peer::refuse(exchange, rejection)),
    }
}

async fn pick_or_wait(
    shared: &Shared,
    session: &mut Session,
    exchange: &mut Exchange,
    cluster: &Arc<Cluster>,
    lenient: bool,
) -> Result<InFlight, Nothing> {
    let now = Instant::now();
    match cluster.pick(&Ask { lenient, ..exchange.ask(now) }) {
        Ok(in_flight) => return Ok(in_flight),
        Err(NoBackend::AllFull) => {}
        Err(none) => {
            tell::nothing_in(cluster, none, now);
            return Err(Rejection::NoBackend.into());
        }
    }
    if now >= exchange.queue_until(now) {
        return Err(Rejection::QueueTimeout.into());
    }
    let place = cluster.join(exchange.lane(), &exchange.ask(now)).ok_or(Rejection::QueueFull)?;
    exchange.waiting = true;
    let found = wait(shared, session, exchange, (cluster, lenient), place).await;
    let over = Instant::now();
    let waited = over.saturating_duration_since(now);
    exchange.queued = Some(exchange.queued.unwrap_or_default() + waited);
    shared.metrics.queued(&cluster.config.name, waited);
    // Silence in the queue is no silence of a backend's.
    exchange.ready_at = over;
    found
}

/// Waits for a slot, and for all that may end the wait.
async fn wait(
    shared: &Shared,
    session: &mut Session,
    exchange: &mut Exchange,
    (cluster, lenient): (&Arc<Cluster>, bool),
    place: Place,
) -> Result<InFlight, Nothing> {
    let until = exchange.queue_until(Instant::now());
    let mut cut = shared.drain.cut_signal();
    let mut client = pin!(departure(session));
    loop {
        // Who rests or is ejected frees no slot when that is over: nobody would be woken.
        let cluster = exchange.newest(cluster);
        let now = Instant::now();
        let look_at = cluster.look_at(now).map_or(until, |at| at.min(until));
        tokio::select! {
            biased;
            error = &mut client => return Err(Nothing::Over(error)),
            () = poll_fn(|cx| cut.poll(cx)) => {
                return Err(Nothing::Over(peer::refuse(exchange, Rejection::ShuttingDown)));
            }
            () = poll_fn(|cx| place.poll_turn(cx)) => {
                let cluster = exchange.newest(&cluster);
                place.looks_at(&cluster);
                match cluster.pick_in_turn(&Ask { lenient, ..exchange.ask(Instant::now()) }) {
                    Ok(in_flight) => {
                        place.took();
                        return Ok(in_flight);
                    }
                    Err(NoBackend::AllFull) => place.refused(),
                    Err(_) => return Err(Rejection::NoBackend.into()),
                }
            }
            () = tokio::time::sleep_until(look_at.into()) => {
                if Instant::now() < until {
                    cluster.state.queue.nudge();
                } else if until >= exchange.total_at() {
                    return Err(Nothing::Over(peer::refuse(exchange, Rejection::TotalTimeout)));
                } else {
                    return Err(Rejection::QueueTimeout.into());
                }
            }
        }
    }
}

/// Returns when the client leaves.
async fn departure(session: &mut Session) -> Box<Error> {
    loop {
        if let Err(mut error) = session.downstream_session.read_body_or_idle(true).await {
            error.as_down();
            error.set_retry(false);
            return error;
        }
    }
}
