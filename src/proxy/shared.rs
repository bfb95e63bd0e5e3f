//! What all exchanges share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use std::net::IpAddr;
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwap;

use super::exchange::Exchange;
use crate::access_log::AccessLog;
use crate::drain::Drain;
use crate::edge::{Connections, Witness};
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::rejection::Rejection;
use crate::request_id;
use crate::snapshot::Snapshot;

/// What all exchanges share.
pub struct Shared {
    /// The configuration in force.
    pub snapshot: ArcSwap<Snapshot>,
    /// The end of the process.
    pub drain: Arc<Drain>,
    /// Request bytes held.
    pub ledger: Arc<Ledger>,
    /// Response bytes held.
    pub stream_bytes: Arc<AtomicUsize>,
    /// Client connections.
    pub connections: Arc<Connections>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The access log.
    pub access: AccessLog,
    /// Request ids.
    pub ids: request_id::Source,
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

    fn turned_away(&self) {
        self.metrics.turned_away();
    }
}
