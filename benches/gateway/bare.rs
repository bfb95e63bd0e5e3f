//! Pingora with nothing on top: one worker that hands every request to the engine.
//!
//! What it costs is the floor of any gateway that is built on it, so it runs beside nginx. It is this
//! program started once more, with an argument that nobody else gives.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use pingora::Result;
use pingora::listeners::TcpSocketOptions;
use pingora::prelude::{HttpPeer, Server};
use pingora::proxy::{ProxyHttp, Session, http_proxy_service};
use pingora::server::configuration::ServerConf;

use crate::error::Error;
use crate::process::{PROXY_CORE, Ports, Proxy, Start};

/// The first argument of a process that is to be the bare proxy.
const ARGUMENT: &str = "--as-bare-pingora";
/// How long it may take to start.
const START: Duration = Duration::from_secs(5);
/// Idle connections are closed before the engine (5 s) would.
const IDLE: Duration = Duration::from_secs(4);

/// Starts it in front of `engine`.
pub(crate) async fn start(engine: SocketAddr) -> Result<Proxy, Error> {
    let program = std::env::current_exe().map_err(|error| Error::io("find this program", error))?;
    let ports = Ports::reserve()?;
    let start = Start {
        name: "bare Pingora",
        core: PROXY_CORE,
        program: program.display().to_string(),
        args: vec![ARGUMENT.to_owned(), ports.addr().to_string(), engine.to_string()],
        environment: None,
        within: START,
    };
    Proxy::start(&start, ports).await
}

/// Whether this process is to be the bare proxy: between which addresses.
pub(crate) fn asked_for() -> Option<(SocketAddr, SocketAddr)> {
    let mut args = std::env::args().skip(1);
    if args.next()? != ARGUMENT {
        return None;
    }
    Some((args.next()?.parse().ok()?, args.next()?.parse().ok()?))
}

/// Serves until it is killed.
pub(crate) fn serve(listen: SocketAddr, engine: SocketAddr) -> ! {
    let conf = ServerConf { threads: 1, upstream_keepalive_pool_size: 1024, ..ServerConf::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, Gateway { engine });
    let mut options = TcpSocketOptions::default();
    options.so_reuseport = Some(true);
    service.add_tcp_with_settings(&listen.to_string(), options);
    server.add_service(service);
    server.run_forever()
}

struct Gateway {
    engine: SocketAddr,
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        let mut peer = HttpPeer::new(self.engine, false, String::new());
        peer.options.idle_timeout = Some(IDLE);
        Ok(Box::new(peer))
    }
}
