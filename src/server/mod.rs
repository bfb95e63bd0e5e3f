//! Wiring: from a configuration to a gateway that listens, and from SIGTERM to the end.
//!
//! Pingora's `Service` accepts and serves; its `Server` is not used. That one sleeps through a fixed
//! grace period however idle it is and then cuts streams without a word, where ours tells clients
//! what happens (see `drain`).

mod error;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use pingora::apps::HttpServerOptions;
use pingora::listeners::{ListenerConfig, TcpSocketOptions};
use pingora::protocols::TcpKeepalive;
use pingora::protocols::l4::stream::L4BufferSettings;
use pingora::server::configuration::ServerConf;
use pingora::services::Service as _;
use pingora::services::listening::Service;
use pingora_proxy::ProxyServiceBuilder;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use error::StartError;

use crate::access_log::AccessLog;
use crate::admin::Admin;
use crate::config::{Config, Listen, Server, Transport};
use crate::drain::Drain;
use crate::edge::{self, Below, Bound, Connections, Edge, Limits, Tls};
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::proxy::{Gateway, Shared};
use crate::request_id;
use crate::signals;
use crate::sim::Engine;
use crate::snapshot::Snapshot;
use crate::upstream::{Connector, Throwaway};

/// Attempts that Pingora's loop allows; `retry::decide` allows fewer.
const ATTEMPTS_CEILING: usize = 2;

/// How long the last error events may take to reach their clients after the cut.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The same when a second signal says that there is no time.
const PARTING_WORD: Duration = Duration::from_millis(100);

/// Pingora's read buffer of a client connection: none, since heads are read into a buffer of the thread
/// and bodies into one of the exchange.
const READ_BUFFER: usize = 0;

/// The same under TLS, whose library reads a record in two small pieces.
const TLS_READ_BUFFER: usize = 4096;

/// A vanished client (no FIN) is noticed after a minute of silence and three unanswered probes.
const KEEPALIVE: TcpKeepalive = TcpKeepalive {
    idle: Duration::from_secs(60),
    interval: Duration::from_secs(10),
    count: 3,
    #[cfg(target_os = "linux")]
    user_timeout: Duration::ZERO,
};

/// Descriptors beside those of clients and their engines: listeners, logs, timers, idle connections.
const DESCRIPTORS_ASIDE: u64 = 128;

/// Descriptors below which the start says so where the number of connections has no bound.
const DESCRIPTORS_WANTED: u64 = 16_384;

/// What a started gateway tells its starter.
#[derive(Debug, Clone)]
pub struct Listening {
    /// URLs of the client listeners, in the order of the file.
    pub clients: Vec<String>,
    /// The admin listener.
    pub admin: SocketAddr,
    /// Simulated engines: name and address.
    pub engines: Vec<(String, SocketAddr)>,
}

/// Runs a gateway until it has drained. `on_listening` is called once it accepts.
///
/// # Errors
/// It could not start.
pub fn run(config: Config, on_listening: impl FnOnce(&Listening)) -> Result<(), StartError> {
    raise_descriptor_limit(config.server.connections_max);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.server.threads)
        .thread_name("streamgate")
        .enable_all()
        .build()
        .map_err(|error| StartError::Setup(error.to_string()))?;
    let served = runtime.block_on(async { serve(config, on_listening).await });
    // What is left is dropped with the runtime, and each exchange still writes its line.
    runtime.shutdown_timeout(LAST_WORDS);
    served.map(|shared| shared.access.close(LAST_WORDS))
}

/// Each stream takes two descriptors; the soft limit of 1,024 that many systems start with would end
/// at 500 streams.
fn raise_descriptor_limit(connections_max: Option<usize>) {
    let wanted = connections_max.map_or(DESCRIPTORS_WANTED, |max| 2 * max as u64 + DESCRIPTORS_ASIDE);
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) if limit < wanted => log::warn!(
            "only {limit} file descriptors are allowed, and server.connections.max may need {wanted}, two a stream: \
             raise the limit (LimitNOFILE, ulimit -n) or lower the maximum"
        ),
        Ok(_) => {}
        Err(error) => log::warn!("the limit of file descriptors could not be raised: {error}"),
    }
}

