//! The configuration in force: one [`Snapshot`] is pinned by each exchange for its whole life.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::cluster::{Backend, Cluster};
use crate::config::{Action, Config, Route, Server};
use crate::session_map::SessionMap;

/// A configuration with everything built that an exchange needs.
#[derive(Debug)]
pub struct Snapshot {
    /// Grows with each configuration that came into force; the first is 1.
    pub generation: u64,
    /// How the process runs.
    pub server: Server,
    /// In the order of the file.
    pub routes: Vec<Arc<Route>>,
    /// In the order of the file; [`Action::Proxy`] is an index into it.
    pub clusters: Vec<Arc<Cluster>>,
    /// Where session ids are read and put.
    pub session: SessionMap,
}

impl Snapshot {
    /// Builds the first snapshot. `resolve` turns a backend's host and port into an address.
    ///
    /// # Errors
    /// Whatever `resolve` says of the first host that has no address.
    pub fn first<E>(config: Config, resolve: impl Fn(&str, u16) -> Result<SocketAddr, E>) -> Result<Self, E> {
        let mut clusters = Vec::with_capacity(config.clusters.len());
        for cluster in config.clusters {
            let mut backends = Vec::with_capacity(cluster.backends.len());
            for backend in &cluster.backends {
                let addr = resolve(&backend.host, backend.port)?;
                backends.push(Arc::new(Backend::new(cluster.name.clone(), backend, addr)));
            }
            clusters.push(Arc::new(Cluster::new(cluster, backends)));
        }
        Ok(Self {
            generation: 1,
            server: config.server,
            routes: config.routes.into_iter().map(Arc::new).collect(),
            clusters,
            session: config.session,
        })
    }

    /// The cluster a route sends to, if it sends anywhere.
    pub fn cluster_of(&self, route: &Route) -> Option<&Arc<Cluster>> {
        match route.action {
            Action::Proxy(at) => self.clusters.get(at),
            Action::Respond(_) => None,
        }
    }
}
