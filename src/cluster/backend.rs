//! One server of a cluster as one snapshot has it, and the count of what it is doing for us.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::affinity::Kept;
use super::health::Trial;
use super::pick;
use super::state::{BackendState, ClusterState};

/// One server: where it is, how it is asked, and what is known of it.
#[derive(Debug)]
pub struct Backend {
    /// The cluster it belongs to.
    pub cluster: Arc<str>,
    /// Its name, unique in the cluster; with the cluster's name its key across reloads.
    pub name: Arc<str>,
    /// Its name as a number: what keys are at home by.
    pub id: u64,
    /// Where it listens.
    pub addr: SocketAddr,
    /// The `Host` it is sent: constant, whatever the client wrote.
    pub host: String,
    /// TLS toward it; `None` for http.
    pub tls: Option<Arc<crate::config::Tls>>,
    /// Put before the client's path; empty for none.
    pub prefix: String,
    /// Its share of the work against its neighbours, at least 1.
    pub weight: u32,
    /// Attempts that it takes at once; `None` for no limit.
    pub max_inflight: Option<usize>,
    /// The file says that it takes no new work.
    pub drain: bool,
    /// What is known of it, whatever snapshot names it.
    pub state: Arc<BackendState>,
}

impl Backend {
    /// A backend of this cluster, with what is known of it.
    pub fn new(
        cluster: Arc<str>,
        config: &crate::config::Backend,
        addr: SocketAddr,
        state: Arc<BackendState>,
    ) -> Self {
        Self {
            cluster,
            name: config.name.clone(),
            id: pick::name_id(&config.name),
            addr,
            host: config.authority.clone(),
            tls: config.tls.clone(),
            prefix: config.prefix.clone(),
            weight: config.weight,
            max_inflight: config.max_inflight,
            drain: config.drain,
            state,
        }
    }

    /// Whether it is the same one, be it as another snapshot has it.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Whether it takes as many attempts as it may.
    pub fn is_full(&self) -> bool {
        self.state.limit().is_some_and(|limit| self.state.in_flight() >= limit)
    }
}

/// Counts one attempt, and its work, on a backend for as long as it lives; its end gives the slot to
/// whoever waits.
#[derive(Debug)]
pub struct InFlight {
    backend: Arc<Backend>,
    cluster: Arc<ClusterState>,
    cost: u64,
    kept: Option<Kept>,
    trial: Option<Trial>,
}

impl InFlight {
    /// Counts an attempt that costs so much on `backend`, unless it is full: looking and counting are one step,
    /// so that no race exceeds the limit.
    pub(super) fn take(backend: &Arc<Backend>, cluster: &Arc<ClusterState>, cost: u64) -> Option<Self> {
        if !backend.state.load.begin(cost, backend.state.limit()) {
            return None;
        }
        cluster.live.fetch_add(1, Ordering::Relaxed);
        let (backend, cluster) = (Arc::clone(backend), Arc::clone(cluster));
        Some(Self { backend, cluster, cost, kept: None, trial: None })
    }

    /// Notes what its affinity came to.
    pub(super) fn keeping(mut self, kept: Option<Kept>) -> Self {
        self.kept = kept;
        self
    }

    /// It is the attempt that tries a backend that is out.
    pub(super) fn on_trial(mut self, trial: Trial) -> Self {
        self.trial = Some(trial);
        self
    }

    /// The backend it counts on.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// What its affinity came to; `None` where it sticks by nothing.
    pub fn kept(&self) -> Option<Kept> {
        self.kept
    }

    /// Which trial of its backend it is, if it is one.
    pub(super) fn trial(&self) -> Option<u64> {
        self.trial.as_ref().map(Trial::number)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // The states that it counted up, whatever the configuration has become since.
        self.cluster.live.fetch_sub(1, Ordering::Relaxed);
        self.backend.state.load.end(self.cost);
        self.cluster.queue.slot_freed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_counted_than_may_be_and_each_gives_its_slot_back() {
        let config = crate::config::Backend {
            name: "b".into(),
            host: "h".into(),
            port: 1,
            authority: "h:1".into(),
            tls: None,
            prefix: String::new(),
            weight: 1,
            max_inflight: Some(2),
            drain: false,
        };
        let (state, cluster) = (Arc::default(), Arc::default());
        let backend = Arc::new(Backend::new("c".into(), &config, ([127, 0, 0, 1], 1).into(), state));
        backend.state.limit_to(backend.max_inflight);
        let first = InFlight::take(&backend, &cluster, 1).unwrap();
        let _second = InFlight::take(&backend, &cluster, 1).unwrap();
        assert!(InFlight::take(&backend, &cluster, 1).is_none());
        assert_eq!((backend.state.in_flight(), cluster.live(), backend.is_full()), (2, 2, true));
        drop(first);
        assert!(!backend.is_full());
        assert!(InFlight::take(&backend, &cluster, 1).is_some());
        assert_eq!((backend.state.in_flight(), cluster.live()), (1, 1));
    }
}
