//! The end: from SIGTERM, or from a successor's first accept, to the last exchange.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::LAST_WORDS;
use crate::config::{Server, Shutdown};
use crate::handover::{Giver, Predecessor, Successor};
use crate::proxy::Shared;
use crate::{signals, supervisor};

/// The same when a second signal says that there is no time.
const PARTING_WORD: Duration = Duration::from_millis(100);

/// How often the last connections are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What there is to be stopped.
pub(super) struct Stops {
    pub(super) clients: watch::Sender<bool>,
    pub(super) admin: watch::Sender<bool>,
    /// Over when no listener of clients is left.
    pub(super) serving: JoinHandle<()>,
}

/// Waits for SIGTERM or for a successor and sees the gateway to its end; another signal ends it at once.
pub(super) async fn leave(
    shared: &Shared,
    server: &Server,
    mut signals: signals::Ending,
    (predecessor, mut giver): (Option<Predecessor>, Giver),
    mut stops: Stops,
) {
    let successor = tokio::select! {
        () = signals.next() => None,
        successor = giver.give() => Some(successor),
    };
    // Its copies of the sockets would listen on.
    drop(giver);
    let drain = &shared.drain;
    drain.leave();
    let orderly = async {
        match &successor {
            Some(successor) => hand_over(shared, successor, &mut stops).await,
            None => close(shared, server, &mut stops).await,
        }
        let quiet = quiet(shared, server.request.header_timeout);
        if tokio::time::timeout(server.shutdown.drain, quiet).await.is_err() {
            log::warn!("the drain is over: {} exchanges end with an error", drain.working());
            drain.cut();
            if tokio::time::timeout(LAST_WORDS, drain.idle()).await.is_err() {
                log::warn!("{} exchanges did not end in time", drain.working());
            }
        }
        if let Some(predecessor) = &predecessor
            && supervisor::is_there()
        {
            outlive(predecessor).await;
        }
    };
    let told_again = async {
        if successor.is_some() {
            // The first one only says what is going on already: a service that is stopped tells all its processes.
            signals.next().await;
            log::info!("told to end: {} exchanges at work are waited for", drain.working());
        }
        signals.next().await;
    };
    tokio::select! {
        () = orderly => log::info!("drained"),
        () = told_again => {
            log::warn!("told twice: ending at once with {} exchanges at work", drain.working());
            drain.cut();
            if tokio::time::timeout(PARTING_WORD, drain.idle()).await.is_err() {
                log::warn!("{} exchanges were not told", drain.working());
            }
        }
    }
    // A listener whose end is only that of whoever would tell it takes that for an error.
    stops.clients.send_replace(true);
    stops.admin.send_replace(true);
    // It sees the end of this process, with its last lines written, by the end of their conversation: the kernel's to make.
    std::mem::forget(successor);
}

/// After SIGTERM: not ready, but serving for a while, so that balancers stop sending. Operators are served
/// to the end.
async fn close(shared: &Shared, server: &Server, stops: &mut Stops) {
    let Shutdown { lame_duck: duck, drain } = server.shutdown;
    let first = if duck.is_zero() {
        String::new()
    } else {
        format!(
            "clients are served for another {duck:?} (server.shutdown.lame_duck), so that balancers notice; then "
        )
    };
    log::info!(
        "leaving: {} exchanges at work; {first}what runs may take {drain:?} (server.shutdown.drain) to end; a second \
         signal ends it at once",
        shared.drain.working()
    );
    supervisor::stopping("draining");
    tokio::time::sleep(duck).await;
    stop(&stops.clients, &mut stops.serving).await;
}

/// The end of a service's main process is that of all its processes to systemd. So it is the last one, where an older
/// one still has streams.
async fn outlive(predecessor: &Predecessor) {
    if tokio::time::timeout(LOOK_EVERY, predecessor.ended()).await.is_err() {
        log::info!("the process that was here before still has streams, and is waited for");
        predecessor.ended().await;
    }
}

/// Somebody else accepts: no client and no operator is to find us any more.
async fn hand_over(shared: &Shared, successor: &Successor, stops: &mut Stops) {
    log::info!("handed over to process {}: {} exchanges at work", successor.pid, shared.drain.working());
    supervisor::succeeded_by(successor.pid);
    stops.admin.send_replace(true);
    stop(&stops.clients, &mut stops.serving).await;
    successor.is_alone().await;
}

/// Returns when nothing is at work and nothing can begin: a connection that has been accepted may still bring its
/// request, or the rest of it. No head takes longer than `head`; who keeps its connection open after that is not
/// waited for.
async fn quiet(shared: &Shared, head: Duration) {
    let closed = async {
        // At least once: what was accepted last may not have been counted yet.
        tokio::time::sleep(LOOK_EVERY).await;
        while shared.connections.open() > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::pin!(closed);
    loop {
        shared.drain.idle().await;
        let is_closed = tokio::time::timeout(head, &mut closed).await.is_ok();
        if shared.drain.working() == 0 {
            return;
        }
        if is_closed {
            return shared.drain.idle().await;
        }
    }
}

async fn stop(clients: &watch::Sender<bool>, serving: &mut JoinHandle<()>) {
    clients.send_replace(true);
    if serving.await.is_err() {
        log::error!("the client listeners ended with a panic");
    }
}
