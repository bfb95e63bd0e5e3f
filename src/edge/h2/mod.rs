//! One HTTP/2 client connection: its streams, how long it may be quiet, and when it goes.
//!
//! The framing is the h2 crate's. Its loop, the check of heads and the stream that Pingora's proxy reads
//! and writes ([`stream`]) are ours, and not Pingora's: there a body may take for ever, a write is timed
//! as a whole however much the client takes of it, and a malformed head leaves no line in the log.
//!
//! The one hard idea is whose patience ends what. A *stream* that takes nothing is given up alone, by its
//! own `write_stall`; its siblings go on. A *socket* that takes nothing is given up with all its streams,
//! after the longest `write_stall` among them (see `Client`). A connection without streams is idle and
//! goes after `keepalive`, or `header_timeout` if it never had one.

mod head;
mod marker;
mod pingora_impl;
mod stream;
mod tally;
mod write;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use pingora::apps::HttpServerApp;
use pingora::protocols::http::ServerSession;
use pingora::protocols::{Digest, Stream};
use pingora::server::ShutdownWatch;

use super::client::Client;
use super::head::Limits;
use super::reader::LAST_CALL;
use super::serve::Edge;
use crate::memory::Level;
use tally::{Abuse, Tally};

/// Streams of one connection at a time. As many as nginx allows; beyond it a client opens another
/// connection, and what one connection can hold stays bounded.
const STREAMS_MAX: u32 = 128;

/// Bytes of a stream that may wait in the connection, beside the exchange's own window: two writes, so that
/// one can be sent while the next is made.
const SEND_BUFFER: usize = 2 * write::PIECE;

/// Bytes of a request body that a client may send before they are taken. They are taken at once, so this
/// bounds the speed of an upload (256 KiB a round trip), not the memory for it.
const STREAM_WINDOW: u32 = 256 * 1024;

/// The same for all streams of a connection.
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Size asked for the socket's send buffer. All streams share it: one that is blocked in the kernel would
/// stand before its siblings, so it is small, yet several round trips of tokens.
const SOCKET_BUFFER: usize = 256 * 1024;

/// Streams of a connection that the framing may have to reset for what the client sends on them. It is as good
/// as a reset by the client ("MadeYouReset", CVE-2025-8671); the crate's own bound is 1,024.
const LOCAL_RESETS_MAX: usize = 100;

/// What a header line counts beside its name and value (RFC 9113, 6.5.2).
const LINE_OVERHEAD: usize = 32;

/// Time for the last frames when a connection is closed.
const PARTING: Duration = Duration::from_secs(1);

type H2 = Connection<Stream, Bytes>;

/// What all streams of a connection have in common.
#[derive(Clone)]
struct Origin {
    client: Arc<Client>,
    digest: Arc<Digest>,
}

/// Serves a connection to its end.
pub(super) async fn serve<A>(
    edge: &Edge,
    app: &Arc<A>,
    stream: Stream,
    client: &Arc<Client>,
    mut shutdown: ShutdownWatch,
) where
    A: HttpServerApp + Send + Sync + 'static,
{
    client.size(SOCKET_BUFFER);
    let origin = Origin {
        client: Arc::clone(client),
        digest: Arc::new(Digest {
            ssl_digest: stream.get_ssl_digest(),
            timing_digest: Vec::new(),
            proxy_digest: None,
            socket_digest: stream.get_socket_digest(),
        }),
    };
    let ip = client.entry().peer.address();
    let opening = edge.memory.within(edge.header_timeout, builder(&edge.limits).handshake(stream));
    let mut connection = match opening.await {
        Some(Ok(connection)) => connection,
        Some(Err(error)) => return edge.goaway(&error, ip),
        None => return,
    };
    let tally = Arc::new(Tally::of(edge.trusted.trusts(client.entry().peer)));
    let mut patience = edge.header_timeout;
    let mut leaving = *shutdown.borrow();
    if leaving {
        connection.graceful_shutdown();
    }
    loop {
        let level = edge.memory.level();
        let quiet = match level {
            _ if leaving => LAST_CALL,
            Level::Refuse | Level::Cut => Duration::ZERO,
            Level::Calm | Level::Short => edge.memory.shortened(patience),
        };
        let accepted = tokio::select! {
            biased;
            changed = shutdown.changed(), if !leaving => {
                leaving = changed.is_err() || *shutdown.borrow();
                if leaving {
                    connection.graceful_shutdown();
                }
                continue;
            }
            accepted = connection.accept() => accepted,
            _ = edge.memory.above(level) => continue,
            () = tally.quiet_for(quiet) => return close(connection, Reason::NO_ERROR).await,
        };
        let (request, respond) = match accepted {
            Some(Ok(asked)) => asked,
            Some(Err(error)) => return edge.goaway(&error, ip),
            None => return,
        };
        patience = edge.keepalive;
        if let Some(abuse) = tally.abuse(Instant::now()) {
            edge.calm(abuse, ip);
            return close(connection, Reason::ENHANCE_YOUR_CALM).await;
        }
        match head::check(request, &edge.limits) {
            Ok(request) => start(app, &origin, &tally, request, respond, &shutdown),
            Err(rejection) => {
                let id = edge.witness.refused(ip, &rejection);
                head::refuse(respond, &rejection, &id);
                tally.refused();
            }
        }
    }
}

