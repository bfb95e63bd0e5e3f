//! The socket of operators, and the service on it.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use pingora::services::Service as _;
use pingora::services::listening::Service;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::StartError;
use super::sockets::bind;
use crate::admin::Admin;
use crate::config::{Address, AdminListen};
use crate::edge::{self, Bound};
use crate::proxy::Shared;
use crate::reload::Reloader;

/// Mode of a unix socket for operators: its owner's only.
const OWNER_ONLY: u32 = 0o600;

/// The socket of the admin listener.
pub(super) struct AdminSocket(Bound);

impl AdminSocket {
    /// Binds it, unless it is given.
    pub(super) fn bind(
        listen: &AdminListen,
        given: impl FnMut(&Address) -> Option<OwnedFd>,
    ) -> Result<Self, StartError> {
        let address = match listen {
            AdminListen::Tcp(addr) => Address::Tcp(*addr),
            AdminListen::Unix(path) => Address::Unix { path: path.clone(), mode: OWNER_ONLY },
        };
        bind([&address], "server.admin.listen", given).map(Self)
    }

    /// The socket once more, for a successor.
    pub(super) fn copy(&mut self) -> Option<OwnedFd> {
        self.0.copies.pop()
    }

    /// How it is told to whoever started the gateway.
    pub(super) fn url(&self) -> String {
        match &self.0.addresses[0] {
            Address::Tcp(addr) => format!("http://{addr}"),
            unix @ Address::Unix { .. } => unix.to_string(),
        }
    }
}

/// Serves operators on it; `clients` is where clients are served.
pub(super) fn start(
    shared: &Arc<Shared>,
    reloader: Reloader,
    AdminSocket(bound): AdminSocket,
    clients: Vec<Address>,
    stopped: watch::Receiver<bool>,
) -> JoinHandle<()> {
    let mut service = Service::new("admin".into(), Admin::new(Arc::clone(shared), reloader, clients));
    let address = &bound.addresses[0];
    match address {
        Address::Tcp(_) => service.add_tcp(&edge::key(address)),
        Address::Unix { mode, .. } => {
            service.add_uds(&edge::key(address), Some(fs::Permissions::from_mode(*mode)));
        }
    }
    tokio::spawn(async move { service.start_service(Some(bound.fds), stopped, 1).await })
}
