//! The session id of a request: where it is read, and where it is put for the backend.
//!
//! Clients name a conversation in a header, a cookie or a field of the body; engines look for it in a
//! place of their own. The id is read from the first place that has a usable one, and added to the places
//! where the configuration wants it and the client has nothing. What the client sent is never changed.
//!
//! The one hard idea: *present* and *usable* are two things. An odd value, such as a number or 300
//! characters, is no id, so the next place is asked; but it is there, so nothing is put over it.

mod mention;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{COOKIE, HeaderName};

use crate::openai::{Found, Places, Pointers};
pub use mention::Mention;

/// Longest session id in characters.
pub const ID_CHARS_MAX: usize = 256;
/// Most places to read from, and to add to.
pub const PLACES_MAX: usize = 16;

/// A place in a request, as in `header:X-Session-Id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As it stands in the configuration.
    pub text: Arc<str>,
    /// Where that is.
    pub kind: Kind,
}

/// Where a place is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A header.
    Header(HeaderName),
    /// A cookie; names of cookies are case-sensitive.
    Cookie(String),
    /// A field of a JSON body, by its number among [`SessionMap::pointers`].
    Body(usize),
}

/// The mapping of a configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionMap {
    /// Places to read from, the first that is usable wins. At most [`PLACES_MAX`].
    pub from: Vec<Place>,
    /// Places to add to. At most [`PLACES_MAX`].
    pub to: Vec<Place>,
    /// A request without an id is refused.
    pub required: bool,
    /// Where in bodies the places are.
    pub pointers: Pointers,
}

/// What a request has at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Nothing.
    #[default]
    Absent,
    /// Something that is no session id.
    Odd,
    /// A session id.
    Usable,
}

/// A request, as far as its session matters.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Names, in lower case, of headers that `Connection` keeps to the client's connection.
    pub nominated: &'a [String],
    /// Its JSON body and where the pointers lead in it; `None` for any other body, and for none.
    pub body: Option<(&'a [u8], &'a Places)>,
}

/// What becomes of a place of `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Target {
    /// Nothing: there is no id, or no JSON body.
    #[default]
    Left,
    /// It has something already.
    Held,
    /// It gets the id.
    Gets,
    /// It cannot have it: no object could hold it, or it would not be one cookie.
    Blocked,
}

/// The session of a request. Its `Debug` output has no id.
#[derive(Clone, Default)]
pub struct Session {
    /// The id.
    pub id: Option<String>,
    /// What the places of `from` have, in their order.
    states: [State; PLACES_MAX],
    /// What becomes of the places of `to`, in their order.
    targets: [Target; PLACES_MAX],
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Session");
        shown.field("states", &self.states).field("targets", &self.targets).finish_non_exhaustive()
    }
}

impl Session {
    /// Reads the id and settles where it goes.
    pub fn read(map: &SessionMap, request: Request<'_>) -> Self {
        let mut session = Self::default();
        for (place, state) in map.from.iter().zip(&mut session.states) {
            let value = value(&place.kind, map, request);
            *state = value.state();
            if let (None, Value::Text(text)) = (&session.id, value) {
                session.id = Some(text.into_owned());
            }
        }
        for (place, target) in map.to.iter().zip(&mut session.targets) {
            *target = match (value(&place.kind, map, request), &session.id) {
                (Value::Odd | Value::Text(_), _) => Target::Held,
                (Value::Absent | Value::Blocked, None) | (Value::NoJson, _) => Target::Left,
                (Value::Blocked, Some(_)) => Target::Blocked,
                (Value::Absent, Some(id)) if fits(id, &place.kind) => Target::Gets,
                (Value::Absent, Some(_)) => Target::Blocked,
            };
        }
        session
    }

