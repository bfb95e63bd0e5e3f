//! One HTTP/2 stream: its request, and the answer as far as the client lets it go.
//!
//! ```text
//! Open --head--> Answering --end--> Ended
//!   |                |
//!   +-- reset by us, by the client, or by being dropped unended --> Ended
//! ```
//!
//! How the answer is written is in `write`.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, DATE, TRANSFER_ENCODING, UPGRADE};
use http::{Request, Response};
use pingora::protocols::Digest;
use pingora::protocols::http::date::get_cached_date;
use pingora::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};

use super::super::client::Client;
use super::write::Blocked;

/// One stream.
pub(super) struct Session {
    pub(super) request: RequestHeader,
    body: RecvStream,
    /// The request body has been read to its end, trailers or not.
    body_over: bool,
    pub(super) respond: SendResponse<Bytes>,
    pub(super) send: Option<SendStream<Bytes>>,
    pub(super) written: Option<Box<ResponseHeader>>,
    pub(super) ended: bool,
    pub(super) read: usize,
    pub(super) sent: usize,
    pub(super) digest: Digest,
    pub(super) client: Arc<Client>,
    pub(super) blocked: Option<Blocked>,
}

impl Session {
    pub(super) fn new(
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        client: Arc<Client>,
        connection: &Digest,
    ) -> Self {
        let (head, body) = request.into_parts();
        let digest = Digest { proxy_digest: Some(client.digest()), ..connection.clone() };
        Self {
            request: head.into(),
            body,
            body_over: false,
            respond,
            send: None,
            written: None,
            ended: false,
            read: 0,
            sent: 0,
            digest,
            client,
            blocked: None,
        }
    }

    pub(super) fn is_body_over(&self) -> bool {
        self.body_over || self.body.is_end_stream()
    }

    /// The next piece of the request body; `None` at its end.
    pub(super) async fn read_body(&mut self) -> Result<Option<Bytes>> {
        match self.body.data().await {
            None => {
                self.body_over = true;
                Ok(None)
            }
            Some(Ok(data)) => {
                self.read += data.len();
                let released = self.body.flow_control().release_capacity(data.len());
                released.map_err(|error| self.lost(ErrorType::ReadError, &error))?;
                Ok(Some(data))
            }
            Some(Err(error)) => Err(self.lost(ErrorType::ReadError, &error)),
        }
    }

    /// Returns when the client gives the stream up.
    pub(super) async fn left(&mut self) -> Box<Error> {
        match poll_fn(|cx| self.poll_reset(cx)).await {
            Ok(reason) => self.lost(ErrorType::H2Error, &reason),
            Err(error) => self.lost(ErrorType::H2Error, &error),
        }
    }

    pub(super) fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>> {
        match &mut self.send {
            Some(send) => send.poll_reset(cx),
            None => self.respond.poll_reset(cx),
        }
    }

    pub(super) fn lost(&self, kind: ErrorType, why: &dyn std::fmt::Display) -> Box<Error> {
        self.client.mark_gone(Instant::now());
        let mut error = Error::explain(kind, format!("the client left its stream: {why}"));
        error.as_down();
        error
    }

    /// Sends a head. Interim ones go out at once and count for nothing.
    pub(super) fn write_head(&mut self, mut head: Box<ResponseHeader>) -> Result<()> {
        if head.status.is_informational() {
            let mut interim = Response::new(());
            *interim.status_mut() = head.status;
            let sent = self.respond.send_informational(interim);
            return sent.map_err(|error| self.lost(ErrorType::WriteError, &error));
        }
        if self.written.is_some() || self.ended {
            return Ok(());
        }
        head.insert_header(DATE, get_cached_date())?;
        // Of HTTP/1.1 connections only; Pingora's loop adds the first (RFC 9113, 8.2.2).
        for name in [TRANSFER_ENCODING, CONNECTION, UPGRADE] {
            head.remove_header(&name);
        }
        head.remove_header("keep-alive");
        let answer = Response::from_parts(head.as_owned_parts(), ());
        match self.respond.send_response(answer, false) {
            Ok(send) => self.send = Some(send),
            Err(error) => return Err(self.lost(ErrorType::WriteError, &error)),
        }
        self.written = Some(head);
        self.client.mark_answered();
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.unblock();
        self.reset(Reason::INTERNAL_ERROR);
    }
}
