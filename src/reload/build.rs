//! From a file to a snapshot that may be put in force: what the start does and what a reload does.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::hosts::Hosts;
use super::{InForce, Name};
use crate::config::{self, Backend, Config, Discover, Environment, Loaded, Problem, Problems, Text, Tls};
use crate::discovery;
use crate::edge::Below;
use crate::server::{self, certificates};
use crate::snapshot::Snapshot;
use crate::upstream::Connector;

/// Addresses by name, in order and each once.
pub type Found = HashMap<Name, Vec<IpAddr>>;

/// A configuration that is sound and cannot be put in force here.
#[derive(Debug, thiserror::Error)]
pub enum Unbuildable {
    /// A backend's host name has no address.
    #[error("the backend host {host:?} cannot be resolved")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// TLS toward a backend.
    #[error("{0}")]
    Tls(String),
}

/// Builds snapshots.
#[derive(Clone)]
pub struct Builder {
    /// Makes the connections to backends.
    pub connector: Connector,
    /// The listeners of clients, whose certificates are read again.
    pub below: Vec<Below>,
    /// The machine as it was at the start: what `auto` stands for does not change while the process runs.
    pub environment: Environment,
}

/// What is to be put in force.
pub(super) struct New {
    pub(super) running: InForce,
    pub(super) snapshot: Snapshot,
    /// The addresses of all its names that have some.
    pub(super) found: Found,
    /// What works but is hardly meant.
    pub(super) warnings: Vec<Problem>,
}

/// What reading the file again came to.
pub(super) enum Read {
    /// Something else than what is in force.
    New(Box<New>),
    /// The same, perhaps with other remarks.
    Same(Text),
}

impl Builder {
    /// Reads the file and builds what it says. Blocks.
    ///
    /// # Errors
    /// Every problem, with file and line.
    pub(super) fn reload(
        &self,
        file: &Path,
        running: &InForce,
        mut found: Found,
        before: &Snapshot,
    ) -> Result<Read, Problems> {
        let loaded = config::load(file, &self.environment)?;
        let name = file.display().to_string();
        config::needs_restart(&running.config, &loaded).map_err(|problems| problems.in_file(&*name))?;
        let certificates = self.certificates(&loaded.config, &name)?;
        let Loaded { config, text, warnings, .. } = loaded;
        let hosts = Hosts::of(&running.config, before);
        if config == *running.config && !hosts.have_moved() {
            self.renew(&certificates);
            return Ok(Read::Same(text));
        }
        look_up(&config, &mut found);
        if let Some(empty) = emptied(&config, &found, before) {
            return Err(Problems::here_and_now(empty).in_file(&*name));
        }
        let snapshot = self
            .snapshot(&config, &found, Some(before), |host, port| hosts.look_up(host, port))
            .map_err(|error| Problems::here_and_now(server::chain(&error)).in_file(&*name))?;
        self.renew(&certificates);
        let running = InForce { config: Arc::new(config), text };
        Ok(Read::New(Box::new(New { running, snapshot, found, warnings })))
    }

    /// Builds the snapshot of a configuration and of the addresses that names have; `resolve` says where the
    /// host of a backend's URL is. Blocks.
    ///
    /// # Errors
    /// A host name cannot be resolved, or TLS toward a backend not be set up.
    pub fn snapshot(
        &self,
        config: &Config,
        found: &Found,
        before: Option<&Snapshot>,
        resolve: impl Fn(&str, u16) -> Result<SocketAddr, Unbuildable>,
    ) -> Result<Snapshot, Unbuildable> {
        let mut config = config.clone();
        for cluster in &mut config.clusters {
            let Some(discover) = &cluster.discover else { continue };
            let known: HashSet<Arc<str>> =
                cluster.backends.iter().map(|backend| Arc::clone(&backend.name)).collect();
            let addrs = found.get(&name_of(discover)).into_iter().flatten();
            let discovered = addrs.map(|addr| discovered(*addr, discover));
            cluster.backends.extend(discovered.filter(|backend| !known.contains(&backend.name)));
        }
        self.connector.prepare(tls(&config)).map_err(Unbuildable::Tls)?;
        Snapshot::build(config, before, resolve)
    }

    /// The certificates of the listeners, read anew but not yet used.
    fn certificates(&self, config: &Config, name: &str) -> Result<Vec<Below>, Problems> {
        server::below(&config.server.listen).map_err(|error| {
            let place = error.line().map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"));
            Problems::here_and_now(server::chain(&error)).in_file(place)
        })
    }

    fn renew(&self, fresh: &[Below]) {
        for (running, fresh) in self.below.iter().zip(fresh) {
            if let (Below::Tls(running), Below::Tls(fresh)) = (running, fresh) {
                running.renew(fresh).iter().for_each(certificates::tell_renewed);
            }
        }
    }
}

/// Forgets names that the configuration does not have, and looks up those that are new in it, so that a
/// new cluster does not begin without a backend.
fn look_up(config: &Config, found: &mut Found) {
    let names: HashSet<Name> = names(config).collect();
    found.retain(|name, _| names.contains(name));
    let fresh: Vec<Name> = names.into_iter().filter(|name| !found.contains_key(name)).collect();
    if !fresh.is_empty() {
        found.extend(Handle::current().block_on(discovery::first_look(fresh.into_iter())));
    }
}

/// A cluster that would lose its last backend, as its new name has no address: a name is soon mistyped.
fn emptied(config: &Config, found: &Found, before: &Snapshot) -> Option<String> {
    let has_backends = |name: &str| {
        before.clusters.iter().any(|known| &*known.config.name == name && !known.backends.is_empty())
    };
    let mut clusters = config.clusters.iter().filter(|cluster| cluster.backends.is_empty());
    clusters.find_map(|cluster| {
        let discover = cluster.discover.as_ref()?;
        let is_lost = has_backends(&cluster.name) && !found.contains_key(&name_of(discover));
        is_lost.then(|| {
            format!(
                "clusters.{}.discover.dns: {}:{} has no address, and the cluster would be left without a backend",
                cluster.name, discover.host, discover.port
            )
        })
    })
}

/// The names whose addresses are backends.
pub fn names(config: &Config) -> impl Iterator<Item = Name> {
    config.clusters.iter().filter_map(|cluster| cluster.discover.as_ref()).map(name_of)
}

/// TLS settings toward all backends.
pub(super) fn tls(config: &Config) -> impl Iterator<Item = &Tls> {
    let backends = config.clusters.iter().flat_map(|cluster| &cluster.backends);
    backends.filter_map(|backend| backend.tls.as_deref())
}

/// The name that is asked for.
fn name_of(discover: &Discover) -> Name {
    (discover.host.clone(), discover.port)
}

/// A backend that was found by its address: that is its name, and `Host` is what was asked for.
fn discovered(addr: IpAddr, discover: &Discover) -> Backend {
    Backend {
        name: Arc::from(addr.to_string()),
        host: addr.to_string(),
        port: discover.port,
        authority: format!("{}:{}", discover.host, discover.port),
        tls: None,
        prefix: String::new(),
        weight: 1,
        max_inflight: None,
        drain: false,
    }
}
