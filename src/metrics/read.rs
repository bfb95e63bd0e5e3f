//! What the counters say to the live view.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use prometheus::core::Collector;
use prometheus::proto::Metric;

use super::{Metrics, NONE};
use crate::cluster::Cluster;
use crate::live::{BackendCounts, ClusterCounts, RouteCounts, Sample};
use crate::outcome::Phase;
use crate::snapshot::Snapshot;

/// Most backends that are sampled, and shown, over all clusters: what is kept of a minute is 300 bytes a sample and
/// backend, and nobody reads more lines.
pub const BACKENDS_MAX: usize = 512;

impl Metrics {
    /// The counters of what the configuration in force names.
    pub fn sample(&self, snapshot: &Snapshot, at: Instant) -> Sample {
        let mut room = BACKENDS_MAX;
        let clusters = snapshot
            .clusters
            .iter()
            .map(|cluster| (Arc::clone(&cluster.config.name), cluster_counts(cluster, &mut room)));
        let clusters = clusters.collect();
        Sample { at, routes: self.routes(snapshot), clusters, cancels: self.cancels() }
    }

    /// Event streams being relayed on a route.
    pub fn streams_active(&self, route: &str) -> u64 {
        u64::try_from(self.streams.with_label_values(&[route]).get()).unwrap_or(0)
    }

    fn routes(&self, snapshot: &Snapshot) -> HashMap<Arc<str>, RouteCounts> {
        let (requests, failures) = (sums(&self.requests, "route"), self.failures.counts());
        let saved = sums(&self.output.tokens_saved, "route");
        let counts = |name: &Arc<str>| {
            let (failed, refused) = failures.get(&Some(Arc::clone(name))).copied().unwrap_or_default();
            RouteCounts {
                requests: requests.get(&**name).copied().unwrap_or(0),
                saved: saved.get(&**name).copied().unwrap_or(0),
                failed,
                refused,
                first_token: self.first_token.read(name),
                gaps: self.gaps.read(name),
            }
        };
        let names = snapshot.routes.iter().map(|route| Arc::clone(&route.name));
        let mut routes: HashMap<_, _> = names.map(|name| (Arc::clone(&name), counts(&name))).collect();
        let (failed, refused) = failures.get(&None).copied().unwrap_or_default();
        let requests = requests.get(NONE).copied().unwrap_or(0);
        routes.insert(NONE.into(), RouteCounts { requests, failed, refused, ..RouteCounts::default() });
        routes
    }

    fn cancels(&self) -> [u64; Phase::ALL.len()] {
        Phase::ALL.map(|phase| self.cancels.with_label_values(&[phase.as_str()]).get())
    }
}

fn cluster_counts(cluster: &Cluster, room: &mut usize) -> ClusterCounts {
    let sampled = cluster.backends.len().min(*room);
    *room -= sampled;
    let backends = cluster.backends[..sampled].iter();
    let backends =
        backends.map(|backend| (Arc::clone(&backend.name), BackendCounts::from(&backend.state.output)));
    ClusterCounts { output: BackendCounts::from(&cluster.state.output), backends: backends.collect() }
}

/// The sums of a counter's series by one of their labels.
fn sums(counter: &impl Collector, label: &str) -> HashMap<String, u64> {
    let mut sums = HashMap::new();
    for metric in counter.collect().iter().flat_map(|family| family.get_metric()) {
        *sums.entry(value(metric, label)).or_default() += metric.get_counter().get_value() as u64;
    }
    sums
}

fn value(metric: &Metric, label: &str) -> String {
    let pair = metric.get_label().iter().find(|pair| pair.name() == label);
    pair.map_or_else(String::new, |pair| pair.value().to_owned())
}
