//! Signals: what ends the process, and what must not. Who embeds a gateway ends it without one.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;

use crate::proxy::Shared;
use crate::reload::{Cause, Reloader};

/// Ends a gateway without a signal. What is asked for is not lost, be it before there is one.
#[derive(Debug, Clone)]
pub(crate) struct Stop(Arc<Semaphore>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Stop {
    /// The same as one SIGTERM.
    pub(crate) fn ask(&self) {
        self.0.add_permits(1);
    }

    async fn asked(&self) {
        match self.0.acquire().await {
            Ok(asked) => asked.forget(),
            // Nobody closes it.
            Err(_) => std::future::pending().await,
        }
    }
}

/// The signals that end the process.
pub(crate) struct Ending {
    stop: Stop,
    term: Signal,
    int: Signal,
}

impl Ending {
    /// Takes them from now on.
    pub(crate) fn new(stop: Stop) -> io::Result<Self> {
        // Untaken they would end the process while it starts; what they do comes later, in `take_others`.
        for other in [SignalKind::hangup(), SignalKind::quit(), SignalKind::user_defined1()] {
            drop(signal(other)?);
        }
        Ok(Self { stop, term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Returns when one has come.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
            () = self.stop.asked() => {}
        }
    }
}

/// SIGQUIT, which asks for a successor.
pub(crate) fn quits() -> io::Result<Signal> {
    signal(SignalKind::quit())
}

/// Takes the signals that operators send to servers of this kind. Untaken, each would end the process
/// and every stream in it.
pub(crate) fn take_others(shared: &Arc<Shared>, reloader: Reloader) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut user = signal(SignalKind::user_defined1())?;
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = hangup.recv() => reloader.poke(Cause::Signal),
                _ = user.recv() => {
                    shared.access.reopen();
                    shared.usage.reopen();
                    log::info!("SIGUSR1: the access log and the usage log are opened anew, each before its next line");
                }
            }
        }
    });
    Ok(())
}
