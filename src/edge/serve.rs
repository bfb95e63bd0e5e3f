//! The life of one HTTP/1.1 client connection: request after request until one side has enough.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pingora::apps::{HttpPersistentSettings, HttpServerApp};
use pingora::connectors::http::custom;
use pingora::protocols::http::ServerSession;
use pingora::protocols::{GetSocketDigest, Stream};
use pingora::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, ProcessCustomSession, ProxyHttp};

use super::chunks::Malformed;
use super::conn::Conn;
use super::connections::Connections;
use super::head::Limits;
use super::reader::{self, Head, Patience};
use super::refuse::{Witness, close, refuse};
use crate::rejection::Rejection;

/// How client connections are served.
pub struct Edge {
    /// Bounds of a request head.
    pub limits: Limits,
    /// Time for a whole head.
    pub header_timeout: Duration,
    /// How long an idle connection is kept.
    pub keepalive: Duration,
    /// The open connections.
    pub connections: Arc<Connections>,
    /// Keeps the books of refused heads and connections.
    pub witness: Box<dyn Witness>,
}

/// What Pingora calls for each connection.
pub fn on_connection<SV, C>(edge: Edge) -> ProcessCustomSession<SV, C>
where
    SV: ProxyHttp + Send + Sync + 'static,
    SV::CTX: Send + Sync,
    C: custom::Connector,
{
    let edge = Arc::new(edge);
    Arc::new(move |proxy: Arc<HttpProxy<SV, C>>, stream: Stream, shutdown: &ShutdownWatch| {
        let (edge, shutdown) = (Arc::clone(&edge), shutdown.clone());
        Box::pin(async move {
            let mut conn = Box::new(Conn::new(stream));
            match edge.connections.admit() {
                Some(_place) => edge.serve(&proxy, conn, shutdown).await,
                None => edge.turn_away(&mut conn).await,
            }
            None
        })
    })
}

impl Edge {
    async fn serve<A>(&self, app: &Arc<A>, mut conn: Box<Conn>, mut shutdown: ShutdownWatch)
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let mut kept: Option<HttpPersistentSettings> = None;
        let mut is_first = true;
        loop {
            let patience = Patience { head: self.header_timeout, idle: self.keepalive, is_first };
            let request = match reader::read(&mut conn, &self.limits, patience, &mut shutdown).await {
                Head::Whole { mut bytes, end, framing } => match conn.inbound.begin(framing, &mut bytes, end)
                {
                    Ok(()) => Ok(bytes),
                    Err(Malformed) => Err(Rejection::malformed_body()),
                },
                Head::Closed => return,
                Head::Bad(rejection) => Err(rejection),
            };
            let request = match request {
                Ok(request) => request,
                Err(rejection) => return Box::pin(self.refuse(&mut conn, &rejection)).await,
            };
            is_first = false;
            let mut session = ServerSession::new_http1(conn);
            match kept.take() {
                Some(settings) => settings.apply_to_session(&mut session),
                // Whether, not how long: the waiting is done above.
                None => session.set_keepalive(Some(0)),
            }
            if *shutdown.borrow() {
                session.set_keepalive(None);
            }
            session.set_pipelined_prefix(request);
            let Some(reusable) = app.process_new_http(session, &shutdown).await else { return };
            let (stream, settings) = reusable.consume();
            let Ok(idle) = stream.into_any().downcast::<Conn>() else { return };
            conn = idle;
            kept = settings;
            if !conn.inbound.next() {
                return Box::pin(close(&mut conn)).await;
            }
        }
    }

    /// Tells a client that there are too many, unless too many are being told already.
    async fn turn_away(&self, conn: &mut Conn) {
        self.witness.turned_away();
        if let Some(_place) = self.connections.refuse(Instant::now()) {
            self.refuse(conn, &Rejection::Overloaded).await;
        }
    }

    async fn refuse(&self, conn: &mut Conn, rejection: &Rejection) {
        let id = self.witness.refused(client_of(conn), rejection);
        refuse(conn, rejection, &id).await;
    }
}

fn client_of(conn: &Conn) -> Option<IpAddr> {
    let socket = conn.get_socket_digest()?;
    socket.peer_addr()?.as_inet().map(std::net::SocketAddr::ip)
}
