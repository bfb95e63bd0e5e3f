//! Counters of clients before they have a request that is served: connections, TLS, keys.

use std::path::Path;

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec};

use super::adder::Adder;
use super::{Metrics, NONE};
use crate::edge::{Handshake, TurnedAway};
use crate::keys::Denied;

/// Counters of clients at the edge.
#[derive(Debug)]
pub(super) struct EdgeCounts {
    /// Client connections that are open.
    pub(super) connections: IntGauge,
    turned_away: IntCounterVec,
    handshakes: IntCounterVec,
    certificates: IntGaugeVec,
    keys_denied: IntCounterVec,
    goaways: IntCounterVec,
}

impl EdgeCounts {
    pub(super) fn new(add: &Adder<'_>) -> prometheus::Result<Self> {
        let counts = Self {
            connections: add.gauge("connections_active", "Client connections that are open.")?,
            turned_away: add.counters(
                "connections_refused_total",
                "Client connections that were not served.",
                &["reason"],
            )?,
            handshakes: add.counters(
                "tls_handshakes_total",
                "TLS handshakes with clients by how they ended, and what was agreed on.",
                &["result", "version", "protocol"],
            )?,
            certificates: add.gauges(
                "tls_certificate_expiry_seconds",
                "The last moment at which the certificate in a file is good, in seconds since 1970.",
                &["file"],
            )?,
            keys_denied: add.counters(
                "keys_denied_total",
                "Requests refused for their API key or for want of one.",
                &["reason"],
            )?,
            goaways: add.counters(
                "h2_goaways_total",
                "HTTP/2 connections closed for what their clients did.",
                &["reason"],
            )?,
        };
        for why in TurnedAway::ALL {
            counts.turned_away.with_label_values(&[why.label()]).inc_by(0);
        }
        for denied in Denied::ALL {
            counts.keys_denied.with_label_values(&[denied.as_str()]).inc_by(0);
        }
        Ok(counts)
    }
}

impl Metrics {
    /// Counts a client connection that was not served.
    pub fn turned_away(&self, why: TurnedAway) {
        self.edge.turned_away.with_label_values(&[why.label()]).inc();
    }

    /// Counts a TLS handshake with a client.
    pub fn handshake(&self, handshake: Handshake) {
        let labels = match handshake {
            Handshake::Done { version, protocol } => ["ok", version, protocol],
            Handshake::Failed => ["failed", NONE, NONE],
            Handshake::TimedOut => ["timeout", NONE, NONE],
            Handshake::PlainHttp => ["plain_http", NONE, NONE],
        };
        self.edge.handshakes.with_label_values(&labels).inc();
    }

    /// Notes until when the certificate in a file is good, in seconds since 1970.
    pub fn certificate(&self, file: &Path, not_after: i64) {
        self.edge.certificates.with_label_values(&[&*file.to_string_lossy()]).set(not_after);
    }

    /// Counts a request that its key did not let in.
    pub fn denied(&self, denied: Denied) {
        self.edge.keys_denied.with_label_values(&[denied.as_str()]).inc();
    }

    /// Counts an HTTP/2 connection that was closed for what its client did.
    pub fn goaway(&self, reason: &str) {
        self.edge.goaways.with_label_values(&[reason]).inc();
    }
}
