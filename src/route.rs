//! Which route a request takes: by raw path, method and headers before its body is read, by model after.
//!
//! Default-deny: a path that no route names reaches no backend. Paths are compared as the client
//! wrote them, byte for byte; nothing is decoded or normalised, so that no two readings of one path
//! can exist.

use std::sync::Arc;

use http::HeaderMap;

use crate::config::{Action, Fixed, Route};

/// What the head of a request alone decides.
#[derive(Debug)]
pub enum ByHead {
    /// These routes have the path and take the method and the headers, in the order of the file. Never empty.
    Candidates(Vec<Arc<Route>>),
    /// The path is known; `allow` lists the methods it takes.
    OtherMethod {
        /// Value of the `Allow` header.
        allow: String,
    },
    /// The path is known and takes the method, but no route takes the headers.
    OtherHeaders,
    /// No route has the path.
    Unknown,
}

/// Finds the routes for a raw path (without the query), a method and headers.
pub fn by_head(routes: &[Arc<Route>], path: &str, method: &str, headers: &HeaderMap) -> ByHead {
    let on_path: Vec<&Arc<Route>> = routes.iter().filter(|route| has_path(route, path)).collect();
    if on_path.is_empty() {
        return ByHead::Unknown;
    }
    let takes_method = |route: &&Arc<Route>| methods(route).contains(&method);
    let of_method = on_path.iter().copied().filter(takes_method);
    let candidates: Vec<Arc<Route>> =
        of_method.filter(|route| has_headers(route, headers)).map(Arc::clone).collect();
    if !candidates.is_empty() {
        ByHead::Candidates(candidates)
    } else if on_path.iter().any(takes_method) {
        ByHead::OtherHeaders
    } else {
        ByHead::OtherMethod { allow: allow(&on_path) }
    }
}

/// The fixed answer that everybody gets, without a key: the first candidate has it, whatever the body says.
pub fn open(candidates: &[Arc<Route>]) -> Option<(&Arc<Route>, &Fixed)> {
    let first = candidates.first()?;
    match &first.action {
        Action::Respond(fixed) if first.model.is_none() && !fixed.needs_key => Some((first, fixed)),
        _ => None,
    }
}

/// The only candidate there is, if there is one.
pub fn only(candidates: &[Arc<Route>]) -> Option<&Arc<Route>> {
    match candidates {
        [only] => Some(only),
        _ => None,
    }
}

/// The first candidate that serves `model`. A route without a model pattern serves any.
pub fn by_model<'a>(candidates: &'a [Arc<Route>], model: Option<&str>) -> Option<&'a Arc<Route>> {
    candidates.iter().find(|route| match (&route.model, model) {
        (None, _) => true,
        (Some(pattern), Some(model)) => glob(pattern, model),
        (Some(_), None) => false,
    })
}

/// The candidate for a request that says no model, as it has no JSON body: the first that asks for none. Where
/// all ask for one the path alone decides, and the first of them takes it.
pub fn by_path_alone(candidates: &[Arc<Route>]) -> Option<&Arc<Route>> {
    candidates.iter().find(|route| route.model.is_none()).or_else(|| candidates.first())
}

/// Whether `text` matches `pattern`, in which `*` stands for any run of characters.
///
/// Linear in practice and never worse than `pattern * text`: on a mismatch only the last `*` is
/// given one more character.
pub fn glob(pattern: &str, text: impl AsRef<[u8]>) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_ref());
    let (mut at, mut in_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, in_text));
            at += 1;
        } else if pattern.get(at) == Some(&text[in_text]) {
            at += 1;
            in_text += 1;
        } else if let Some((after, taken)) = star {
            star = Some((after, taken + 1));
            at = after;
            in_text = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

fn has_path(route: &Route, path: &str) -> bool {
    route.paths.iter().any(|pattern| pattern == path || (pattern.contains('*') && fits(pattern, path)))
}

/// Whether a path fits a pattern in which a segment `*` stands for exactly one.
fn fits(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some("*"), Some(segment)) if plain(segment) => {}
            (Some(wanted), Some(segment)) if wanted == segment && wanted != "*" => {}
            _ => return false,
        }
    }
}

/// Whether each pattern matches a line of its header. A line is compared whole: no commas are read.
fn has_headers(route: &Route, headers: &HeaderMap) -> bool {
    route.headers.iter().all(|(name, pattern)| headers.get_all(name).iter().any(|line| glob(pattern, line)))
}

/// A segment that every reader takes for the same one: not empty, no dot segment, nothing percent-encoded.
fn plain(segment: &str) -> bool {
    !segment.is_empty() && segment != "." && segment != ".." && !segment.contains(['%', '\\', ';'])
}

/// The methods a route takes: GET and POST unless it says otherwise, and HEAD where GET.
fn methods(route: &Route) -> Vec<&str> {
    let mut methods: Vec<&str> = if route.methods.is_empty() {
        vec!["GET", "POST"]
    } else {
        route.methods.iter().map(String::as_str).collect()
    };
    if methods.contains(&"GET") && !methods.contains(&"HEAD") {
        methods.push("HEAD");
    }
    methods
}

fn allow(routes: &[&Arc<Route>]) -> String {
    let mut all: Vec<&str> = routes.iter().flat_map(|route| methods(route)).collect();
    all.push("OPTIONS");
    all.sort_unstable();
    all.dedup();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_plain_segment_wherever_it_stands() {
        for (pattern, path, expected) in [
            ("/v1/responses/*", "/v1/responses/resp_1", true),
            ("/v1/responses/*", "/v1/responses", false),
            ("/v1/responses/*", "/v1/responses/", false),
            ("/v1/responses/*", "/v1/responses/a/b", false),
            ("/v1/responses/*", "/v1/responses/..", false),
            ("/v1/responses/*", "/v1/responses/a%2fb", false),
            ("/v1/responses/*/cancel", "/v1/responses/resp_1/cancel", true),
            ("/v1/responses/*/cancel", "/v1/responses/resp_1/other", false),
            ("/v1/responses/*/cancel", "/v1/responses/cancel", false),
            ("/*/*", "/a/b", true),
            ("/*/*", "/a/b/c", false),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn globs_match_whole_names() {
        for (pattern, text, matches) in [
            ("qwen*", "qwen3-32b", true),
            ("qwen*", "qwen", true),
            ("qwen*", "my-qwen", false),
            ("*", "", true),
            ("*-32b", "qwen3-32b", true),
            ("q*n*b", "qwen3-32b", true),
            ("q*n*b", "qwen3-32c", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} on {text}");
        }
    }
}
