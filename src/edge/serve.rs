//! The life of one client connection: TLS if the listener has it, then HTTP/2, or HTTP/1.1 request after
//! request until one side has enough.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pingora::apps::{HttpPersistentSettings, HttpServerApp};
use pingora::connectors::http::custom;
use pingora::protocols::http::ServerSession;
use pingora::protocols::{ALPN, GetSocketDigest, Ssl, Stream};
use pingora::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, ProcessCustomSession, ProxyHttp};

use super::chunks::Malformed;
use super::conn::Conn;
use super::connections::Connections;
use super::h2;
use super::head::Limits;
use super::preface::{self, Spoken};
use super::reader::{self, Head, Patience};
use super::refuse::{Witness, close, refuse};
use super::tls::Tls;
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

/// What a listener speaks below HTTP.
#[derive(Clone)]
pub enum Below {
    /// Nothing; HTTP/1.1 only.
    Plain,
    /// Nothing; HTTP/2 for a client that begins with it.
    PlainH2,
    /// TLS; HTTP/2 by ALPN.
    Tls(Tls),
}

/// What Pingora calls for each connection of a listener.
pub fn on_connection<SV, C>(edge: Arc<Edge>, below: Below) -> ProcessCustomSession<SV, C>
where
    SV: ProxyHttp + Send + Sync + 'static,
    SV::CTX: Send + Sync,
    C: custom::Connector,
{
    Arc::new(move |proxy: Arc<HttpProxy<SV, C>>, stream: Stream, shutdown: &ShutdownWatch| {
        let (edge, below, shutdown) = (Arc::clone(&edge), below.clone(), shutdown.clone());
        Box::pin(async move {
            let Some(_place) = edge.connections.admit() else {
                Box::pin(edge.turn_away(&below, stream)).await;
                return None;
            };
            match below {
                Below::Plain => {
                    let conn = Box::new(Conn::new(stream));
                    edge.serve(&proxy, conn, shutdown, edge.header_timeout).await;
                }
                // Their futures are larger; a plain connection does not carry them.
                Below::PlainH2 => Box::pin(edge.plain_h2(&proxy, Conn::new(stream), shutdown)).await,
                Below::Tls(tls) => Box::pin(edge.tls(&proxy, &tls, stream, shutdown)).await,
            }
            None
        })
    })
}

impl Edge {
    async fn plain_h2<A>(&self, app: &Arc<A>, mut conn: Conn, mut shutdown: ShutdownWatch)
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let began = Instant::now();
        let spoken = preface::look(&mut conn, self.header_timeout, &mut shutdown).await;
        let client = Arc::clone(conn.client());
        match spoken {
            None => {}
            Some(Spoken::Http1) => {
                let left = self.header_timeout.saturating_sub(began.elapsed());
                self.serve(app, Box::new(conn), shutdown, left).await;
            }
            Some(Spoken::Http2) => h2::serve(self, app, Box::new(conn), &client, shutdown).await,
        }
    }

    async fn tls<A>(&self, app: &Arc<A>, tls: &Tls, stream: Stream, mut shutdown: ShutdownWatch)
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let stream = tokio::select! {
            stream = tokio::time::timeout(self.header_timeout, tls.accept(stream)) => stream,
            () = preface::last_call(&mut shutdown) => return,
        };
        let Ok(Some(stream)) = stream else { return };
        let is_h2 = matches!(stream.selected_alpn_proto(), Some(ALPN::H2));
        let conn = Box::new(Conn::new(Box::new(stream)));
        if is_h2 {
            let client = Arc::clone(conn.client());
            h2::serve(self, app, conn, &client, shutdown).await;
        } else {
            self.serve(app, conn, shutdown, self.header_timeout).await;
        }
    }

    /// Serves HTTP/1.1; the first head has `first` of time.
    async fn serve<A>(&self, app: &Arc<A>, mut conn: Box<Conn>, mut shutdown: ShutdownWatch, first: Duration)
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let mut kept: Option<HttpPersistentSettings> = None;
        let mut is_first = true;
        loop {
            let head = if is_first { first } else { self.header_timeout };
            let patience = Patience { head, idle: self.keepalive, is_first };
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
                return Box::pin(close(&mut *conn)).await;
            }
        }
    }

    /// Tells a client that there are too many, unless too many are being told already. One that waits for a
    /// TLS handshake could not read it.
    async fn turn_away(&self, below: &Below, stream: Stream) {
        self.witness.turned_away();
        if let Some(_place) = self.connections.refuse(Instant::now())
            && !matches!(below, Below::Tls(_))
        {
            self.refuse(&mut Conn::new(stream), &Rejection::Overloaded).await;
        }
    }

    async fn refuse(&self, conn: &mut Conn, rejection: &Rejection) {
        let id = self.witness.refused(client_of(conn), rejection);
        refuse(conn, rejection, &id).await;
    }
}

pub(super) fn client_of(conn: &(impl GetSocketDigest + ?Sized)) -> Option<IpAddr> {
    let socket = conn.get_socket_digest()?;
    socket.peer_addr()?.as_inet().map(std::net::SocketAddr::ip)
}
