//! Names, paths and patterns: what may stand in them, and whether they are unique.

use std::collections::HashMap;

use crate::config::key::{NAME_BYTES_MAX, is_name};
use crate::config::place::{At, shown};

/// Longest path in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// Names that were seen, and where, to find the second of its kind. Where is only spelt out for a problem.
pub(super) struct Unique<'t> {
    kind: &'static str,
    seen: HashMap<String, At<'t>>,
}

impl<'t> Unique<'t> {
    pub(super) fn new(kind: &'static str) -> Self {
        Self { kind, seen: HashMap::new() }
    }

    /// Notes a name that an earlier one of this kind has.
    pub(super) fn check(&mut self, name: &str, at: &At<'t>, fix: &'static str) {
        match self.seen.get(name) {
            Some(first) => {
                let first = first.path();
                at.problem(format!("{} is the name of a {} already: {first}", shown(name), self.kind), fix)
            }
            None => {
                self.seen.insert(name.to_owned(), at.clone());
            }
        }
    }
}

/// A cluster's or backend's name: it stands in metrics and in the paths of the admin listener.
pub(super) fn label(name: &str, at: &At<'_>) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(plain) {
        at.problem(
            format!("{} cannot be a name", shown(name)),
            "use 1 to 128 letters, digits, \".\", \"_\" or \"-\"",
        );
    }
}

/// A name of the user's own choice: a route's, a model's.
pub(super) fn text(name: &str, at: &At<'_>) {
    if !is_name(name) {
        at.problem(
            format!("{} cannot be a name", shown(name)),
            "use 1 to 128 bytes without control characters",
        );
    }
}

/// A glob on model names.
pub(super) fn glob(pattern: &str, at: &At<'_>) {
    text(pattern, at);
    if pattern.contains("**") {
        at.problem(
            format!("{} has \"*\" twice in a row", shown(pattern)),
            "one \"*\" matches any run of characters",
        );
    }
}

/// A path to match: raw, so that what matches is what the backend gets.
pub(super) fn path(path: &str, at: &At<'_>) {
    let fix = match path {
        _ if !path.starts_with('/') => "a path begins with \"/\"",
        _ if path.len() > PATH_BYTES_MAX => "at most 1024 bytes",
        _ if path.contains("//") => "write a single \"/\"",
        _ if path.split('/').any(|segment| segment.contains('*') && segment != "*") => {
            "\"*\" may only stand for a whole segment, as in /v1/responses/*"
        }
        _ if path.contains('%') => "paths are matched as they are on the wire, and encoded ones are refused",
        _ if path.contains(['?', '#']) => "leave out the query: only the path is matched",
        _ if path.split('/').any(|segment| segment == "." || segment == "..") => {
            "write the path without dot segments"
        }
        _ if !path.bytes().all(|b| b.is_ascii_graphic()) => "only visible ASCII can stand in a path",
        _ => return,
    };
    at.problem(format!("{} can never match", shown(path)), fix);
}

/// A path to ask an engine for, behind its prefix; it may have a query.
pub(super) fn request_path(path: &str, at: &At<'_>) {
    let is_path = path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
    if !is_path || path.len() > PATH_BYTES_MAX {
        at.problem(format!("{} is no path", shown(path)), "write 1 to 1024 bytes that begin with \"/\"");
    }
}

/// An HTTP method in upper case.
pub(super) fn method(method: &str, at: &At<'_>) {
    if method.is_empty() || method.len() > 32 || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
    {
        at.problem(format!("{} is no method", shown(method)), "write it in upper case, as in POST");
    } else if ["CONNECT", "TRACE"].contains(&method) {
        at.problem(format!("{method} is never passed on"), "leave it out");
    }
}

/// Aliases (place, client's name, backend's name) must not lead back to where they began.
pub(super) fn aliases(aliases: &[(At<'_>, &str, &str)]) {
    let targets: HashMap<&str, &str> = aliases.iter().map(|&(_, from, to)| (from, to)).collect();
    for &(ref at, from, to) in aliases {
        text(from, at);
        text(to, at);
        if returns(from, &targets) {
            at.problem("leads back to itself", "let each alias name the backend's model");
        }
    }
}

/// Whether following the aliases from `from` ends where it began.
fn returns(from: &str, targets: &HashMap<&str, &str>) -> bool {
    let mut name = from;
    // Longer chains are not followed: a cycle of that size is not written by hand.
    for _ in 0..64 {
        match targets.get(name) {
            Some(&next) if next == from => return true,
            Some(&next) => name = next,
            None => return false,
        }
    }
    false
}
