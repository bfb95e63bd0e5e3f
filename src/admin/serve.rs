//! Requests in and answers out. Pingora's own way of serving wants each answer whole, and one of ours never ends:
//! the events of the live page.
//!
//! Whoever is connected and has asked nothing waits at most [`PATIENCE`], and no longer than there is room for him
//! (see `places`): each connection is a descriptor, and a probe must find one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::Version;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, TRANSFER_ENCODING};
use pingora::Result;
use pingora::apps::ServerApp;
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora_http::ResponseHeader;
use tokio::time::timeout;

use super::answer::{Answer, refused, text};
use super::live::EVERY;
use super::places::{CONNECTIONS_MAX, Place};
use super::{Admin, PATHS, Page, guard, head};

/// A request head is whole within so much time, counted from the connection or from the answer before it; a client
/// takes something of an answer, and has sent the body that nobody wants of him, within as much.
const PATIENCE: Duration = Duration::from_secs(10);

#[async_trait]
impl ServerApp for Admin {
    async fn process_new(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let mut next = (stream, BytesMut::new());
        loop {
            next = self.exchange(next, shutdown).await?;
        }
    }
}

/// What a client does that has us wait; `None` if it took too long, or the place was wanted by another.
async fn within<T>(place: &mut Place<'_>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = timeout(PATIENCE, work) => done.ok(),
        () = place.is_wanted() => None,
    }
}

impl Admin {
    /// Answers the next request of a connection, of which some bytes may have come already. Gives both back where
    /// another may follow.
    async fn exchange(
        &self,
        (mut stream, come): (Stream, BytesMut),
        shutdown: &ShutdownWatch,
    ) -> Option<(Stream, BytesMut)> {
        let Some(mut place) = self.places.enter() else {
            self.tell_full();
            return None;
        };
        // A client that goes is no news.
        let head = match within(&mut place, head::read(&mut stream, come)).await?.ok()?? {
            Ok(head) => head,
            Err(wrong) => {
                // Nor is one that does not wait for what it is told.
                within(&mut place, head::refuse(&mut stream, wrong)).await?.ok()?;
                return None;
            }
        };
        let mut session = ServerSession::new_http1(stream);
        // Whether, not how long: the waiting is done above.
        session.set_keepalive(if *shutdown.borrow() { None } else { Some(0) });
        session.set_pipelined_prefix(head);
        if !matches!(within(&mut place, session.read_request()).await, Some(Ok(true))) || !place.keep() {
            return None;
        }
        session.set_write_timeout(Some(PATIENCE));
        if let Err(error) = self.serve(&mut session, shutdown).await {
            log::debug!("an operator has left: {error}");
            return None;
        }
        place.let_go();
        let reusable = within(&mut place, session.finish()).await?.ok()??;
        let (stream, come) = reusable.into_parts();
        Some((stream, come.unwrap_or_default()))
    }

    /// Says that nobody could make room.
    fn tell_full(&self) {
        if let Some(count) = self.turned_away.note(Instant::now()) {
            log::warn!(
                "admin: {count} connections were closed at once: {CONNECTIONS_MAX} are open, and all are being answered"
            );
        }
    }

    async fn serve(&self, session: &mut ServerSession, shutdown: &ShutdownWatch) -> Result<()> {
        let head = session.req_header();
        let (method, path) = (head.method.as_str().to_owned(), head.uri.path().to_owned());
        let Some(page) = Page::of(&path) else { return write(session, text(404, PATHS)).await };
        let admin = &self.shared.snapshot.load_full().server.admin;
        if let Err(refusal) = guard::check(head, page.acts(), page.is_open(), admin) {
            return write(session, refused(refusal)).await;
        }
        if page == Page::Events
            && method == "GET"
            && let Some(_watching) = self.live.watch()
        {
            return self.events(session, shutdown.clone()).await;
        }
        write(session, self.answer(&method, page).await).await
    }

    /// Sends a frame a second until the one who watches leaves, or the listener ends.
    async fn events(&self, session: &mut ServerSession, mut shutdown: ShutdownWatch) -> Result<()> {
        session.set_keepalive(None);
        let mut head = ResponseHeader::build(200, Some(4))?;
        head.insert_header(CONTENT_TYPE, "text/event-stream")?;
        head.insert_header(CACHE_CONTROL, "no-store")?;
        head.insert_header("x-accel-buffering", "no")?;
        if session.req_header().version == Version::HTTP_11 {
            head.insert_header(TRANSFER_ENCODING, "chunked")?;
        }
        session.write_response_header(Box::new(head)).await?;
        loop {
            let frame = self.frame();
            session.write_response_body(frame.event, false).await?;
            tokio::select! {
                () = tokio::time::sleep_until((frame.at + EVERY).into()) => {}
                gone = session.read_body_or_idle(true) => return gone.map(drop),
                _ = shutdown.changed() => return session.write_response_body(Bytes::new(), true).await,
            }
        }
    }
}

async fn write(session: &mut ServerSession, answer: Answer) -> Result<()> {
    let (head, body) = answer.into_parts();
    session.write_response_header(Box::new(head.into())).await?;
    if body.is_empty() {
        return Ok(());
    }
    session.write_response_body(body, true).await
}
