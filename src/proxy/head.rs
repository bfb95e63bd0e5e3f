//! Heads of both directions: what passes, what stops here, what we say ourselves.
//!
//! The request head toward a backend is built anew, so that a client can neither smuggle a hop-by-hop
//! header through nor nominate away one that we set: ours are written last.

use http::HeaderMap;
use http::header::{self, HeaderName};
use pingora::Result;
use pingora_http::{RequestHeader, ResponseHeader};

use super::exchange::Exchange;
use crate::cluster::Backend;
use crate::config::Auth;

/// Headers of one connection only (RFC 9110, 7.6.1), and `Upgrade`, which we do not do.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Request headers that the backend gets from us or not at all.
const OURS: [&str; 7] = [
    "host",
    "expect",
    "content-length",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
];

/// Response headers that stop here: they speak of the engine's server, not of its answer.
const ENGINES: [&str; 3] = ["server", "alt-svc", "x-request-id"];

/// Builds the head that goes to `backend` with a body of `length` bytes.
pub(super) fn request(
    client: &RequestHeader,
    exchange: &Exchange,
    backend: &Backend,
    length: usize,
) -> Result<RequestHeader> {
    let path = backend.prefix.clone() + origin_form(client);
    let mut head =
        RequestHeader::build(client.method.clone(), path.as_bytes(), Some(client.headers.len() + 6))?;
    let nominated = nominated(&client.headers);
    for (name, value) in &client.headers {
        if passes(name, &nominated, &OURS) && name != "x-request-id" && !drops(name, exchange) {
            head.append_header(name.clone(), value)?;
        }
    }
    head.insert_header("host", &backend.host)?;
    if length > 0 || client.method == http::Method::POST {
        head.insert_header("content-length", length.to_string())?;
    }
    if let Some(client) = exchange.request.client {
        head.insert_header("x-forwarded-for", client.to_string())?;
    }
    head.insert_header("x-forwarded-proto", if exchange.request.is_tls { "https" } else { "http" })?;
    if let Some(host) = client.headers.get(header::HOST) {
        head.insert_header("x-forwarded-host", host)?;
    }
    head.insert_header("x-request-id", &exchange.id)?;
    Ok(head)
}

/// The path and query of a request target. A server must take the absolute form too (RFC 9112, 3.2.2).
pub(super) fn origin_form(head: &RequestHeader) -> &str {
    let target = std::str::from_utf8(head.raw_path()).unwrap_or("");
    let absolute = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    absolute.map_or(target, |rest| rest.find('/').map_or("/", |path| &rest[path..]))
}

/// Headers that depend on the exchange: an answer that is to be read must not be compressed, and
/// credentials stay here where the cluster says so.
fn drops(name: &HeaderName, exchange: &Exchange) -> bool {
    let keeps_credentials = exchange.cluster.as_ref().is_none_or(|cluster| cluster.config.auth == Auth::Pass);
    (name == header::ACCEPT_ENCODING && exchange.request.streaming)
        || (!keeps_credentials && (name == header::AUTHORIZATION || name == "x-api-key"))
}

/// Prepares the engine's response head for the client. Returns the engine's own request id.
pub(super) fn response(head: &mut ResponseHeader, id: &str, is_stream: bool) -> Result<Option<String>> {
    let engines = head.headers.get("x-request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let nominated = nominated(&head.headers);
    let stopped: Vec<HeaderName> =
        head.headers.keys().filter(|name| !passes(name, &nominated, &ENGINES)).cloned().collect();
    for name in stopped {
        head.remove_header(&name);
    }
    if is_stream {
        head.remove_header("content-length");
        head.insert_header("cache-control", "no-cache")?;
        // Understood by nginx and its like in front of us (nginx: proxy_buffering).
        head.insert_header("x-accel-buffering", "no")?;
    }
    head.insert_header("x-request-id", id)?;
    Ok(engines)
}

fn passes(name: &HeaderName, nominated: &[String], stopped: &[&str]) -> bool {
    let name = name.as_str();
    !HOP_BY_HOP.contains(&name) && !stopped.contains(&name) && !nominated.iter().any(|other| other == name)
}

/// The header names that `Connection` lists.
fn nominated(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}
