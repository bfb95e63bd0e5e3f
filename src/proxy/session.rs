//! The session of an exchange: read at the intake, put into head and body, told of when an engine
//! complains.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{COOKIE, HeaderName};
use pingora::Result;
use pingora_http::{RequestHeader, ResponseHeader};

use super::exchange::Exchange;
use super::{describe, head};
use crate::openai::Found;
use crate::openai::patch::Edits;
use crate::openai::request::Peek;
use crate::rejection::Rejection;
use crate::session_map::{Kind, Mention, Request, Session, SessionMap, State};
use crate::upstream::Body;

/// Longest name that a client may put into the log, and most of them.
const NAME_BYTES_MAX: usize = 64;
const NAMES_MAX: usize = 8;

/// Reads the session of a request that goes to a cluster.
pub(super) fn read(
    client: &RequestHeader,
    exchange: &Exchange,
    peek: Option<&Peek>,
    body: &Body,
) -> Result<Session, Rejection> {
    let map = &exchange.snapshot.session;
    let nominated = head::nominated(&client.headers);
    let body = peek.map(|peek| (&body.bytes[..], &peek.places));
    let session = Session::read(map, Request { headers: &client.headers, nominated: &nominated, body });
    if map.required && session.id.is_none() {
        let places: Vec<&str> = map.from.iter().map(|place| &*place.text).collect();
        return Err(Rejection::MissingSession { places: places.join(" or ") });
    }
    for place in session.blocked(map) {
        log::info!("{}: the session id cannot stand at {}; left as it came", describe(exchange), place.text);
    }
    Ok(session)
}

/// Puts the id into the body where the mapping wants it.
pub(super) fn to_body(edits: &mut Edits, exchange: &Exchange, peek: &Peek, body: &Body) {
    let (map, session) = (&exchange.snapshot.session, &exchange.request.session);
    let Some(id) = &session.id else { return };
    for place in session.added(map) {
        let Kind::Body(number) = place.kind else { continue };
        if let Found::Nothing { within, names } = peek.places.find(&body.bytes, &map.pointers, number) {
            edits.add(within, names, id.as_str().into());
        }
    }
}

/// Puts the id into the head where the mapping wants it.
pub(super) fn to_head(headers: &mut HeaderMap, exchange: &Exchange) -> Result<()> {
    let session = &exchange.request.session;
    let Some(id) = &session.id else { return Ok(()) };
    for place in session.added(&exchange.snapshot.session) {
        match &place.kind {
            Kind::Header(name) => drop(headers.insert(name.clone(), head::value(id)?)),
            Kind::Cookie(name) => add_cookie(headers, name, id)?,
            Kind::Body(_) => {}
        }
    }
    Ok(())
}

/// HTTP/1.1 has one `Cookie` line; HTTP/2 may split it, and the pieces are joined so (RFC 9113, 8.2.3).
fn add_cookie(headers: &mut HeaderMap, name: &str, id: &str) -> Result<()> {
    let mut line = Vec::new();
    for cookies in headers.get_all(COOKIE) {
        line.extend_from_slice(cookies.as_bytes());
        line.extend_from_slice(b"; ");
    }
    line.extend_from_slice(format!("{name}={id}").as_bytes());
    headers.insert(COOKIE, head::value(&line)?);
    Ok(())
}

/// A refusal that is to be searched for the word "session". One with a coding cannot be read.
pub(super) fn may_complain(head: &ResponseHeader) -> Option<Mention> {
    let is_plain = !head.headers.contains_key(http::header::CONTENT_ENCODING);
    (head.status == http::StatusCode::BAD_REQUEST && is_plain).then(Mention::default)
}

/// Takes the next chunk of an answer, and tells the log once when an engine's 400 speaks of a session.
pub(super) fn listen(client: &RequestHeader, chunk: Option<&Bytes>, exchange: &mut Exchange) {
    let (Some(mention), Some(chunk)) = (&mut exchange.answer.mention, chunk) else { return };
    if mention.note(chunk) {
        exchange.answer.mention = None;
        let told = present(client, exchange);
        log::warn!("{}: the engine answered 400 and speaks of a session; {told}", describe(exchange));
    }
}

/// Which places had something: names, never values.
fn present(client: &RequestHeader, exchange: &Exchange) -> String {
    let (map, session) = (&exchange.snapshot.session, &exchange.request.session);
    let mut sent: Vec<String> = from(map, session);
    let held = session.held(map).map(|place| place.text.to_string());
    for name in held.chain(headers(client)).chain(cookies(client)) {
        if !sent.iter().any(|other| other.trim_end_matches(ODD).eq_ignore_ascii_case(&name)) {
            sent.push(name);
        }
    }
    let added: Vec<&str> = session.added(map).map(|place| &*place.text).collect();
    let list = |names: String| if names.is_empty() { "nothing".to_owned() } else { names };
    format!("the client sent {}; added here: {}", list(sent.join(", ")), list(added.join(", ")))
}

/// What follows a place whose value is no session id.
const ODD: &str = " (not usable)";

fn from(map: &SessionMap, session: &Session) -> Vec<String> {
    let told = |(number, place): (usize, &crate::session_map::Place)| match session.state(number) {
        State::Absent => None,
        State::Odd => Some(format!("{}{ODD}", place.text)),
        State::Usable => Some(place.text.to_string()),
    };
    map.from.iter().enumerate().filter_map(told).collect()
}

/// Headers of the client's whose names speak of a session.
fn headers(client: &RequestHeader) -> impl Iterator<Item = String> {
    let names = client.headers.keys().map(HeaderName::as_str).filter(|name| speaks(name));
    names.take(NAMES_MAX).map(|name| format!("header:{name}"))
}

/// Cookies of the client's whose names speak of a session.
fn cookies(client: &RequestHeader) -> impl Iterator<Item = String> {
    let lines = client.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let names = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let names = names.map(|(name, _)| name).filter(|name| speaks(name));
    names.take(NAMES_MAX).map(|name| format!("cookie:{name}"))
}

fn speaks(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    is_plain && name.len() <= NAME_BYTES_MAX && Mention::default().note(name.as_bytes())
}
