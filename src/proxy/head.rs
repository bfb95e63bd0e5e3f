//! Heads of both directions: what passes, what stops here, what we say ourselves.
//!
//! The request head toward a backend is built anew, so that a client can neither smuggle a hop-by-hop
//! header through nor nominate away one that we set: ours are written last.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Uri};
use pingora::{ErrorType, OrErr, Result};
use pingora_http::{RequestHeader, ResponseHeader};

use super::exchange::Exchange;
use super::session;
use crate::cluster::{self, Backend};
use crate::config::Auth;
use crate::header_rules::{CREDENTIALS, HOP_BY_HOP, OURS, is_of_proxies, meant_otherwise, read_as};
use crate::trace::TRACEPARENT;
use crate::upstream;

/// Response headers that stop here: they speak of the engine's server, not of its answer.
const ENGINES: [&str; 3] = ["server", "alt-svc", "x-request-id"];

/// Headers that we add, most of the time.
const OWN_MAX: usize = 7;

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Builds the head that goes to `backend` with a body of `length` bytes.
///
/// Its headers are put together in a plain map: Pingora's head makes a second name of each that it is given,
/// and reads it anew.
pub(super) fn request(
    client: &RequestHeader,
    exchange: &Exchange,
    backend: &Backend,
    length: usize,
) -> Result<RequestHeader> {
    let mut headers = HeaderMap::with_capacity(client.headers.len() + OWN_MAX);
    let nominated = nominated(&client.headers);
    for (name, value) in &client.headers {
        if passes(name, &nominated, &OURS) && !drops(name, exchange) {
            headers.append(name.clone(), value.clone());
        }
    }
    session::to_head(&mut headers, exchange)?;
    if let Some(cluster) = &exchange.cluster {
        upstream::apply(&mut headers, &cluster.config.headers);
    }
    assert_ours(&mut headers, client, exchange, backend, length)?;
    if let Some(cluster) = &exchange.cluster {
        upstream::authorize(&mut headers, &cluster.config.auth);
    }
    let mut parts = http::Request::new(()).into_parts().0;
    (parts.method, parts.headers) = (client.method.clone(), headers);
    if let Some(uri) = same_target(client, backend) {
        parts.uri = uri;
        return Ok(parts.into());
    }
    let mut head = RequestHeader::from(parts);
    head.set_raw_path((backend.prefix.clone() + origin_form(client)).as_bytes())?;
    Ok(head)
}

