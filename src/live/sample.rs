//! What the counters said at one moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::cluster::Output;
use crate::outcome::Phase;
use crate::spread::{Counts, GAPS, WAITS};

/// Counts since the process began, at one moment. What is not in it has counted nothing.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The moment.
    pub at: Instant,
    /// By name.
    pub routes: HashMap<Arc<str>, RouteCounts>,
    /// By name.
    pub clusters: HashMap<Arc<str>, ClusterCounts>,
    /// Clients that left, in the order of [`Phase::ALL`].
    pub cancels: [u64; Phase::ALL.len()],
}

/// What a route has counted.
#[derive(Debug, Clone)]
pub struct RouteCounts {
    /// Exchanges that ended.
    pub requests: u64,
    /// Those that failed, by no fault of their clients.
    pub failed: u64,
    /// Those that failed by their clients' fault.
    pub refused: u64,
    /// Tokens that were not generated for clients that left.
    pub saved: u64,
    /// From arrival to the first token.
    pub first_token: Counts,
    /// Between tokens.
    pub gaps: Counts,
}

/// What a cluster has counted.
#[derive(Debug, Clone, Default)]
pub struct ClusterCounts {
    /// In all.
    pub output: BackendCounts,
    /// By name; those that are sampled.
    pub backends: HashMap<Arc<str>, BackendCounts>,
}

/// What has come out of a backend, or of all of a cluster.
#[derive(Debug, Clone)]
pub struct BackendCounts {
    /// Tokens.
    pub tokens: u64,
    /// From the request sent to the first token.
    pub first_token: Counts,
    /// Between tokens.
    pub gaps: Counts,
}

impl Sample {
    /// Nothing counted: the moment at which the process began.
    pub fn zero(at: Instant) -> Self {
        Self { at, routes: HashMap::new(), clusters: HashMap::new(), cancels: [0; Phase::ALL.len()] }
    }

    /// Tokens of all clusters.
    pub(super) fn tokens(&self) -> u64 {
        self.clusters.values().map(|cluster| cluster.output.tokens).sum()
    }

    /// A figure of all routes.
    pub(super) fn sum(&self, figure: impl Fn(&RouteCounts) -> u64) -> u64 {
        self.routes.values().map(figure).sum()
    }

    /// A histogram of all routes.
    pub(super) fn merged(&self, none: Counts, figure: impl Fn(&RouteCounts) -> &Counts) -> Counts {
        self.routes.values().fold(none, |mut sum, route| {
            sum.merge(figure(route));
            sum
        })
    }
}

impl Default for RouteCounts {
    fn default() -> Self {
        let (first_token, gaps) = (Counts::none(&WAITS), Counts::none(&GAPS));
        Self { requests: 0, failed: 0, refused: 0, saved: 0, first_token, gaps }
    }
}

impl Default for BackendCounts {
    fn default() -> Self {
        Self { tokens: 0, first_token: Counts::none(&WAITS), gaps: Counts::none(&GAPS) }
    }
}

impl From<&Output> for BackendCounts {
    fn from(output: &Output) -> Self {
        Self { tokens: output.tokens(), first_token: output.first_token.read(), gaps: output.gaps.read() }
    }
}
