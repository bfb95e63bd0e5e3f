//! Wiring: from a configuration to a gateway that listens, and from SIGTERM to the end.
//!
//! Pingora's `Service` accepts and serves; its `Server` is not used. That one sleeps through a fixed
//! grace period however idle it is and then cuts streams without a word, where ours tells clients
//! what happens (see `drain`).

mod admin;
mod built;
pub mod certificates;
mod clients;
mod descriptors;
mod error;
mod leave;
mod sockets;
mod succession;
mod unusable;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use built::Built;
pub use clients::below;
pub use error::{StartError, chain};
use sockets::{Given, Sockets};
pub(crate) use unusable::one_file_each;
pub use unusable::{pipes, unusable};

use crate::config::{self, Config};
use crate::embed::Gateway;
use crate::handover::{Giver, Predecessor, TakeError};
use crate::memory::{self, Meter};
use crate::metrics::Metrics;
use crate::prober;
use crate::proxy::Shared;
use crate::reload::{self, Builder, InForce, Keeper, Reloader};
use crate::signals;
use crate::sim::Engine;
use crate::store::Store;
use crate::supervisor;

/// How long the last error events may take to reach their clients after the cut.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a started gateway tells its starter.
#[derive(Debug, Clone)]
pub struct Listening {
    /// URLs of the client listeners, in the order of the file.
    pub clients: Vec<String>,
    /// The admin listener: a URL, or `unix:` and a path.
    pub admin: String,
    /// Simulated engines: name and address.
    pub engines: Vec<(String, SocketAddr)>,
}

/// How a process becomes the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It is the first.
    Fresh,
    /// It takes over from one that runs.
    Successor,
}

/// Runs a gateway until it has drained or a successor has taken over; `on_listening` is called once it accepts.
///
/// # Errors
/// It could not start.
pub(crate) fn run(gateway: Gateway, on_listening: impl FnOnce(&Listening)) -> Result<(), StartError> {
    let (config, start) = (&gateway.loaded.config, gateway.start);
    let passed = Given::by_systemd();
    let room = descriptors::room(config.server.connections_max);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.server.threads)
        .thread_name("streamgate")
        .enable_all()
        .build()
        .map_err(|error| StartError::Setup(error.to_string()))?;
    let served = runtime.block_on(async {
        let mut signals = signals::Ending::new(gateway.stop.clone()).map_err(setup)?;
        let built = Built::new(gateway, room).await?;
        let (predecessor, given) = match start {
            Start::Fresh => (None, passed),
            Start::Successor => {
                let (predecessor, sockets) = tokio::select! {
                    asked = built.ask_predecessor() => asked?,
                    () = signals.next() => return Err(TakeError::Ended.into()),
                };
                (Some(predecessor), Given::by_predecessor(sockets))
            }
        };
        built.serve(given, predecessor, signals, on_listening).await
    });
    // What is left is dropped with the runtime, and each exchange still writes its line.
    runtime.shutdown_timeout(LAST_WORDS);
    served.map(|shared| {
        shared.access.close(LAST_WORDS);
        shared.usage.close(LAST_WORDS);
    })
}

impl Built {
    async fn serve(
        self,
        given: Given,
        predecessor: Option<Predecessor>,
        signals: signals::Ending,
        on_listening: impl FnOnce(&Listening),
    ) -> Result<Arc<Shared>, StartError> {
        let server = self.config.server.clone();
        let mut sockets = match (Sockets::open(&server, given), &predecessor) {
            (Ok(sockets), _) => sockets,
            (Err(error), None) => return Err(error),
            (Err(error), Some(predecessor)) => {
                predecessor.stay(&chain(&error)).await;
                return Err(error);
            }
        };
        if predecessor.is_none() {
            self.watch_backends(prober::First::InTurn);
        }
        let Self { shared, builder, throwaway, config, found, asks, engines } = self;
        let copies = sockets.copies(&server);
        let Sockets { clients: bound, operators } = sockets;
        let urls = server.listen.iter().zip(&bound.addresses);
        let urls = urls.map(|(listen, address)| clients::url(listen, address)).collect();
        let listening = Listening { clients: urls, admin: operators.url(), engines };
        let (stop_admin, admin_stopped) = watch::channel(false);
        let (stop_clients, clients_stopped) = watch::channel(false);
        let _admin = admin::start(&shared, asks.0.clone(), operators, bound.addresses.clone(), admin_stopped);
        watch_memory(&shared, &server).map_err(setup)?;
        let serving = clients::start(&shared, &server, &bound, &builder, &throwaway, &clients_stopped);
        let is_simulated = !config.sim.is_empty();
        let file = asks.0.book.file.clone();
        keep(&shared, builder, asks, config, found).map_err(setup)?;
        if let Some(predecessor) = &predecessor {
            predecessor.succeed().await?;
        }
        let estate = succession::estate(&server, file.as_deref(), is_simulated, copies);
        let failures = Arc::clone(&shared.metrics);
        let quits = signals::quits().map_err(setup)?;
        let giver = Giver::new(estate, quits, move || failures.upgrade_failed());
        on_listening(&listening);
        supervisor::ready(&format!("serving, generation {}", shared.snapshot.load().generation));
        let stops = leave::Stops { clients: stop_clients, admin: stop_admin, serving };
        leave::leave(&shared, &server, signals, (predecessor, giver), stops).await;
        if let Some(traces) = &shared.traces {
            traces.close(LAST_WORDS).await;
        }
        Ok(shared)
    }
}

fn setup(error: impl std::error::Error) -> StartError {
    StartError::Setup(error.to_string())
}

/// Has the memory watched from now on.
fn watch_memory(shared: &Shared, server: &config::Server) -> std::io::Result<()> {
    let root = Path::new("/");
    let meter = Meter::new(root, server.memory_bytes, &config::bounded_groups(root));
    memory::start(Arc::clone(&shared.memory), meter, Arc::clone(&shared.metrics))
}

/// Where limits are shared with other gateways, if they are. It need not be there yet.
fn store(config: &Config, metrics: &Arc<Metrics>) -> Option<Arc<Store>> {
    match &config.limits.store {
        config::Store::Memory => None,
        config::Store::Redis(redis) => Some(Store::start(redis.clone(), metrics)),
    }
}

/// Has the configuration changed from now on when it is to be.
fn keep(
    shared: &Arc<Shared>,
    builder: Builder,
    (reloader, asks): (Reloader, mpsc::Receiver<reload::Ask>),
    config: Config,
    found: reload::Found,
) -> std::io::Result<()> {
    signals::take_others(shared, reloader.clone(), config.log.clone())?;
    let text = reloader.book.text();
    if let Some(file) = reloader.book.file.clone() {
        let watch = reload::Watch::begin(file, String::from(&*text));
        tokio::spawn(watch.tell(reloader.clone()));
    }
    let running = InForce { config: Arc::new(config), text };
    let keeper = Keeper::new(Arc::clone(shared), builder, (reloader, asks), running, found);
    tokio::spawn(keeper.keep());
    Ok(())
}

async fn start_engines(config: &Config) -> Result<Vec<(String, SocketAddr)>, StartError> {
    let mut started = Vec::new();
    for settings in config.sim.clone() {
        let (name, addr) = (settings.name.clone(), settings.listen);
        let failed = |source| StartError::Listen { addr: addr.to_string(), setting: "sim", source };
        let engine = Engine::bind(settings).await.map_err(failed)?;
        let bound = engine.local_addr().map_err(failed)?;
        started.push((name, bound));
        tokio::spawn(engine.run(std::future::pending()));
    }
    Ok(started)
}