async fn serve(mut config: Config, on_listening: impl FnOnce(&Listening)) -> Result<Arc<Shared>, StartError> {
    let signals = signals::Ending::new().map_err(|error| StartError::Setup(error.to_string()))?;
    let engines = start_engines(&mut config).await?;
    let below = below(&config.server.listen)?;
    let addrs: Vec<SocketAddr> = config.server.listen.iter().map(|listen| listen.address).collect();
    let clients = bind(&addrs, "server.listen")?;
    let admin = bind(std::slice::from_ref(&config.server.admin), "server.admin.listen")?;
    let urls =
        config.server.listen.iter().zip(&clients.addrs).map(|(listen, addr)| url(listen, *addr)).collect();
    let listening = Listening { clients: urls, admin: admin.addrs[0], engines };
    let access = AccessLog::open(&config.log.access, config.log.format)
        .map_err(|source| StartError::AccessLog { target: config.log.access.clone(), source })?;
    let snapshot = Snapshot::first(config, resolve)?;
    let server = snapshot.server.clone();
    let shared = Arc::new(Shared {
        snapshot: ArcSwap::from_pointee(snapshot),
        drain: Drain::new(),
        ledger: Ledger::new(server.request.buffered_bytes),
        stream_bytes: Arc::default(),
        connections: Arc::new(Connections::new(server.connections_max)),
        metrics: Metrics::new().map_err(|error| StartError::Setup(error.to_string()))?,
        access,
        ids: request_id::Source::default(),
    });
    signals::take_others(&shared).map_err(|error| StartError::Setup(error.to_string()))?;
    let (stop_admin, admin_stopped) = watch::channel(false);
    let (stop_clients, clients_stopped) = watch::channel(false);
    let _admin = start_admin(&shared, admin, admin_stopped);
    let clients = start_clients(&shared, &server, &clients, below, &clients_stopped);
    on_listening(&listening);
    drain(&shared, &server, signals, &stop_clients, clients).await;
    stop_admin.send_replace(true);
    Ok(shared)
}

async fn start_engines(config: &mut Config) -> Result<Vec<(String, SocketAddr)>, StartError> {
    let mut started = Vec::new();
    for settings in std::mem::take(&mut config.sim) {
        let (name, addr) = (settings.name.clone(), settings.listen);
        let engine = Engine::bind(settings).await.map_err(|source| StartError::Listen {
            addr,
            setting: "sim",
            source,
        })?;
        let bound =
            engine.local_addr().map_err(|source| StartError::Listen { addr, setting: "sim", source })?;
        started.push((name, bound));
        tokio::spawn(engine.run(std::future::pending()));
    }
    Ok(started)
}

