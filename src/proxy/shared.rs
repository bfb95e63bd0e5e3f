//! What all exchanges share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arc_swap::ArcSwap;

use crate::access_log::AccessLog;
use crate::drain::Drain;
use crate::ledger::Ledger;
use crate::metrics::Metrics;
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
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The access log.
    pub access: AccessLog,
    /// Request ids.
    pub ids: request_id::Source,
}
