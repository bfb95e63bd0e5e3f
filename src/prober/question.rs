//! The head of a question: the backend's own prefix and Host, the cluster's headers and credentials.

use http::header::{self, HeaderValue};
use http::{HeaderMap, Method};
use pingora::{ErrorType, OrErr, Result};
use pingora_http::RequestHeader;

use super::Target;
use crate::upstream;

/// Sent as `User-Agent`, so that it can be told from work in an engine's log.
const AGENT: &str = concat!("streamgate/", env!("CARGO_PKG_VERSION"));

/// The head of a request for `path` with a body of `length` bytes of JSON; without one it is a GET.
///
/// # Errors
/// The path is no path.
pub(super) fn head(target: &Target, path: &str, length: Option<usize>) -> Result<RequestHeader> {
    let Target { cluster, backend } = target;
    let method = if length.is_some() { Method::POST } else { Method::GET };
    let path = backend.prefix.clone() + path;
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    upstream::apply(&mut headers, &cluster.config.headers);
    let host = HeaderValue::from_str(&backend.host);
    headers.insert(header::HOST, host.explain_err(ErrorType::InvalidHTTPHeader, |_| "the backend's host")?);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(length) = length {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    upstream::authorize(&mut headers, &cluster.config.auth);
    let mut parts = http::Request::new(()).into_parts().0;
    (parts.method, parts.headers) = (method, headers);
    let mut head = RequestHeader::from(parts);
    head.set_raw_path(path.as_bytes())?;
    Ok(head)
}
