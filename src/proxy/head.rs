//! Heads of both directions: what passes, what stops here, what we say ourselves.
//!
//! The request head toward a backend is built anew, so that a client can neither smuggle a hop-by-hop
//! header through nor nominate away one that we set: ours are written last.

use http::HeaderMap;
use http::header::{self, HeaderName};
use pingora::Result;
use pingora_http::{RequestHeader, ResponseHeader};

use super::exchange::Exchange;
use super::session;
use crate::cluster::Backend;
use crate::config::Auth;
use crate::header_rules::{CREDENTIALS, HOP_BY_HOP, OURS, Rules, read_as};

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
        if passes(name, &nominated, &OURS) && !drops(name, exchange) {
            head.append_header(name.clone(), value)?;
        }
    }
    session::to_head(&mut head, exchange)?;
    if let Some(cluster) = &exchange.cluster {
        apply(&mut head, &cluster.config.headers)?;
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
    if let Some(Auth::Own(own)) = exchange.cluster.as_ref().map(|cluster| &cluster.config.auth) {
        head.insert_header(own.header.clone(), own.value.header_value().clone())?;
    }
    Ok(head)
}

/// What the cluster removes and sets: after all that the client says, before all that we assert.
fn apply(head: &mut RequestHeader, rules: &Rules) -> Result<()> {
    for name in &rules.remove {
        head.remove_header(name);
    }
    for (name, value) in &rules.set {
        head.insert_header(name.clone(), value.clone())?;
    }
    Ok(())
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
    let auth = exchange.cluster.as_ref().map_or(&Auth::Pass, |cluster| &cluster.config.auth);
    let keeps_credentials = *auth == Auth::Pass;
    (name == header::ACCEPT_ENCODING && exchange.request.streaming)
        || (!keeps_credentials && CREDENTIALS.contains(&name.as_str()))
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