    /// The place that the id came from.
    pub fn source<'m>(&self, map: &'m SessionMap) -> Option<&'m Place> {
        map.from.iter().zip(self.states).find(|(_, state)| *state == State::Usable).map(|(place, _)| place)
    }

    /// What `place` of `from` has, by its number.
    pub fn state(&self, place: usize) -> State {
        self.states.get(place).copied().unwrap_or_default()
    }

    /// Places of `to` that the client has filled.
    pub fn held<'m>(&self, map: &'m SessionMap) -> impl Iterator<Item = &'m Place> {
        self.targets(map, Target::Held)
    }

    /// Places of `to` that get the id.
    pub fn added<'m>(&self, map: &'m SessionMap) -> impl Iterator<Item = &'m Place> {
        self.targets(map, Target::Gets)
    }

    /// Places of `to` that cannot have the id.
    pub fn blocked<'m>(&self, map: &'m SessionMap) -> impl Iterator<Item = &'m Place> {
        self.targets(map, Target::Blocked)
    }

    fn targets<'m>(&self, map: &'m SessionMap, wanted: Target) -> impl Iterator<Item = &'m Place> + use<'m> {
        let targets = map.to.iter().zip(self.targets);
        targets.filter(move |(_, target)| *target == wanted).map(|(place, _)| place)
    }
}

/// What stands at a place.
enum Value<'a> {
    Absent,
    /// Absent, and no object could hold it.
    Blocked,
    /// Absent, since there is no JSON body.
    NoJson,
    Odd,
    Text(Cow<'a, str>),
}

impl Value<'_> {
    fn state(&self) -> State {
        match self {
            Self::Absent | Self::Blocked | Self::NoJson => State::Absent,
            Self::Odd => State::Odd,
            Self::Text(_) => State::Usable,
        }
    }
}

fn value<'a>(kind: &Kind, map: &SessionMap, request: Request<'a>) -> Value<'a> {
    match kind {
        Kind::Header(name) => only(request.lines(name)),
        Kind::Cookie(name) => only(request.cookies(name)),
        Kind::Body(number) => match request.body {
            Some((body, places)) => in_body(body, places.find(body, &map.pointers, *number)),
            None => Value::NoJson,
        },
    }
}

impl<'a> Request<'a> {
    /// The lines of an end-to-end header.
    fn lines(self, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let is_nominated = self.nominated.iter().any(|other| other == name.as_str());
        let lines = self.headers.get_all(name).iter().map(http::HeaderValue::as_bytes);
        lines.filter(move |_| !is_nominated)
    }

    /// The values of a cookie. Quotes around one are no part of it, as most servers read it.
    fn cookies(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let pairs = self.lines(&COOKIE).flat_map(|line| line.split(|byte| *byte == b';'));
        pairs.filter_map(move |pair| {
            let value = pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value))
        })
    }
}

/// Two values are no id, even if they are the same: who reads which is anybody's guess.
fn only<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Value<'a> {
    match (values.next(), values.next()) {
        (None, _) => Value::Absent,
        (Some(value), None) if is_id(value) => {
            std::str::from_utf8(value).map_or(Value::Odd, |text| Value::Text(text.into()))
        }
        _ => Value::Odd,
    }
}

/// Only a string is an id: a number has many spellings.
fn in_body<'a>(body: &'a [u8], found: Found<'_>) -> Value<'a> {
    let span = match found {
        Found::Value(span) => span,
        Found::Nothing { .. } => return Value::Absent,
        Found::Blocked => return Value::Blocked,
    };
    // `\u0061` is the longest way to write a character that may stand in an id.
    if span.len() > 6 * ID_CHARS_MAX + 2 {
        return Value::Odd;
    }
    match serde_json::from_slice::<Cow<'_, str>>(&body[span]) {
        Ok(text) if is_id(text.as_bytes()) => Value::Text(text.into_owned().into()),
        _ => Value::Odd,
    }
}

/// 1 to 256 characters of visible ASCII.
fn is_id(value: &[u8]) -> bool {
    (1..=ID_CHARS_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic)
}

/// Whether an id may stand there. RFC 6265, 4.1.1: a `;` in a cookie would begin another one.
fn fits(id: &str, kind: &Kind) -> bool {
    !matches!(kind, Kind::Cookie(_)) || !id.contains(['"', ',', ';', '\\'])
}
