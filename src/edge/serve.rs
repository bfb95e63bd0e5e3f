//! The life of one client connection: TLS if the listener has it, then HTTP/2, or HTTP/1.1 request after
//! request until one side has enough. Before that it finds its way in, see `door`.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora::protocols::http::ServerSession;
use pingora::protocols::tls::SslStream;
use pingora::protocols::{Stream, l4};
use pingora::server::ShutdownWatch;

use super::chunks::Malformed;
use super::conn::Conn;
use super::connections::{Connections, TurnedAway};
use super::door::Entry;
use super::h2;
use super::handshake::{Handshake, is_h2};
use super::head::Limits;
use super::pair::Shown;
use super::preface::{self, Spoken};
use super::reader::{self, Head, Patience};
use super::refuse::{Witness, close, refuse};
use super::tls::{NoTls, Tls};
use crate::forwarded::Trusted;
use crate::memory::{Level, Memory};
use crate::rejection::Rejection;
use crate::told::Told;

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
    /// Whether there is memory for clients.
    pub memory: Arc<Memory>,
    /// Proxies, which speak for others.
    pub trusted: Trusted,
    /// HTTP/2 connections that were closed for what their clients did.
    pub goaways: Told,
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

impl Below {
    /// The certificates that clients are shown.
    pub fn shown(&self) -> Vec<Shown> {
        match self {
            Self::Plain | Self::PlainH2 => Vec::new(),
            Self::Tls(tls) => tls.shown(),
        }
    }
}

impl Edge {
    /// Serves a connection that has been let in to its end.
    pub(super) async fn converse<A>(
        &self,
        app: &Arc<A>,
        below: &Below,
        stream: Stream,
        entry: Entry,
        shutdown: ShutdownWatch,
    ) where
        A: HttpServerApp + Send + Sync + 'static,
    {
        match below {
            Below::Plain => {
                let conn = Box::new(Conn::new(stream, entry));
                self.serve(app, conn, shutdown, self.header_timeout).await;
            }
            // Their futures are larger; a plain connection does not carry them.
            Below::PlainH2 => Box::pin(self.plain_h2(app, Conn::new(stream, entry), shutdown)).await,
            Below::Tls(tls) => Box::pin(self.tls(app, tls, stream, entry, shutdown)).await,
        }
    }

    async fn plain_h2<A>(&self, app: &Arc<A>, mut conn: Conn, mut shutdown: ShutdownWatch)
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let began = Instant::now();
        let spoken = preface::look(&mut conn, self.memory.patience(self.header_timeout), &mut shutdown).await;
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

    async fn tls<A>(&self, app: &Arc<A>, tls: &Tls, stream: Stream, entry: Entry, mut shutdown: ShutdownWatch)
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let stream = tokio::select! {
            stream = self.memory.within(self.header_timeout, tls.accept(stream)) => stream,
            () = preface::last_call(&mut shutdown) => return,
        };
        let stream = match stream {
            Some(Ok(stream)) => stream,
            Some(Err(NoTls::PlainHttp(socket))) => {
                self.witness.handshake(Handshake::PlainHttp);
                return self.point_to_https(*socket, entry).await;
            }
            Some(Err(NoTls::Failed)) => return self.no_tls(Handshake::Failed, entry),
            None => return self.no_tls(Handshake::TimedOut, entry),
        };
        self.witness.handshake(Handshake::of(&stream));
        let is_h2 = is_h2(&stream);
        let conn = Box::new(Conn::new(Box::new(stream), entry));
        if is_h2 {
            let client = Arc::clone(conn.client());
            h2::serve(self, app, conn, &client, shutdown).await;
        } else {
            self.serve(app, conn, shutdown, self.header_timeout).await;
        }
    }

    fn no_tls(&self, handshake: Handshake, entry: Entry) {
        self.witness.handshake(handshake);
        self.turned_away(TurnedAway::Handshake, entry);
    }

    /// Tells a client that speaks plain HTTP on a listener with TLS, in its own tongue, what it should do.
    async fn point_to_https(&self, mut socket: SslStream<l4::stream::Stream>, entry: Entry) {
        self.turned_away(TurnedAway::PlainHttp, entry);
        let rejection = Rejection::invalid("this is plain HTTP, and the port speaks TLS: use https", None);
        let id = self.witness.refused(entry.peer.address(), &rejection);
        refuse(socket.get_mut(), &rejection, &id).await;
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
            let request = match reader::read(&mut conn, &self.limits, patience, &self.memory, &mut shutdown)
                .await
            {
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
                Err(Rejection::Overloaded) => {
                    return Box::pin(self.refuse_if_room(&mut conn, &Rejection::Overloaded)).await;
                }
                Err(rejection) => return Box::pin(self.refuse(&mut conn, &rejection)).await,
            };
            is_first = false;
            let Some(reusable) = process(app, conn, kept.take(), request, &shutdown).await else { return };
            let (stream, settings) = reusable.consume();
            let Ok(idle) = stream.into_any().downcast::<Conn>() else { return };
            conn = idle;
            kept = settings;
            if !conn.inbound.next() {
                return Box::pin(close(&mut *conn)).await;
            }
        }
    }

    /// Counts and tells one that is not served.
    pub(super) fn turned_away(&self, why: TurnedAway, entry: Entry) {
        self.witness.turned_away(why);
        self.connections.tell(why, entry.peer.address(), Instant::now());
    }

    /// Tells a client that there is no room for it, unless that itself is too much: while too many are told already,
    /// or at the very end of the memory, it is closed without a word.
    pub(super) async fn refuse_if_room(&self, conn: &mut Conn, rejection: &Rejection) {
        if self.memory.level() < Level::Cut
            && let Some(_place) = self.connections.refuse()
        {
            self.refuse(conn, rejection).await;
        }
    }

    pub(super) async fn refuse(&self, conn: &mut Conn, rejection: &Rejection) {
        let id = self.witness.refused(conn.client().entry().peer.address(), rejection);
        refuse(conn, rejection, &id).await;
    }
}

/// Has the request that begins with `head` answered. No `async fn`: a connection would hold the session twice then, and
/// while it is idle too.
fn process<'a, A>(
    app: &'a Arc<A>,
    conn: Box<Conn>,
    kept: Option<HttpPersistentSettings>,
    head: BytesMut,
    shutdown: &'a ShutdownWatch,
) -> impl Future<Output = Option<ReusedHttpStream>> + Send + use<'a, A>
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let mut session = ServerSession::new_http1(conn);
    match kept {
        Some(settings) => settings.apply_to_session(&mut session),
        // Whether, not how long: an idle connection waits in its reader.
        None => session.set_keepalive(Some(0)),
    }
    if *shutdown.borrow() {
        session.set_keepalive(None);
    }
    session.set_pipelined_prefix(head);
    app.process_new_http(session, shutdown)
}
