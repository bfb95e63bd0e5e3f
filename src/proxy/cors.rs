//! The answers that browsers ask for before they let a page have one.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderName,
    HeaderValue, VARY,
};
use pingora::Result;
use pingora_http::ResponseHeader;

use super::exchange::Exchange;
use crate::cors::EXPOSED;

/// What the names of all headers about it begin with.
const OURS: &str = "access-control-";

/// Writes what the client's origin may do with this answer. What an engine says of that stops here: it does not
/// know who reaches it.
pub(super) fn write(head: &mut ResponseHeader, exchange: &Exchange) -> Result<()> {
    let Some(origin) = &exchange.request.origin else {
        return vary(head, exchange);
    };
    head.insert_header(ACCESS_CONTROL_ALLOW_ORIGIN, origin)?;
    head.insert_header(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"))?;
    head.insert_header(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED))?;
    vary(head, exchange)
}

/// Takes out what an engine says of it.
pub(super) fn strip(head: &mut ResponseHeader) {
    let said: Vec<HeaderName> =
        head.headers.keys().filter(|name| name.as_str().starts_with(OURS)).cloned().collect();
    for name in said {
        head.remove_header(&name);
    }
}

/// Another origin would have got another answer.
fn vary(head: &mut ResponseHeader, exchange: &Exchange) -> Result<()> {
    if exchange.snapshot.cors.is_on() {
        head.append_header(VARY, HeaderValue::from_static("Origin"))?;
    }
    Ok(())
}
