//! One server of a cluster, and the count of what it is doing for us.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::told::Told;

/// One server: where it is and how much of our work it holds.
#[derive(Debug)]
pub struct Backend {
    /// The cluster it belongs to.
    pub cluster: Arc<str>,
    /// Its name, unique in the cluster; with the cluster's name its key across reloads.
    pub name: Arc<str>,
    /// Where it listens.
    pub addr: SocketAddr,
    /// The `Host` it is sent: constant, whatever the client wrote.
    pub host: String,
    /// TLS toward it; `None` for http.
    pub tls: Option<Arc<crate::config::Tls>>,
    /// Put before the client's path; empty for none.
    pub prefix: String,
    /// Takes no new work.
    pub drain: bool,
    /// Its failures, as far as the log tells them.
    pub failures: Told,
    in_flight: AtomicUsize,
}

impl Backend {
    /// A backend with nothing in flight.
    pub fn new(cluster: Arc<str>, config: &crate::config::Backend, addr: SocketAddr) -> Self {
        Self {
            cluster,
            name: config.name.clone(),
            addr,
            host: config.authority.clone(),
            tls: config.tls.clone(),
            prefix: config.prefix.clone(),
            drain: config.drain,
            failures: Told::default(),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// Attempts that are open on it.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// Counts one attempt on a backend for as long as it lives.
#[derive(Debug)]
pub struct InFlight(Arc<Backend>);

impl InFlight {
    /// Counts an attempt on `backend`.
    pub fn new(backend: Arc<Backend>) -> Self {
        backend.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(backend)
    }

    /// The backend it counts on.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let before = self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "an attempt was counted down twice");
    }
}
