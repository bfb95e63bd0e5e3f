//! The fields of a body that are acted on, read where it does not hold up the streams of a thread.

use std::sync::Arc;

use pingora_proxy::Session;

use super::exchange::Exchange;
use crate::openai::request;
use crate::rejection::Rejection;
use crate::upstream::Body;

/// Largest body that is read and edited on a worker thread. Reading goes at about 1 GB/s; beyond this it
/// would hold up the streams of that thread for more than a fraction of a millisecond.
const INLINE_MAX: usize = 256 * 1024;

/// Runs what takes a time that grows with a body: off the worker threads where it is large.
pub(super) async fn inline_if_small<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Rejection> {
    if length <= INLINE_MAX {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| Rejection::Internal)
}

/// Reads the fields that are acted on. `None` for a body that is not JSON by its declared type, or
/// no body at all.
pub(super) async fn peek(
    session: &Session,
    exchange: &Exchange,
    body: &Body,
) -> Result<Option<request::Peek>, Rejection> {
    if body.bytes.is_empty() || is_opaque(session, &body.bytes) {
        return Ok(None);
    }
    let (bytes, snapshot) = (body.bytes.clone(), Arc::clone(&exchange.snapshot));
    let read = move || request::peek(&bytes, &snapshot.wanted);
    let read = inline_if_small(body.bytes.len(), read).await?;
    read.map(Some).map_err(|invalid| Rejection::invalid(invalid.to_string(), invalid.field()))
}

/// Whether the body is not JSON and passes byte for byte. A body without a type is taken for JSON; one
/// with the type of a form or of plain text is too if it looks like it, as curl's default is a form's.
fn is_opaque(session: &Session, body: &[u8]) -> bool {
    let Some(kind) = session.req_header().headers.get(http::header::CONTENT_TYPE) else { return false };
    let kind = kind.as_bytes().to_ascii_lowercase();
    if memchr::memmem::find(&kind, b"json").is_some() {
        return false;
    }
    let vague: [&[u8]; 2] = [b"application/x-www-form-urlencoded", b"text/plain"];
    let is_vague = vague.iter().any(|prefix| kind.starts_with(prefix));
    !(is_vague && body.trim_ascii_start().starts_with(b"{"))
}
