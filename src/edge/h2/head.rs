//! The strict check of an HTTP/2 request head, and the answer to one that is refused.
//!
//! The h2 crate refuses what breaks HTTP/2 itself (RFC 9113, 8.1.1: upper case, connection headers,
//! pseudo-headers out of place). Here is what would mean two things to two readers once it is written out
//! as HTTP/1.1 for an engine, and the bounds that hold for HTTP/1.1 too. What passes is given the form of
//! an HTTP/1.1 head: one `host`, one `cookie`.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request, Response};

use super::super::chunks::is_token;
use super::super::head::{Limits, bad, is_disguised, number};
use super::super::refuse;
use super::super::target::{is_host, is_path};
use crate::rejection::Rejection;

/// Checks a head and gives it back in its plain form.
///
/// # Errors
/// What the client is to be told.
pub(super) fn check(
    mut request: Request<RecvStream>,
    limits: &Limits,
) -> Result<Request<RecvStream>, Rejection> {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str()).to_owned();
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    if request.method() == Method::CONNECT {
        return Err(Rejection::MethodNotAllowed { allow: "GET, HEAD, OPTIONS, POST".into() });
    }
    bounds(&target, request.headers(), limits)?;
    if !is_path(&target) {
        return Err(bad("the path is not a path"));
    }
    // Absent where there is no authority: then the h2 crate keeps none.
    if request.uri().scheme_str().is_some_and(|scheme| !["http", "https"].contains(&scheme)) {
        return Err(bad("the scheme is not http or https"));
    }
    names(request.headers())?;
    if lengths(request.headers()).is_none() {
        return Err(bad("content-length must stand once and be a number"));
    }
    name_host(request.headers_mut(), authority.as_deref())?;
    join_cookies(request.headers_mut());
    Ok(request)
}

fn bounds(target: &str, headers: &HeaderMap, limits: &Limits) -> Result<(), Rejection> {
    if target.len() > limits.uri_bytes {
        return Err(Rejection::UriTooLong);
    }
    // Counted as HTTP/1.1 would write them: ": " and a line end.
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers.len() > limits.header_count || target.len() + bytes > limits.header_bytes {
        return Err(Rejection::HeadTooLarge);
    }
    Ok(())
}

/// Names that the `http` crate takes and HTTP/1.1 does not (RFC 9110, 5.6.2), and those that would be taken for
/// framing.
fn names(headers: &HeaderMap) -> Result<(), Rejection> {
    for name in headers.keys().map(HeaderName::as_str) {
        if !name.bytes().all(is_token) {
            return Err(bad("a header has a name that is none"));
        }
        if is_disguised(name) {
            return Err(bad("content-length and transfer-encoding are written with a hyphen"));
        }
    }
    Ok(())
}

/// At most one content-length, and that a number.
fn lengths(headers: &HeaderMap) -> Option<()> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    match (lengths.next(), lengths.next()) {
        (None, _) => Some(()),
        (Some(length), None) if number(length.as_bytes()).is_some() => Some(()),
        _ => None,
    }
}

/// `:authority` is the host; a `host` beside it must say the same (RFC 9113, 8.3.1).
fn name_host(headers: &mut HeaderMap, authority: Option<&str>) -> Result<(), Rejection> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (authority, hosts.next(), hosts.next()) {
        (Some(authority), None, _) => Some(authority.as_bytes()),
        (Some(authority), Some(host), None) if host == authority => Some(host.as_bytes()),
        (None, Some(host), None) => Some(host.as_bytes()),
        _ => None,
    };
    let host = host.filter(|host| is_host(host)).and_then(|host| HeaderValue::from_bytes(host).ok());
    let host = host.ok_or_else(|| bad(":authority or host must stand once and name a host"))?;
    headers.insert(HOST, host);
    Ok(())
}

/// HTTP/2 may split a cookie header for better compression; HTTP/1.1 may not (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

/// Answers with `rejection`. The stream ends with its answer, read or not.
pub(super) fn refuse(mut respond: SendResponse<Bytes>, rejection: &Rejection, id: &str) {
    let body = refuse::body(rejection, id);
    let mut head = Response::new(());
    *head.status_mut() = refuse::status(rejection);
    head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    for (name, value) in [Some(("x-request-id", id)), rejection.header()].into_iter().flatten() {
        if let Ok(value) = HeaderValue::from_str(value) {
            head.headers_mut().insert(name, value);
        }
    }
    let sent = respond.send_response(head, false).and_then(|mut send| send.send_data(body, true));
    if let Err(error) = sent {
        log::debug!("request {id}: the client did not take its refusal: {error}");
    }
}
