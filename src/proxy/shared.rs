//! What all exchanges share.

use std::sync::Arc;

use std::net::IpAddr;
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwap;

use super::exchange::Exchange;
use super::tell;
use crate::access_log::AccessLog;
use crate::admission::PerIp;
use crate::cluster::{Backend, Change, Condition};
use crate::drain::Drain;
use crate::edge::{Connections, Handshake, TurnedAway, Witness};
use crate::failure::Failure;
use crate::hooks::Hooks;
use crate::keys::Strangers;
use crate::ledger::Ledger;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::rejection::Rejection;
use crate::request_id;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::told::Told;
use crate::trace::Collector;
use crate::upstream::Unheard;
use crate::usage_log::UsageLog;

/// What all exchanges share.
pub struct Shared {
    /// The configuration in force.
    pub snapshot: ArcSwap<Snapshot>,
    /// The end of the process.
    pub drain: Arc<Drain>,
    /// Request bytes held.
    pub ledger: Arc<Ledger>,
    /// Whether there is memory for clients, and who has most of it.
    pub memory: Arc<Memory>,
    /// Where limits are shared with other gateways, if they are.
    pub store: Option<Arc<Store>>,
    /// What client addresses have asked.
    pub per_ip: PerIp,
    /// Client connections.
    pub connections: Arc<Connections>,
    /// Addresses that wrong keys came from.
    pub strangers: Strangers,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The access log.
    pub access: AccessLog,
    /// The usage log.
    pub usage: UsageLog,
    /// Where traces go, if anywhere.
    pub traces: Option<Collector>,
    /// Streams whose first token was late.
    pub slow: Told,
    /// Requests whose body found no room.
    pub crowded: Told,
    /// What the program that embeds the gateway has a say in.
    pub hooks: Hooks,
    /// Request ids.
    pub ids: request_id::Source,
}

impl Shared {
    /// Counts and tells that a backend's health has changed; `why` is what a check met.
    pub fn health_changed(&self, backend: &Backend, change: &Change, why: Option<&str>, now: Instant) {
        if let Condition::Ejected(reason) = change.to
            && change.times > 0
        {
            self.metrics.ejected(backend, reason);
        }
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let line = format!("backend {}/{} ({}) {change}{why}", backend.cluster, backend.name, backend.addr);
        *backend.state.health.untold.lock() = Some(line);
        tell(backend, backend.state.health.told.note(now));
        // One that is well again may have room for those who wait.
        let snapshot = self.snapshot.load();
        let mut clusters = snapshot.clusters.iter();
        if let Some(cluster) = clusters.find(|cluster| cluster.config.name == backend.cluster) {
            cluster.state.queue.nudge();
        }
    }

    /// Tells that a backend could not be checked, for a want of ours: no more often than attempts that fail for the same.
    pub fn unchecked(&self, backend: &Backend, want: Failure, why: &Unheard, now: Instant) {
        if let Some(count) = backend.state.failures.note(want, now) {
            let others = tell::others(count - 1);
            log::warn!("{}/{} could not be checked: {why}{others}", backend.cluster, backend.name);
        }
    }

    /// Tells changes and failures that came too soon after others, once it is time: the last word is always told.
    pub fn health_told(&self, backend: &Backend, now: Instant) {
        tell(backend, backend.state.health.told.late(now));
        for (failure, count) in backend.state.failures.late(now) {
            let more = if count == 1 { "1 failure more" } else { &format!("{count} failures more") };
            log::warn!("backend {}/{}: {more} since its last line: {failure}", backend.cluster, backend.name);
        }
    }
}

/// Writes the line of a backend's last change, if it is to be told for so many.
fn tell(backend: &Backend, count: Option<u64>) {
    let Some(count) = count else { return };
    let Some(line) = backend.state.health.untold.lock().take() else { return };
    match count {
        0 | 1 => log::warn!("{line}"),
        _ => log::warn!("{line} (and {} changes before)", count - 1),
    }
}

/// Heads and connections that are refused at the edge are exchanges like any other: counted, logged, with an id.
impl Witness for Arc<Shared> {
    fn refused(&self, client: Option<IpAddr>, rejection: &Rejection) -> String {
        let mut exchange = Exchange::begin(self, Instant::now(), SystemTime::now());
        exchange.id = self.ids.next();
        exchange.request.client = client;
        exchange.end_with(rejection.outcome(), rejection);
        exchange.ending.status = rejection.status();
        exchange.id.clone()
    }

    fn turned_away(&self, why: TurnedAway) {
        self.metrics.turned_away(why);
    }

    fn handshake(&self, handshake: Handshake) {
        self.metrics.handshake(handshake);
    }

    fn goaway(&self, reason: &'static str) {
        self.metrics.goaway(reason);
    }
}
