//! A cluster: backends that serve the same thing, and the choice among them.

mod backend;
mod pick;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use backend::{Backend, InFlight};

/// Why a cluster had no backend to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoBackend {
    /// Every backend is being drained.
    #[error("every backend is being drained")]
    AllDraining,
    /// Every backend that takes work has been tried for this exchange.
    #[error("every backend has been tried")]
    AllTried,
}

/// Backends that serve the same thing.
#[derive(Debug)]
pub struct Cluster {
    /// Its settings.
    pub config: crate::config::Cluster,
    /// Its backends, in the order of the file.
    pub backends: Vec<Arc<Backend>>,
    /// Where the next round begins.
    cursor: AtomicUsize,
}

impl Cluster {
    /// A cluster over these backends.
    pub fn new(config: crate::config::Cluster, backends: Vec<Arc<Backend>>) -> Self {
        Self { config, backends, cursor: AtomicUsize::new(0) }
    }

    /// Picks the backend for the next attempt, never one of `tried`.
    ///
    /// # Errors
    /// [`NoBackend`] when nothing is left to pick from.
    pub fn pick(&self, tried: &[Arc<Backend>]) -> Result<InFlight, NoBackend> {
        let usable: Vec<bool> = self.backends.iter().map(|backend| is_usable(backend, tried)).collect();
        // Another attempt of the same exchange takes no turn of its own: where every second node is down it
        // would bring each exchange to a dead one first.
        let turn = match tried.last().and_then(|last| self.place_of(last)) {
            Some(at) => at + 1,
            None => self.cursor.fetch_add(1, Ordering::Relaxed),
        };
        match pick::round_robin(&usable, turn) {
            Some(at) => Ok(InFlight::new(self.backends[at].clone())),
            None if self.backends.iter().all(|backend| backend.drain) => Err(NoBackend::AllDraining),
            None => Err(NoBackend::AllTried),
        }
    }

    fn place_of(&self, backend: &Arc<Backend>) -> Option<usize> {
        self.backends.iter().position(|other| Arc::ptr_eq(backend, other))
    }

    /// Whether a backend is left that could still be tried.
    pub fn has_untried(&self, tried: &[Arc<Backend>]) -> bool {
        self.backends.iter().any(|backend| is_usable(backend, tried))
    }
}

fn is_usable(backend: &Arc<Backend>, tried: &[Arc<Backend>]) -> bool {
    !backend.drain && !tried.iter().any(|other| Arc::ptr_eq(backend, other))
}