fn bind(addrs: &[SocketAddr], setting: &'static str) -> Result<Bound, StartError> {
    edge::bind(addrs).map_err(|(addr, source)| StartError::Listen { addr, setting, source })
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, StartError> {
    let failed = |source| StartError::Resolve { host: host.to_owned(), source };
    let mut addrs = (host, port).to_socket_addrs().map_err(failed)?;
    addrs.next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}

/// Reads the certificates of the listeners.
///
/// # Errors
/// The first one that cannot be used.
pub fn below(listen: &[Listen]) -> Result<Vec<Below>, StartError> {
    let below = listen.iter().enumerate().map(|(listener, listen)| match &listen.transport {
        Transport::Plain => Ok(Below::Plain),
        Transport::PlainH2 => Ok(Below::PlainH2),
        Transport::Tls(certificates) => {
            Tls::load(certificates).map(Below::Tls).map_err(|(certificate, source)| {
                let line = certificates.get(certificate).map_or(0, |files| files.line);
                StartError::Tls { listener, certificate, line, source }
            })
        }
    });
    below.collect()
}

fn url(listen: &Listen, addr: SocketAddr) -> String {
    let scheme = if matches!(listen.transport, Transport::Tls(_)) { "https" } else { "http" };
    format!("{scheme}://{addr}")
}

/// One Pingora service a listener, as each has its own way below HTTP; they share the pool of backends.
fn start_clients(
    shared: &Arc<Shared>,
    server: &Server,
    bound: &Bound,
    below: Vec<Below>,
    stopped: &watch::Receiver<bool>,
) -> JoinHandle<()> {
    let conf = ServerConf { max_retries: ATTEMPTS_CEILING, threads: server.threads, ..ServerConf::default() };
    let conf = Arc::new(conf);
    let snapshot = shared.snapshot.load();
    let backends = snapshot.clusters.iter().flat_map(|cluster| &cluster.backends);
    let throwaway = Throwaway::new(server.pool_max_idle);
    let connector =
        Connector::new(throwaway.options.clone(), backends.filter_map(|backend| backend.tls.as_deref()));
    let edge = Arc::new(Edge {
        limits: Limits {
            uri_bytes: server.request.uri_bytes,
            header_bytes: server.request.header_bytes,
            header_count: server.request.header_count,
        },
        header_timeout: server.request.header_timeout,
        keepalive: server.request.keepalive,
        connections: Arc::clone(&shared.connections),
        witness: Box::new(Arc::clone(shared)),
    });
    let mut services = JoinSet::new();
    for (addr, below) in bound.addrs.iter().zip(below) {
        let mut options = HttpServerOptions::default();
        options.force_custom = true;
        let mut sockets = TcpSocketOptions::default();
        sockets.tcp_keepalive = Some(KEEPALIVE);
        let read = if matches!(below, Below::Tls(_)) { TLS_READ_BUFFER } else { READ_BUFFER };
        let listener = ListenerConfig::tcp(addr.to_string())
            .tcp_socket_options(sockets)
            .l4_buffer(L4BufferSettings::default().read(read));
        let mut service = ProxyServiceBuilder::new(&conf, Gateway::new(Arc::clone(shared)))
            .name("clients")
            .custom(connector.clone(), edge::on_connection(Arc::clone(&edge), below))
            .client_options(throwaway.options.clone())
            .server_options(options)
            .build();
        service.add_listener(listener);
        let (fds, stopped) = (Arc::clone(&bound.fds), stopped.clone());
        services.spawn(async move { service.start_service(Some(fds), stopped, 1).await });
    }
    tokio::spawn(async move { drop(services.join_all().await) })
}

fn start_admin(shared: &Arc<Shared>, bound: Bound, stopped: watch::Receiver<bool>) -> JoinHandle<()> {
    let mut service = Service::new("admin".into(), Admin::new(Arc::clone(shared)));
    service.add_tcp(&bound.addrs[0].to_string());
    tokio::spawn(async move { service.start_service(Some(bound.fds), stopped, 1).await })
}

/// Waits for SIGTERM and sees the gateway to its end; a second signal ends it at once.
async fn drain(
    shared: &Shared,
    server: &Server,
    mut signals: signals::Ending,
    stop_clients: &watch::Sender<bool>,
    clients: JoinHandle<()>,
) {
    signals.next().await;
    let drain = &shared.drain;
    drain.leave();
    log::info!(
        "leaving: {} exchanges at work, lame duck for {:?}",
        drain.working(),
        server.shutdown.lame_duck
    );
    let orderly = async {
        tokio::time::sleep(server.shutdown.lame_duck).await;
        stop_clients.send_replace(true);
        if clients.await.is_err() {
            log::error!("the client listeners ended with a panic");
        }
        if tokio::time::timeout(server.shutdown.drain, drain.idle()).await.is_err() {
            log::warn!("the drain is over: {} exchanges end with an error", drain.working());
            drain.cut();
            if tokio::time::timeout(LAST_WORDS, drain.idle()).await.is_err() {
                log::warn!("{} exchanges did not end in time", drain.working());
            }
        }
    };
    tokio::select! {
        () = orderly => log::info!("drained"),
        () = signals.next() => {
            log::warn!("told twice: ending at once with {} exchanges at work", drain.working());
            drain.cut();
            if tokio::time::timeout(PARTING_WORD, drain.idle()).await.is_err() {
                log::warn!("{} exchanges were not told", drain.working());
            }
        }
    }
}
