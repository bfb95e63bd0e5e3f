//! The `session` part.

use std::sync::Arc;

use http::header::HeaderName;

use super::headers;
use crate::config::place::{At, shown};
use crate::config::raw::{self, Field, List};
use crate::openai::{Pointer, Pointers, request};
use crate::session_map::{Kind, PLACES_MAX, Place, SessionMap};

/// Where an id is read unless the file says otherwise.
const FROM: [&str; 3] = ["header:X-Session-Id", "cookie:session_id", "body:/session_id"];

const FORMS: &str = "write header:NAME, cookie:NAME or body:/NAME";

/// The mapping. `at` is the place of the part.
pub(super) fn session_map(raw: Option<&raw::Session>, at: &At<'_>) -> SessionMap {
    let empty = raw::Session::default();
    let raw = raw.unwrap_or(&empty);
    let mut pointers = Pointers::default();
    let from = match &raw.from {
        Field::Absent => FROM.iter().filter_map(|text| default(text, &mut pointers)).collect(),
        list => places(list, &at.key("from"), &mut pointers, source),
    };
    let to = places(&raw.to, &at.key("to"), &mut pointers, target);
    let required = raw.missing.get() == Some(&raw::Missing::Reject);
    if raw.from.get().is_some_and(Vec::is_empty) {
        let fix = "name a place in session.from, or leave it out";
        if required {
            at.key("missing").problem("no place is looked at, so every request would be refused", fix);
        }
        if !to.is_empty() {
            at.key("to").problem("no place is looked at, so there is never an id to add", fix);
        }
    }
    SessionMap { from, to, required, pointers }
}

fn default(text: &str, pointers: &mut Pointers) -> Option<Place> {
    Some(Place { text: Arc::from(text), kind: kind(text, pointers).ok()?.0 })
}

/// What a place may be used for: the problem and its fix where it may not.
type May = fn(&Kind, Option<&Pointer>) -> Option<(&'static str, &'static str)>;

fn places(list: &List<String>, at: &At<'_>, pointers: &mut Pointers, refused: May) -> Vec<Place> {
    let Some(list) = list.get() else { return Vec::new() };
    if list.len() > PLACES_MAX {
        at.problem(format!("{} places", list.len()), format!("at most {PLACES_MAX} are looked at"));
        return Vec::new();
    }
    let mut places: Vec<(Place, Option<Pointer>)> = Vec::new();
    for (i, text) in list.iter().enumerate() {
        let (Some(text), at) = (text.get(), at.index(i)) else { continue };
        let (kind, pointer) = match kind(text, pointers) {
            Ok(read) => read,
            Err((what, fix)) => {
                at.problem(format!("{} {what}", shown(text)), fix);
                continue;
            }
        };
        if let Some((what, fix)) = refused(&kind, pointer.as_ref()) {
            at.problem(format!("{} {what}", shown(text)), fix);
        } else if let Some(first) = clash(&places, &kind, pointer.as_ref()) {
            at.problem(format!("{} names what {} names already", shown(text), shown(first)), "keep one");
        } else {
            places.push((Place { text: Arc::from(text.as_str()), kind }, pointer));
        }
    }
    places.into_iter().map(|(place, _)| place).collect()
}

/// The earlier place that is the same, or lies in this one, or around it.
fn clash<'p>(
    places: &'p [(Place, Option<Pointer>)],
    kind: &Kind,
    pointer: Option<&Pointer>,
) -> Option<&'p str> {
    let overlaps = |(place, other): &&(Place, Option<Pointer>)| match (pointer, other) {
        (Some(one), Some(other)) => one.is_within(other) || other.is_within(one),
        _ => place.kind == *kind,
    };
    places.iter().find(overlaps).map(|(place, _)| &*place.text)
}

/// Reads `header:NAME`, `cookie:NAME`, `body:/POINTER`.
fn kind(
    text: &str,
    pointers: &mut Pointers,
) -> Result<(Kind, Option<Pointer>), (&'static str, &'static str)> {
    match text.split_once(':') {
        Some(("header", name)) => match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) => Ok((Kind::Header(name), None)),
            Err(_) => Err(("names no header", "use letters, digits and \"-\", as in header:X-Session-Id")),
        },
        Some(("cookie", name)) => match name {
            _ if headers::is_token(name) => Ok((Kind::Cookie(name.to_owned()), None)),
            _ => Err(("names no cookie", "use letters, digits, \"-\" and \"_\", as in cookie:session_id")),
        },
        Some(("body", pointer)) => match Pointer::parse(pointer) {
            Some(pointer) => Ok((Kind::Body(pointers.add(pointer.clone())), Some(pointer))),
            None if !pointer.starts_with('/') => {
                Err(("is no JSON pointer", "begin it with \"/\", as in body:/metadata/session_id"))
            }
            None => Err((
                "is no JSON pointer",
                "write \"~1\" for \"/\" and \"~0\" for \"~\", in at most 16 names and 256 bytes",
            )),
        },
        _ => Err(("is no place for a session id", FORMS)),
    }
}

fn source(kind: &Kind, _: Option<&Pointer>) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::Header(name) => headers::out_of_reach(name).or_else(|| not_cookie(name)),
        Kind::Cookie(_) | Kind::Body(_) => None,
    }
}

fn target(kind: &Kind, pointer: Option<&Pointer>) -> Option<(&'static str, &'static str)> {
    match (kind, pointer) {
        (Kind::Header(name), _) => {
            headers::out_of_reach(name).or_else(|| not_cookie(name)).or_else(|| headers::of_the_body(name))
        }
        (_, Some(pointer)) if is_acted_on(pointer) => {
            Some(("is a field that the gateway reads or sets itself", "choose another"))
        }
        _ => None,
    }
}

/// `user` is a name for the one who asks, and some engines keep sessions by it: it may be set.
fn is_acted_on(pointer: &Pointer) -> bool {
    let outermost = pointer.names().first().map_or("", String::as_str);
    outermost != "user" && request::NAMES.contains(&outermost)
}

fn not_cookie(name: &HeaderName) -> Option<(&'static str, &'static str)> {
    (*name == http::header::COOKIE)
        .then_some(("is a header of many values", "write cookie:NAME for one of them"))
}
