//! Requests in and answers out. Pingora's own way of serving wants each answer whole, and one of ours never ends:
//! the events of the live page.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Version;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, TRANSFER_ENCODING};
use pingora::Result;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora_http::ResponseHeader;

use super::answer::{Answer, refused, text};
use super::live::EVERY;
use super::{Admin, PATHS, Page, guard};

/// A connection is kept so long for the next request, in seconds.
const KEEPALIVE: u64 = 60;
/// Who takes nothing of a frame for so long has gone.
const STALLED: Duration = Duration::from_secs(10);

#[async_trait]
impl HttpServerApp for Admin {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        // A client that goes, or what is no HTTP, is no news.
        if !matches!(session.read_request().await, Ok(true)) {
            return None;
        }
        session.set_keepalive(if *shutdown.borrow() { None } else { Some(KEEPALIVE) });
        match self.serve(&mut session, shutdown).await {
            Ok(()) => {}
            Err(error) => {
                log::debug!("an operator has left: {error}");
                return None;
            }
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let reusable = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(reusable, settings))
    }
}

impl Admin {
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
        session.set_write_timeout(Some(STALLED));
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
