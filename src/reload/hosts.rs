//! Where the hosts in the URLs of backends are.
//!
//! They are looked up at the start and at each reload, and stay where they were when that fails or when
//! the answer still has where they were: a name service that is down, or that deals out its addresses in
//! another order each time, moves no backend.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use super::build::Unbuildable;
use crate::config::Config;
use crate::snapshot::Snapshot;

/// Hosts that are no addresses themselves, by name and port.
#[derive(Debug, Default)]
pub struct Hosts(HashMap<(String, u16), SocketAddr>);

impl Hosts {
    /// Where those of the running configuration are.
    pub(super) fn of(config: &Config, running: &Snapshot) -> Self {
        // A snapshot has the backends of its file first, in their order, and those that were found behind.
        let clusters = config.clusters.iter().zip(&running.clusters);
        let backends = clusters.flat_map(|(config, cluster)| config.backends.iter().zip(&cluster.backends));
        let named = backends.filter(|(config, _)| config.host.parse::<IpAddr>().is_err());
        Self(named.map(|(config, backend)| ((config.host.clone(), config.port), backend.addr)).collect())
    }

    /// Where a host is now. Blocks.
    ///
    /// # Errors
    /// It is new, and has no address.
    pub fn look_up(&self, host: &str, port: u16) -> Result<SocketAddr, Unbuildable> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(SocketAddr::new(ip, port));
        }
        let known = self.0.get(&(host.to_owned(), port)).copied();
        let answer = (host, port).to_socket_addrs().map(Vec::from_iter);
        let fresh = answer.and_then(|addrs| match known {
            Some(known) if addrs.contains(&known) => Ok(known),
            _ => addrs.first().copied().ok_or_else(|| io::ErrorKind::NotFound.into()),
        });
        match (fresh, known) {
            (Ok(addr), _) => Ok(addr),
            (Err(error), Some(known)) => {
                log::warn!("{host}:{port} cannot be looked up ({error}); it is taken to be at {known} still");
                Ok(known)
            }
            (Err(source), None) => Err(Unbuildable::Resolve { host: host.to_owned(), source }),
        }
    }

    /// Where a host was; only a new one is looked up. Blocks then.
    ///
    /// # Errors
    /// It is new, and has no address.
    pub(super) fn stay(&self, host: &str, port: u16) -> Result<SocketAddr, Unbuildable> {
        let known = self.0.get(&(host.to_owned(), port)).copied();
        known.map_or_else(|| self.look_up(host, port), Ok)
    }

    /// Whether one is elsewhere now. Blocks.
    pub(super) fn have_moved(&self) -> bool {
        let mut known = self.0.iter();
        known.any(|((host, port), addr)| self.look_up(host, *port).is_ok_and(|now| now != *addr))
    }
}
