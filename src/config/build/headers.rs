//! Headers that a file names: `clusters.*.headers` and `routes.*.match.headers`.

use std::collections::HashMap;

use http::header::{self, HeaderName, HeaderValue};

use super::names;
use crate::config::place::{At, shown};
use crate::config::raw::{self, Entries, Field};
use crate::header_rules::{self, Rules};

/// Longest value of a header that is set, in bytes.
const VALUE_BYTES_MAX: usize = 4096;

/// Why a file may not touch a header.
pub(super) fn out_of_reach(name: &HeaderName) -> Option<(&'static str, &'static str)> {
    header_rules::out_of_reach(name)
}

/// Why a file may not set a header that tells how a body is to be read.
pub(super) fn of_the_body(name: &HeaderName) -> Option<(&'static str, &'static str)> {
    if *name == header::ACCEPT_ENCODING {
        return Some(("asks for answers that cannot be read here", "leave it out, or remove it"));
    }
    (*name == header::CONTENT_TYPE || *name == header::CONTENT_ENCODING)
        .then_some(("says how the client's body is to be read", "leave it out: the client's own passes"))
}

/// RFC 9110, 5.6.2: what the name of a header or a cookie is made of.
pub(super) fn is_token(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok()
}

/// What a cluster sets and removes.
pub(super) fn rules(raw: Option<&raw::Headers>, at: &At<'_>) -> Rules {
    let Some(raw) = raw else { return Rules::default() };
    let removed = raw.remove.get().map(Vec::as_slice).unwrap_or_default();
    let mut seen = Seen::default();
    let mut remove = Vec::new();
    for (i, name) in removed.iter().enumerate() {
        let (Some(name), at) = (name.get(), at.key("remove").index(i)) else { continue };
        remove.extend(reachable(name, &at, &mut seen));
    }
    let mut seen = Seen::default();
    let mut set = Vec::new();
    for (name, value, at) in entries(&raw.set, &at.key("set")) {
        let Some(name) = reachable(name, &at, &mut seen) else { continue };
        if let Some((what, fix)) = of_the_body(&name) {
            at.problem(format!("{name} {what}"), fix);
        }
        set.extend(self::value(value, &at).map(|value| (name, value)));
    }
    Rules { remove, set }
}

/// Headers and the globs that their values must match, all of them.
pub(super) fn patterns(raw: &Field<Entries<String>>, at: &At<'_>) -> Vec<(HeaderName, String)> {
    let mut seen = Seen::default();
    let mut patterns = Vec::new();
    for (name, pattern, at) in entries(raw, at) {
        let Some(name) = seen.name(name, &at) else { continue };
        if header_rules::CREDENTIALS.contains(&name.as_str()) {
            at.problem(format!("{name} carries credentials"), "choose another header: a key names no route");
        }
        if pattern.is_empty() {
            at.problem("matches only a header without a value", "write \"*\" for any value");
        }
        names::glob(pattern, &at);
        patterns.push((name, pattern.to_owned()));
    }
    patterns
}

/// The entries of a map that have a text, and where they stand.
fn entries<'r, 't>(raw: &'r Field<Entries<impl AsRef<str>>>, at: &At<'t>) -> Vec<(&'r str, &'r str, At<'t>)> {
    let Some(entries) = raw.get() else { return Vec::new() };
    let mut found = Vec::new();
    for ((name, value), at) in entries.0.iter().zip(at.children()) {
        match value {
            Field::Set(value) => found.push((name.as_str(), value.as_ref(), at)),
            Field::Absent => at.problem("has no value", "write one, or leave it out"),
            Field::Wrong => {}
        }
    }
    found
}

fn reachable(name: &str, at: &At<'_>, seen: &mut Seen) -> Option<HeaderName> {
    let name = seen.name(name, at)?;
    if let Some((what, fix)) = out_of_reach(&name) {
        at.problem(format!("{name} {what}"), fix);
    }
    Some(name)
}

/// Header names that were seen: two spellings of one are the same.
#[derive(Default)]
struct Seen(HashMap<HeaderName, String>);

impl Seen {
    fn name(&mut self, text: &str, at: &At<'_>) -> Option<HeaderName> {
        let Ok(name) = HeaderName::from_bytes(text.as_bytes()) else {
            at.problem(
                format!("{} names no header", shown(text)),
                "use letters, digits and \"-\", as in x-team",
            );
            return None;
        };
        if let Some(first) = self.0.insert(name.clone(), text.to_owned()) {
            at.problem(format!("the same header as {}", shown(&first)), "keep one");
        }
        Some(name)
    }
}

/// A value, which may be a secret: no message repeats it.
fn value(text: &str, at: &At<'_>) -> Option<HeaderValue> {
    let is_whole = !text.starts_with([' ', '\t']) && !text.ends_with([' ', '\t']);
    match HeaderValue::from_str(text) {
        Ok(mut value) if is_whole && text.len() <= VALUE_BYTES_MAX => {
            value.set_sensitive(true);
            Some(value)
        }
        Ok(_) if is_whole => {
            at.problem("the value is too long", format!("use at most {VALUE_BYTES_MAX} bytes"));
            None
        }
        _ => {
            at.problem(
                "the value cannot stand in a header",
                "use visible characters on one line, without spaces at its ends",
            );
            None
        }
    }
}
