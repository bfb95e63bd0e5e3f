//! Signals: what ends the process, and what must not.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::proxy::Shared;

/// The signals that end the process.
pub(crate) struct Ending {
    term: Signal,
    int: Signal,
}

impl Ending {
    /// Takes them from now on.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Returns when one has come.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// Takes the signals that operators send to servers of this kind. Untaken, each would end the process
/// and every stream in it.
pub(crate) fn take_others(shared: &Arc<Shared>) -> io::Result<()> {
    let (mut hangup, mut quit) = (signal(SignalKind::hangup())?, signal(SignalKind::quit())?);
    let mut user = signal(SignalKind::user_defined1())?;
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = hangup.recv() => log::warn!("SIGHUP: reloading is not available yet; nothing changes"),
                _ = quit.recv() => log::warn!("SIGQUIT: handing over is not available yet; nothing changes"),
                _ = user.recv() => {
                    shared.access.reopen();
                    log::info!("SIGUSR1: the access log is opened anew");
                }
            }
        }
    });
    Ok(())
}
