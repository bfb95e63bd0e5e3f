//! The configuration in force: one [`Snapshot`] is pinned by each exchange for its whole life.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use crate::admission::Accounts;
use crate::cluster::{Backend, BackendState, Cluster, ClusterState, Leave};
use crate::config::{Action, Config, Limits, Log, Route, Server, Telemetry};
use crate::cors::Cors;
use crate::keys::Ring;
use crate::openai::Wanted;
use crate::session_map::SessionMap;

/// A configuration with everything built that an exchange needs.
#[derive(Debug)]
pub struct Snapshot {
    /// Grows with each configuration that came into force; the first is 1.
    pub generation: u64,
    /// How the process runs.
    pub server: Server,
    /// What is logged.
    pub log: Log,
    /// What is traced.
    pub telemetry: Telemetry,
    /// In the order of the file.
    pub routes: Vec<Arc<Route>>,
    /// In the order of the file; [`Action::Proxy`] is an index into it.
    pub clusters: Vec<Arc<Cluster>>,
    /// Backends that it names no more, and that may still be at work for us.
    pub leaving: Vec<Arc<Backend>>,
    /// Where session ids are read and put.
    pub session: SessionMap,
    /// What is looked for in bodies.
    pub wanted: Wanted,
    /// API keys.
    pub keys: Ring,
    /// What those of them have used that have limits.
    pub accounts: Accounts,
    /// Limits that are no key's.
    pub limits: Limits,
    /// Pages that may read our answers.
    pub cors: Cors,
}

impl Snapshot {
    /// Builds a snapshot; what is known of clusters and backends is taken over from the one `before` it.
    /// `resolve` turns a backend's host and port into an address.
    ///
    /// # Errors
    /// Whatever `resolve` says of the first host that has no address.
    pub fn build<E>(
        config: Config,
        before: Option<&Self>,
        resolve: impl Fn(&str, u16) -> Result<SocketAddr, E>,
    ) -> Result<Self, E> {
        let known = Known::of(before);
        let mut clusters = Vec::with_capacity(config.clusters.len());
        for cluster in config.clusters {
            let mut backends = Vec::with_capacity(cluster.backends.len());
            for backend in &cluster.backends {
                let addr = resolve(&backend.host, backend.port)?;
                let state = known.backend(&cluster.name, &backend.name);
                backends.push(Arc::new(Backend::new(cluster.name.clone(), backend, addr, state)));
            }
            let state = known.cluster(&cluster.name);
            clusters.push(Arc::new(Cluster::new(cluster, backends, state)));
        }
        let leaving = known.left_behind(&clusters);
        Ok(Self {
            leaving,
            generation: before.map_or(1, |before| before.generation + 1),
            server: config.server,
            log: config.log,
            telemetry: config.telemetry,
            routes: config.routes.into_iter().map(Arc::new).collect(),
            clusters,
            session: config.session,
            accounts: Accounts::next(&config.keys, before.map(|before| &before.accounts)),
            wanted: config.wanted,
            keys: Ring::new(config.keys),
            limits: config.limits,
            cors: config.cors,
        })
    }

    /// What it says of backends holds from now on, also for exchanges that live by an older one.
    pub fn come_into_force(&self, now: Instant) {
        self.set_limits(now);
        self.set_drains();
    }

    /// Whether each backend that is checked has had its first check.
    pub fn is_checked(&self) -> bool {
        let checked = self.clusters.iter().filter(|cluster| cluster.config.health.active.is_some());
        checked.flat_map(|cluster| &cluster.backends).all(|backend| backend.state.health.is_checked())
    }

    /// The limits alone: they must hold before the first attempt by it.
    pub fn set_limits(&self, now: Instant) {
        self.accounts.come_into_force(now);
        self.backends().for_each(|backend| backend.state.limit_to(backend.max_inflight));
    }

    /// The drains alone. Those that end come first, so that there is never a moment at which all are drained.
    pub fn set_drains(&self) {
        for drain in [false, true] {
            let backends = self.backends().filter(|backend| backend.drain == drain);
            backends.for_each(|backend| backend.state.leaving.set(Leave::File, drain));
        }
    }

    /// Every backend it names.
    pub fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.clusters.iter().flat_map(|cluster| &cluster.backends)
    }

    /// Every backend it names, and those that are leaving.
    pub fn all_backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.backends().chain(&self.leaving)
    }

    /// The cluster a route sends to, if it sends anywhere.
    pub fn cluster_of(&self, route: &Route) -> Option<&Arc<Cluster>> {
        match route.action {
            Action::Proxy(at) => self.clusters.get(at),
            Action::Respond(_) => None,
        }
    }
}

/// What an earlier snapshot knew, by key.
#[derive(Default)]
struct Known<'a> {
    clusters: HashMap<&'a str, &'a Arc<ClusterState>>,
    backends: HashMap<(&'a str, &'a str), &'a Arc<Backend>>,
}

impl<'a> Known<'a> {
    fn of(before: Option<&'a Snapshot>) -> Self {
        let mut known = Self::default();
        for cluster in before.iter().flat_map(|before| &before.clusters) {
            known.clusters.insert(&cluster.config.name, &cluster.state);
        }
        // One that is leaving and comes back finds what it has open.
        for backend in before.iter().flat_map(|before| before.all_backends()) {
            known.backends.insert((&backend.cluster, &backend.name), backend);
        }
        known
    }

    fn cluster(&self, name: &str) -> Arc<ClusterState> {
        self.clusters.get(name).map_or_else(Arc::default, |state| Arc::clone(state))
    }

    fn backend(&self, cluster: &str, name: &str) -> Arc<BackendState> {
        self.backends.get(&(cluster, name)).map_or_else(Arc::default, |backend| Arc::clone(&backend.state))
    }

    /// What is known and not in `clusters`: those that have just been taken out, which may be given work by
    /// an exchange of an older snapshot for another moment, and those that have been before and have work.
    fn left_behind(&self, clusters: &[Arc<Cluster>]) -> Vec<Arc<Backend>> {
        let named: HashSet<(&str, &str)> = clusters
            .iter()
            .flat_map(|cluster| &cluster.backends)
            .map(|backend| (&*backend.cluster, &*backend.name))
            .collect();
        let left = self.backends.iter().filter(|(key, _)| !named.contains(*key)).map(|(_, backend)| *backend);
        let at_work = |backend: &&Arc<Backend>| {
            !backend.state.leaving.is(Leave::Removed) || backend.state.in_flight() > 0
        };
        left.filter(at_work).cloned().collect()
    }
}
