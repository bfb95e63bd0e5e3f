//! The upstream side of an exchange: one attempt on one backend.
//!
//! Pingora's proxy loop asks a *custom connector* for a session and then only reads from it. Ours
//! answers at once with a session that has not connected yet: connecting, sending and waiting all
//! happen while the response is being read, inside the same future that watches the client. So
//! whatever the attempt is doing when the client leaves, dropping one future ends it.
//!
//! The session owns time and bytes and nothing else: which deadline is next, how many bytes may be
//! under way. Meaning (events, usage, status policy) is read by the filters in `proxy`.

mod asker;
mod below;
mod commit;
mod connector;
mod dial;
mod doubt;
mod drive;
mod duplex;
mod head;
mod link;
mod opening;
mod paused;
mod pingora_impl;
mod plan;
mod session;
mod throwaway;
mod tls;
mod whole;
mod window;

pub use asker::{Asker, Heard, Unheard};
pub use connector::Connector;
pub use head::{apply, authorize};
pub use link::Link;
pub use plan::{Body, Plan};
pub use session::Session;
pub use throwaway::Throwaway;
pub use window::Credit;

use pingora_http::ResponseHeader;

/// As a chunk: no upstream byte, but time for a heartbeat. Told apart by its address.
pub use crate::sse::encode::HEARTBEAT;

/// A chunk that is no upstream byte: the attempt failed here, [`Link::failure`] says how.
pub static FAILURE: &[u8] = b": failure\n\n";

/// A chunk that is no upstream byte: the body is at an end that is in doubt. Whether it may be one is answered with
/// [`Link::give_word`].
pub static ENDED: &[u8] = b": ended\n\n";

/// Whether `chunk` is the very constant `mark`, and not bytes that happen to be equal.
pub fn is_mark(chunk: &[u8], mark: &'static [u8]) -> bool {
    std::ptr::eq(chunk.as_ptr(), mark.as_ptr()) && chunk.len() == mark.len()
}

/// Whether a response is an event stream that we reframe: a success, SSE, and not compressed.
pub fn is_event_stream(head: &ResponseHeader) -> bool {
    head.status.is_success() && is_of(head, b"text/event-stream") && is_plain(head)
}

/// Whether the body is a JSON text by its type.
pub fn is_json(head: &ResponseHeader) -> bool {
    is_of(head, b"application/json")
}

/// Whether the body is of this media type, whatever its parameters are. A list is read by its first: a header that a
/// server writes twice comes out of some proxies as one.
fn is_of(head: &ResponseHeader, kind: &[u8]) -> bool {
    let value =
        head.headers.get(http::header::CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let named = value.split(|byte| b";,".contains(byte)).next().unwrap_or_default();
    named.trim_ascii().eq_ignore_ascii_case(kind)
}

/// Whether the body is not compressed.
pub(crate) fn is_plain(head: &ResponseHeader) -> bool {
    let encoding = head.headers.get(http::header::CONTENT_ENCODING);
    encoding.is_none_or(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"))
}
