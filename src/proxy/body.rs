//! Reading the request body: whole, bounded, accounted, and before any backend is touched.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pingora::{Error, ErrorType, Result};
use pingora_proxy::Session;

use super::holders::Upload;
use super::shared::Shared;
use crate::header_rules::read_as;
use crate::memory::{Level, Memory};
use crate::rejection::Rejection;
use crate::upstream::Body;

/// Least that is reserved at once for a body that announces as much: most come in one piece, or in few.
const LEAST: u64 = 16 * 1024;
/// A body that has come so far gets the room for all that it announced: untouched it costs nothing, and a large body is not
/// copied again and again, which would take its room twice.
const WHOLE_FROM: u64 = 256 * 1024;

/// How long, and how long without a byte, an unread body is drained before the connection is closed:
/// closing at once would reset it, and the client might never see the answer (RFC 9112, 9.6).
const DRAIN: Duration = Duration::from_secs(5);
const DRAIN_SILENCE: Duration = Duration::from_secs(1);

/// Why there is no body.
pub(super) enum NoBody {
    /// The client is told.
    Rejected(Rejection),
    /// The client is gone.
    Lost(Box<Error>),
}

impl From<Rejection> for NoBody {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// Bounds of one body.
pub(super) struct Bounds {
    /// Most bytes.
    pub(super) limit: u64,
    /// Time for all of it.
    pub(super) timeout: Duration,
}

/// Reads the whole body. `100 Continue` is sent first where the client waits for it.
pub(super) async fn read(session: &mut Session, bounds: Bounds, shared: &Shared) -> Result<Body, NoBody> {
    let announced = content_length(session);
    if announced.is_some_and(|length| length > bounds.limit) {
        return Err(Rejection::BodyTooLarge { limit: bounds.limit }.into());
    }
    if expects_continue(session)? && !session.is_body_empty() {
        session.set_close_on_response_before_downstream_finish(false);
        session.write_continue_response().await.map_err(NoBody::Lost)?;
    }
    let mut cut = shared.drain.cut_signal();
    tokio::select! {
        read = shared.memory.within(bounds.timeout, collect(session, announced, bounds.limit, shared)) => {
            read.unwrap_or_else(|| Err(Rejection::RequestTimeout.into()))
        }
        () = std::future::poll_fn(|cx| cut.poll(cx)) => Err(Rejection::ShuttingDown.into()),
    }
}

async fn collect(
    session: &mut Session,
    announced: Option<u64>,
    limit: u64,
    shared: &Shared,
) -> Result<Body, NoBody> {
    let mut held = shared.ledger.open();
    let mut upload = None;
    // A client must send before it costs: what it has announced takes no room of others.
    let mut bytes = BytesMut::new();
    let mut reserved = 0;
    while let Some(chunk) = next(session, upload.as_ref(), &shared.memory).await? {
        let length = (bytes.len() + chunk.len()) as u64;
        if length > limit {
            return Err(Rejection::BodyTooLarge { limit }.into());
        }
        if length > reserved {
            let wanted = (length * 2).max(LEAST).min(announced.unwrap_or(limit)).max(length);
            if !held.grow(wanted - reserved) {
                return Err(Rejection::Overloaded.into());
            }
            reserved = wanted;
        }
        if length > bytes.capacity() as u64 {
            let room = announced.filter(|_| length > WHOLE_FROM).unwrap_or(reserved).max(length);
            bytes.reserve(usize::try_from(room).unwrap_or(usize::MAX) - bytes.len());
        }
        bytes.extend_from_slice(&chunk);
        // Most bodies come in one piece.
        if !session.downstream_session.is_body_done() {
            upload.get_or_insert_with(|| Upload::begin(&shared.memory)).has(bytes.len());
        }
    }
    Ok(Body { bytes: bytes.freeze(), held: Arc::new(held) })
}

/// The next piece; the end of a body that is cut for the memory it takes.
async fn next(
    session: &mut Session,
    upload: Option<&Upload>,
    memory: &Memory,
) -> Result<Option<Bytes>, NoBody> {
    let read = session.downstream_session.read_request_body();
    let Some(upload) = upload else { return read.await.map_err(unread) };
    // While the largest are cut no other becomes larger.
    let read = async {
        memory.below(Level::Cut).await;
        read.await
    };
    tokio::select! {
        read = read => read.map_err(unread),
        () = upload.cut() => Err(Rejection::Overloaded.into()),
    }
}

/// A body that cannot be read on: its framing is wrong, by the edge's check or by Pingora's, or else the
/// client is gone.
fn unread(error: Box<Error>) -> NoBody {
    let cause = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let is_malformed = cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::InvalidData)
        || matches!(error.etype(), ErrorType::Custom("InvalidChunk" | "InvalidTrailerEnd"));
    if is_malformed { Rejection::malformed_body().into() } else { NoBody::Lost(error) }
}

/// Reads on for a while what a refused client still sends.
pub(super) async fn linger(session: &mut Session) {
    if session.downstream_session.is_body_done() {
        return;
    }
    let reading = async {
        loop {
            let read = session.downstream_session.read_request_body();
            match tokio::time::timeout(DRAIN_SILENCE, read).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None) | Err(_)) | Err(_) => return,
            }
        }
    };
    if tokio::time::timeout(DRAIN, reading).await.is_err() {
        log::debug!("a refused client still sends; its connection is closed");
    }
}

fn content_length(session: &Session) -> Option<u64> {
    let value = session.req_header().headers.get(http::header::CONTENT_LENGTH)?;
    value.to_str().ok()?.parse().ok()
}

/// Refuses a body with a content coding: nobody here could look into it, a few of its bytes may stand for
/// gigabytes at the engine, and a proxy in front of the engine may decode what its neighbour did not.
pub(super) fn is_plain(session: &Session) -> Result<(), Rejection> {
    let headers = &session.req_header().headers;
    let mut codings = headers.iter().filter(|(name, _)| read_as(name.as_str()) == "content-encoding");
    if codings.all(|(_, coding)| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        Ok(())
    } else {
        Err(Rejection::EncodedBody)
    }
}

/// Whether the client waits for `100 Continue`. An HTTP/1.0 client does not know it, and any other
/// expectation is one we cannot meet (RFC 9110, 10.1.1).
pub(super) fn expects_continue(session: &Session) -> Result<bool, Rejection> {
    if session.req_header().version == http::Version::HTTP_10 {
        return Ok(false);
    }
    let mut expected = session.req_header().headers.get_all(http::header::EXPECT).iter();
    let is_known = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    match expected.next() {
        None => Ok(false),
        Some(first) if is_known(first) && expected.all(is_known) => Ok(true),
        Some(_) => Err(Rejection::ExpectationFailed),
    }
}
