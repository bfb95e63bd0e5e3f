//! The listeners of clients: what is below HTTP, and one Pingora service each.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use pingora::apps::HttpServerOptions;
use pingora::listeners::ListenerConfig;
use pingora::protocols::l4::stream::L4BufferSettings;
use pingora::server::configuration::ServerConf;
use pingora::services::Service as _;
use pingora_proxy::ProxyServiceBuilder;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::StartError;
use crate::config::{Address, Listen, Server, ServerTls, Transport};
use crate::edge::{self, Below, Bound, Door, Edge, Limits, Place, Tls};
use crate::proxy::{Phases, Shared, Sheltered};
use crate::reload::Builder;
use crate::told::Told;
use crate::upstream::Throwaway;

/// Attempts that Pingora's loop allows; `retry::decide` allows fewer.
const ATTEMPTS_CEILING: usize = 2;

/// Pingora's read buffer of a client connection: none, since heads are read into a buffer of the thread
/// and bodies into one of the exchange.
const READ_BUFFER: usize = 0;

/// The same under TLS, whose library reads a record in two small pieces.
const TLS_READ_BUFFER: usize = 4096;

/// Reads the certificates of the listeners.
///
/// # Errors
/// The first one that cannot be used.
pub fn below(listen: &[Listen]) -> Result<Vec<Below>, StartError> {
    each_below(listen).collect()
}

/// The same for each listener by itself.
pub(super) fn each_below(listen: &[Listen]) -> impl Iterator<Item = Result<Below, StartError>> {
    listen.iter().enumerate().map(|(listener, listen)| match &listen.transport {
        Transport::Plain => Ok(Below::Plain),
        Transport::PlainH2 => Ok(Below::PlainH2),
        Transport::Tls(tls) => Tls::load(tls).map(Below::Tls).map_err(|(place, source)| {
            let (setting, line) = named(tls, place);
            StartError::Tls { setting: format!("server.listen[{listener}].tls.{setting}"), line, source }
        }),
    })
}

/// The setting and its line.
fn named(tls: &ServerTls, place: Place) -> (String, u64) {
    match place {
        Place::Certificate(i) => {
            (format!("certificates[{i}]"), tls.certificates.get(i).map_or(0, |files| files.line))
        }
        Place::ClientCa => ("client_ca".to_owned(), tls.client_ca.as_ref().map_or(0, |file| file.line)),
    }
}

/// How a listener is told to whoever started the gateway.
pub(super) fn url(listen: &Listen, address: &Address) -> String {
    let scheme = if matches!(listen.transport, Transport::Tls(_)) { "https" } else { "http" };
    match address {
        Address::Tcp(tcp) => format!("{scheme}://{tcp}"),
        Address::Unix { .. } => address.to_string(),
    }
}

/// One Pingora service a listener, as each has its own way below HTTP; they share the pool of backends.
pub(super) fn start(
    shared: &Arc<Shared>,
    server: &Server,
    bound: &Bound,
    builder: &Builder,
    throwaway: &Throwaway,
    stopped: &watch::Receiver<bool>,
) -> JoinHandle<()> {
    let conf = ServerConf { max_retries: ATTEMPTS_CEILING, threads: server.threads, ..ServerConf::default() };
    let conf = Arc::new(conf);
    let edge = Arc::new(Edge {
        limits: Limits {
            uri_bytes: server.request.uri_bytes,
            header_bytes: server.request.header_bytes,
            header_count: server.request.header_count,
        },
        header_timeout: server.request.header_timeout,
        keepalive: server.request.keepalive,
        connections: Arc::clone(&shared.connections),
        memory: Arc::clone(&shared.memory),
        trusted: server.trusted_proxies.clone(),
        goaways: Told::default(),
        witness: Box::new(Arc::clone(shared)),
    });
    let mut services = JoinSet::new();
    let listeners = server.listen.iter().zip(&bound.addresses).zip(builder.below.clone());
    for ((listen, address), below) in listeners {
        let mut options = HttpServerOptions::default();
        options.force_custom = true;
        let read = if matches!(below, Below::Tls(_)) { TLS_READ_BUFFER } else { READ_BUFFER };
        let listener = listener(address).l4_buffer(L4BufferSettings::default().read(read));
        let door = Door {
            below,
            is_local: matches!(address, Address::Unix { .. }),
            takes_proxy: listen.proxy_protocol,
            redirect_https: listen.redirect_https,
        };
        let mut service = ProxyServiceBuilder::new(&conf, Sheltered(Phases::new(Arc::clone(shared))))
            .name("clients")
            .custom(builder.connector.clone(), edge::on_connection(Arc::clone(&edge), door))
            .client_options(throwaway.options.clone())
            .server_options(options)
            .build();
        service.add_listener(listener);
        let (fds, stopped) = (Arc::clone(&bound.fds), stopped.clone());
        services.spawn(async move { service.start_service(Some(fds), stopped, 1).await });
    }
    tokio::spawn(async move { drop(services.join_all().await) })
}

/// A listener by the key of its socket.
fn listener(address: &Address) -> ListenerConfig {
    match address {
        Address::Tcp(_) => ListenerConfig::tcp(edge::key(address)),
        Address::Unix { mode, .. } => {
            ListenerConfig::uds(edge::key(address)).permissions(Permissions::from_mode(*mode))
        }
    }
}