fn builder(limits: &Limits) -> Builder {
    // Larger ones the framing refuses by itself, without a word of ours.
    let list = limits.header_bytes + limits.header_count * LINE_OVERHEAD;
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(list).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER)
        .max_local_error_reset_streams(Some(LOCAL_RESETS_MAX))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    builder
}

/// Serves one stream in a task of its own.
fn start<A>(
    app: &Arc<A>,
    origin: &Origin,
    tally: &Arc<Tally>,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    shutdown: &ShutdownWatch,
) where
    A: HttpServerApp + Send + Sync + 'static,
{
    let client = Arc::new(Client::stream_of(&origin.client));
    // Boxed here: what a task is given it holds to its end, whatever has become of it.
    let session = Box::new(stream::Session::new(request, respond, Arc::clone(&client), &origin.digest));
    let (app, shutdown, open) = (Arc::clone(app), shutdown.clone(), tally.open(client, Instant::now()));
    tokio::spawn(async move {
        // A stream is never reused, so nothing comes back.
        drop(app.process_new_http(ServerSession::new_custom(session), &shutdown).await);
        drop(open);
    });
}

impl Edge {
    /// Counts and tells a connection that the framing has ended for what the client sent.
    fn goaway(&self, error: &h2::Error, ip: Option<IpAddr>) {
        // An end that the client itself has announced, or that of the socket, is none of ours.
        if let Some(reason) = error.reason().filter(|_| !error.is_remote()) {
            self.tell_goaway(reason, &error.to_string(), ip);
        }
    }

    /// The same for one that asks for too much of what it does not want.
    fn calm(&self, abuse: Abuse, ip: Option<IpAddr>) {
        self.tell_goaway(Reason::ENHANCE_YOUR_CALM, abuse.told(), ip);
    }

    fn tell_goaway(&self, reason: Reason, why: &str, ip: Option<IpAddr>) {
        self.witness.goaway(label(reason));
        if let Some(count) = self.goaways.note(Instant::now()) {
            let from = ip.map_or_else(|| "-".to_owned(), |ip| ip.to_string());
            log::warn!("{count} HTTP/2 connections closed with GOAWAY; the last, from {from}: {why}");
        }
    }
}

/// The label in the metrics: the codes of RFC 9113, 7, that a client can cause.
fn label(reason: Reason) -> &'static str {
    match reason {
        Reason::PROTOCOL_ERROR => "protocol_error",
        Reason::FLOW_CONTROL_ERROR => "flow_control_error",
        Reason::STREAM_CLOSED => "stream_closed",
        Reason::FRAME_SIZE_ERROR => "frame_size_error",
        Reason::COMPRESSION_ERROR => "compression_error",
        Reason::ENHANCE_YOUR_CALM => "enhance_your_calm",
        _ => "other",
    }
}

/// Says goodbye, as far as the client listens.
async fn close(mut connection: H2, reason: Reason) {
    connection.abrupt_shutdown(reason);
    let closing = std::future::poll_fn(|cx| connection.poll_closed(cx));
    if !matches!(tokio::time::timeout(PARTING, closing).await, Ok(Ok(()))) {
        log::debug!("an HTTP/2 client did not take its GOAWAY");
    }
}