/// Writes the headers that are ours to say.
fn assert_ours(
    headers: &mut HeaderMap,
    client: &RequestHeader,
    exchange: &Exchange,
    backend: &Backend,
    length: usize,
) -> Result<()> {
    headers.insert(header::HOST, value(&backend.host)?);
    if length > 0 || client.method == http::Method::POST {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    let handed = exchange.request.handed.as_ref();
    match (handed, exchange.request.client) {
        (Some(handed), _) if !handed.chain.is_empty() => {
            headers.insert(&FORWARDED_FOR, value(&handed.chain)?);
        }
        (_, Some(client)) => {
            headers.insert(&FORWARDED_FOR, value(addr_text(client))?);
        }
        _ => {}
    }
    let scheme = if exchange.request.is_tls { "https" } else { "http" };
    headers.insert(&FORWARDED_PROTO, HeaderValue::from_static(scheme));
    if let Some(host) =
        handed.and_then(|handed| handed.host.as_ref()).or_else(|| client.headers.get(header::HOST))
    {
        headers.insert(&FORWARDED_HOST, host.clone());
    }
    headers.insert(&REQUEST_ID, value(&exchange.id)?);
    if let Some(header) = exchange.trace.as_ref().and_then(|trace| trace.header()) {
        headers.insert(&TRACEPARENT, header);
    }
    Ok(())
}

/// A header's value of ours.
///
/// # Errors
/// It holds what no value may.
pub(super) fn value(text: impl AsRef<[u8]>) -> Result<HeaderValue> {
    HeaderValue::from_bytes(text.as_ref()).explain_err(ErrorType::InvalidHTTPHeader, |_| "a header's value")
}

/// An address as text. The formatting of the standard library costs ten times as much for IPv4.
fn addr_text(addr: IpAddr) -> String {
    let IpAddr::V4(v4) = addr else { return addr.to_string() };
    let mut text = String::with_capacity("255.255.255.255".len());
    for (at, octet) in v4.octets().into_iter().enumerate() {
        if at > 0 {
            text.push('.');
        }
        let digit = |power: u8| char::from(b'0' + octet / power % 10);
        if octet >= 100 {
            text.push(digit(100));
        }
        if octet >= 10 {
            text.push(digit(10));
        }
        text.push(digit(1));
    }
    text
}

/// The client's target, where it goes to the backend as it came and need not be read again.
fn same_target(client: &RequestHeader, backend: &Backend) -> Option<Uri> {
    let path = client.uri.path_and_query()?;
    let is_origin_form = client.uri.scheme().is_none() && client.uri.authority().is_none();
    let is_all = path.as_str().as_bytes() == client.raw_path();
    (backend.prefix.is_empty() && is_origin_form && is_all).then(|| client.uri.clone())
}

/// The path and query of a request target. A server must take the absolute form too (RFC 9112, 3.2.2).
pub(super) fn origin_form(head: &RequestHeader) -> &str {
    let target = std::str::from_utf8(head.raw_path()).unwrap_or("");
    if target.starts_with('/') {
        return target;
    }
    let absolute = target.split_once("://");
    absolute.map_or(target, |(_, rest)| rest.find(['/', '?']).map_or("/", |path| &rest[path..]))
}

/// Claims of a client, and headers that depend on the exchange: an answer that is to be read must not be
/// compressed, credentials stay here where the cluster says so, and only a trusted proxy says whose request it is.
fn drops(name: &HeaderName, exchange: &Exchange) -> bool {
    let auth = exchange.cluster.as_ref().map_or(&Auth::Pass, |cluster| &cluster.config.auth);
    let keeps_credentials = *auth == Auth::Pass;
    (name == header::ACCEPT_ENCODING && exchange.request.streaming)
        || meant_otherwise(&read_as(name.as_str()))
        || (exchange.request.handed.is_none() && is_of_proxies(&read_as(name.as_str())))
        || (!keeps_credentials && CREDENTIALS.contains(&&*read_as(name.as_str())))
}

/// How long the engine asks to be left alone, where it says that it has too much to do.
pub(super) fn retry_after(head: &ResponseHeader) -> Option<Duration> {
    if !matches!(head.status.as_u16(), 429 | 503) {
        return None;
    }
    let value = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    cluster::retry_after(value("retry-after"), value("retry-after-ms"), SystemTime::now())
}

/// Prepares the engine's response head for the client. Returns the engine's own request id.
pub(super) fn response(head: &mut ResponseHeader, id: &str, is_stream: bool) -> Result<Option<String>> {
    let engines = head.headers.get(&REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let nominated = nominated(&head.headers);
    // Ours takes the place of its request id, which need not be taken away first.
    let stops = |name: &HeaderName| *name != REQUEST_ID && !passes(name, &nominated, &ENGINES);
    let stopped: Vec<HeaderName> = head.headers.keys().filter(|name| stops(name)).cloned().collect();
    for name in stopped {
        head.remove_header(&name);
    }
    if is_stream {
        head.remove_header(&header::CONTENT_LENGTH);
        head.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))?;
        // Understood by nginx and its like in front of us (nginx: proxy_buffering).
        head.insert_header(&ACCEL_BUFFERING, HeaderValue::from_static("no"))?;
    }
    head.insert_header(&REQUEST_ID, id)?;
    Ok(engines)
}

fn passes(name: &HeaderName, nominated: &[String], stopped: &[&str]) -> bool {
    let name = name.as_str();
    let read_as = &*read_as(name);
    !HOP_BY_HOP.contains(&read_as)
        && !stopped.contains(&read_as)
        && !nominated.iter().any(|other| other == name)
}

/// The header names that `Connection` lists.
pub(super) fn nominated(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_standard_library_writes_them() {
        for text in ["0.0.0.0", "127.0.0.1", "10.20.99.100", "255.109.9.90", "::1", "2001:db8::7"] {
            let addr: IpAddr = text.parse().unwrap();
            assert_eq!(addr_text(addr), addr.to_string());
        }
        for octet in 0..=u8::MAX {
            let addr = IpAddr::from([octet, 1, octet, 200]);
            assert_eq!(addr_text(addr), addr.to_string());
        }
    }
}
