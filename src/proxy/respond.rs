//! Answers of the gateway's own.

use std::time::Instant;

use bytes::Bytes;
use pingora::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::{FailToProxy, Session};

use super::exchange::Exchange;
use super::{body, cors};
use crate::cors::{Cors, Granted, MAX_AGE};
use crate::openai::Dialect;
use crate::outcome::Outcome;
use crate::rejection::Rejection;

/// A whole answer.
pub(super) struct Reply {
    status: u16,
    content_type: String,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Reply {
    /// An answer with a body.
    pub(super) fn new(status: u16, content_type: impl Into<String>, body: Bytes) -> Self {
        Self { status, content_type: content_type.into(), headers: Vec::new(), body }
    }

    /// `204 No Content` that lists the methods of a path.
    pub(super) fn options(allow: String) -> Self {
        let mut reply = Self::new(204, "", Bytes::new());
        reply.headers.push(("allow", allow));
        reply
    }

    /// `204 No Content` that tells a browser what a page may send.
    pub(super) fn preflight(granted: Granted, cors: &Cors) -> Self {
        let mut reply = Self::new(204, "", Bytes::new());
        reply.headers.extend([
            ("access-control-allow-methods", cors.methods.clone()),
            ("access-control-allow-headers", granted.headers),
            ("access-control-max-age", MAX_AGE.to_owned()),
            ("vary", "Access-Control-Request-Method, Access-Control-Request-Headers".to_owned()),
        ]);
        reply
    }

    /// `308 Permanent Redirect`: the same method and body once more, at `location` (RFC 9110, 15.4.9).
    pub(super) fn redirect(location: String) -> Self {
        let mut reply = Self::new(308, "text/plain", Bytes::new());
        reply.headers.push(("location", location));
        reply
    }

    /// The JSON error that says `rejection`, in the form that clients of the endpoint expect.
    pub(super) fn rejection(rejection: &Rejection, exchange: &Exchange) -> Self {
        let dialect = Dialect::of(&exchange.request.path);
        let body = dialect.error_body(&rejection.told(&rejection.message(), exchange.about()));
        let mut reply = Self::new(rejection.status(), "application/json", body);
        if let Some(name) = dialect.request_id_header() {
            reply.headers.push((name, exchange.id.clone()));
        }
        reply.headers.extend(rejection.header().map(|(name, value)| (name, value.to_owned())));
        reply.headers.extend(rejection.standing().headers());
        reply
    }

    fn head(&self, id: &str) -> Result<ResponseHeader> {
        let mut head = ResponseHeader::build(self.status, Some(6 + self.headers.len()))?;
        // The one has neither (RFC 9110, 8.6); of the other both would be those of the answer that is not modified.
        if !matches!(self.status, 204 | 304) {
            head.insert_header("content-type", &self.content_type)?;
            head.insert_header("content-length", self.body.len().to_string())?;
        }
        for (name, value) in &self.headers {
            head.insert_header(*name, value)?;
        }
        head.insert_header("x-request-id", id)?;
        Ok(head)
    }
}

/// Tells the client `rejection`.
pub(super) async fn reject(
    session: &mut Session,
    exchange: &mut Exchange,
    rejection: &Rejection,
) -> Result<()> {
    exchange.end_with(rejection.outcome(), rejection);
    let reply = Reply::rejection(rejection, exchange);
    send(session, exchange, reply).await
}

/// Sends an answer that completes the exchange.
pub(super) async fn complete(session: &mut Session, exchange: &mut Exchange, reply: Reply) -> Result<()> {
    exchange.end(Outcome::Completed, None);
    send(session, exchange, reply).await
}

/// Tells the client what the phases failed with, if it can still be told; breaks a stream that it cannot be told in.
pub(super) async fn failed(
    session: &mut Session,
    exchange: &mut Exchange,
    rejection: Option<Rejection>,
) -> FailToProxy {
    let answered = session.response_written().is_some();
    let Some(rejection) = rejection.filter(|_| !answered) else {
        // A stream of HTTP/2 is broken by a reset, behind what has been written of it.
        if let Some(stream) = session.downstream_session.as_custom_mut() {
            stream.abandon("").await;
        }
        return FailToProxy { error_code: 0, can_reuse_downstream: false };
    };
    // Pingora keeps no HTTP/1.1 connection on which proxying failed, and its client must not be told that it does.
    session.set_keepalive(None);
    let reply = Reply::rejection(&rejection, exchange);
    let sent = send(session, exchange, reply).await;
    FailToProxy { error_code: rejection.status(), can_reuse_downstream: sent.is_ok() }
}

/// Sends `reply`. A connection with an unread body is not kept: its bytes must not be taken for the
/// next request.
pub(super) async fn send(session: &mut Session, exchange: &mut Exchange, reply: Reply) -> Result<()> {
    let unread = !session.downstream_session.is_body_done();
    if unread || exchange.is_leaving() {
        session.set_keepalive(None);
    }
    exchange.ending.status = reply.status;
    let is_head = session.req_header().method == http::Method::HEAD;
    let has_body = !is_head && !reply.body.is_empty();
    let mut head = reply.head(&exchange.id)?;
    cors::write(&mut head, exchange)?;
    session.write_response_header(Box::new(head), !has_body).await?;
    if has_body {
        exchange.answer.bytes += reply.body.len() as u64;
        session.write_response_body(Some(reply.body), true).await?;
    }
    // Its end has been told; what follows only keeps the connection from being reset under the answer.
    exchange.settle(Instant::now());
    // A client that waits for `100 Continue` sends nothing any more; on HTTP/2 only the stream is closed.
    let is_whole_connection = session.as_http1().is_some();
    if unread
        && is_whole_connection
        && !exchange.is_cut()
        && !matches!(body::expects_continue(session), Ok(true))
    {
        body::linger(session).await;
    }
    Ok(())
}
