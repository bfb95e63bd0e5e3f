//! The engine itself: its listener, what its connections share, and their end.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Settings;
use super::connection;
use super::fault::{Fault, FaultKind};
use super::stats::Stats;
use super::wire::{Over, Wire};

/// Connections that may wait to be accepted: thousands of clients come at the same instant.
const BACKLOG: u32 = 8_192;
/// Pause after a failed accept. The reason is a lack of descriptors, which only time cures.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A simulated engine that listens.
#[derive(Debug)]
pub struct Engine {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// What all connections of an engine share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) stats: Stats,
    pub(super) slots: Option<Semaphore>,
    faults: Mutex<Arc<[Fault]>>,
    /// Request ids given so far, to requests that brought none.
    ids: AtomicU64,
}

impl Shared {
    fn new(settings: Settings) -> Self {
        let slots = (settings.slots > 0).then(|| Semaphore::new(settings.slots as usize));
        let faults = Mutex::new(settings.faults.clone().into());
        Self { settings, stats: Stats::default(), slots, faults, ids: AtomicU64::new(0) }
    }

    /// An id for a request that brings none.
    pub(super) fn new_id(&self) -> String {
        format!("{}-{}", self.settings.name, self.ids.fetch_add(1, Relaxed))
    }

    /// The faults in force.
    pub(super) fn faults(&self) -> Arc<[Fault]> {
        Arc::clone(&self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other faults in force, for requests that are yet to come.
    pub(super) fn set_faults(&self, faults: Vec<Fault>) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults.into();
    }

    fn refuses(&self, number: u64) -> bool {
        self.faults().iter().any(|fault| fault.kind == FaultKind::Refuse && fault.strikes(number))
    }
}

impl Engine {
    /// Binds the listener, from where clients are queued by the system until `run`.
    ///
    /// # Errors
    /// Where the address cannot be bound.
    pub async fn bind(settings: Settings) -> io::Result<Self> {
        let socket = if settings.listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(settings.listen)?;
        let listener = socket.listen(BACKLOG)?;
        Ok(Self { listener, shared: Arc::new(Shared::new(settings)) })
    }

    /// Where it listens; the port the system chose where `listen` names none.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown`, then drops every connection as it is, like an engine that is killed.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(take(stream, Arc::clone(&self.shared)));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }
}

async fn take(stream: TcpStream, shared: Arc<Shared>) {
    let number = shared.stats.connections.fetch_add(1, Relaxed) + 1;
    if shared.refuses(number) {
        shared.stats.strike();
        return Wire::new(stream, &shared.stats).close(Over::Reset).await;
    }
    // An event is a small write that must not wait for an acknowledgement. It fails on a socket
    // that is closed already, which the first read will tell.
    drop(stream.set_nodelay(true));
    connection::serve(stream, &shared).await;
}
