//! Signals: what ends the process, and what must not. Who embeds a gateway ends it without one.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;

use crate::config::Log;
use crate::proxy::Shared;
use crate::reload::{Cause, Reloader};
use crate::server::one_file_each;

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
///
/// `log` is the one of the start, whose files the process keeps to.
pub(crate) fn take_others(shared: &Arc<Shared>, reloader: Reloader, log: Log) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut user = signal(SignalKind::user_defined1())?;
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = hangup.recv() => reloader.poke(Cause::Signal),
                _ = user.recv() => reopen(&shared, &log),
            }
        }
    });
    Ok(())
}

/// Has the logs opened anew, and tells where what was done to their files meanwhile has made them one. They are written all
/// the same: a line that stands in the wrong file can be found.
fn reopen(shared: &Shared, log: &Log) {
    shared.access.reopen();
    shared.usage.reopen();
    log::info!("SIGUSR1: the access log and the usage log are opened anew, each before its next line");
    if let Err(error) = one_file_each(log) {
        log::error!("SIGUSR1: {error}");
    }
}
