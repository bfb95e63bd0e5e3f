//! The `respond` of a route.

use super::value;
use crate::config::Fixed;
use crate::config::place::{At, shown};
use crate::config::raw;

/// Statuses without a body (RFC 9110, 15.3.5, 15.3.6 and 15.4.5).
const BODILESS: [u64; 3] = [204, 205, 304];

/// Largest body of a fixed answer: a page, not a file.
const RESPOND_BYTES_MAX: usize = 64 * 1024;

/// A fixed answer.
pub(super) fn fixed(raw: &raw::Respond, at: &At<'_>) -> Fixed {
    let content_type = raw.content_type.get().cloned().unwrap_or_else(|| "text/plain".into());
    if content_type.is_empty() || !content_type.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
        at.key("content_type")
            .problem(format!("{} is no content type", shown(&content_type)), "as in text/plain");
    }
    let status = raw.status.get().map_or(200, |status| status.0);
    let status = value::within(status, &at.key("status"), 200..=599);
    let body = raw.body.or_empty();
    if !body.is_empty() && BODILESS.contains(&status) {
        at.key("body").problem(format!("an answer with status {status} has no body"), "leave it out");
    } else if body.len() > RESPOND_BYTES_MAX {
        at.key("body").problem(
            format!("{} bytes, and at most {RESPOND_BYTES_MAX} are answered from here", body.len()),
            "serve it from a server for files",
        );
    }
    let needs_key = raw.needs_key.get() == Some(&true);
    Fixed { status: u16::try_from(status).unwrap_or(200), content_type, body, needs_key }
}
