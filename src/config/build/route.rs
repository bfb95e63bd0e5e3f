//! The `routes` part.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::cluster::Resolved;
use super::names::{self, Unique};
use super::reach::Reach;
use super::respond::fixed;
use super::{guard, headers, server, stream, value};
use crate::config::place::{At, shown};
use crate::config::raw::{self, Field, List, OneOrMany};
use crate::config::{Action, Fallback, HalfClose, Route, Server, Stream, Streaming, Timeouts};
use crate::openai::Wanted;

/// What a route inherits from and refers to.
pub(super) struct Above<'a> {
    pub(super) server: &'a Server,
    pub(super) stream: &'a Stream,
    pub(super) timeouts: &'a Timeouts,
    pub(super) clusters: &'a [Resolved],
}

/// Every route in the order of the file.
pub(super) fn routes(file: &raw::File, at: &At<'_>, above: &Above<'_>, wanted: &mut Wanted) -> Vec<Route> {
    let what = "no routes: every request would be answered 404";
    let list = value::filled(&file.routes, at, what, "add one, with match and cluster");
    let indices: HashMap<&str, usize> =
        above.clusters.iter().enumerate().map(|(i, resolved)| (&*resolved.cluster.name, i)).collect();
    let mut unique = Unique::new("route");
    let mut unnamed: HashMap<Arc<str>, usize> = HashMap::new();
    let mut routes = Vec::new();
    let mut reach = Reach::default();
    for (i, raw) in list.iter().enumerate() {
        let (Some(raw), at) = (raw.get(), at.index(i)) else { continue };
        let guard = guard::guard(raw, &at, wanted);
        let route = Route { guard, ..route(raw, &at, above, &indices) };
        let is_unnamed = raw.name.is_absent();
        let at_name = if is_unnamed { at.clone() } else { at.key("name") };
        names::text(&route.name, &at_name);
        match unnamed.get(&route.name) {
            Some(first) if is_unnamed => at.problem(
                format!(
                    "routes[{first}] and routes[{i}] have no name, and both would be called by their first path"
                ),
                "add name: to each, a word of your own",
            ),
            _ => unique.check(&route.name, &at_name, "give each its own name"),
        }
        if is_unnamed {
            unnamed.entry(Arc::clone(&route.name)).or_insert(i);
        }
        reach.check(&route, &at);
        routes.push(route);
    }
    routes
}

fn route(raw: &raw::Route, at: &At<'_>, above: &Above<'_>, indices: &HashMap<&str, usize>) -> Route {
    let empty = raw::Match::default();
    let (matches, at_match) = (raw.matches.get().unwrap_or(&empty), at.key("match"));
    let paths = paths(raw, at);
    if let Some(pattern) = matches.model.get() {
        names::glob(pattern, &at_match.key("model"));
    }
    let action = action(raw, at, indices);
    let first = match action {
        Action::Proxy(cluster) => Some(cluster),
        Action::Respond(_) => None,
    };
    let timeouts = |cluster: Option<usize>| {
        let cluster = cluster.and_then(|cluster| above.clusters.get(cluster));
        let above = cluster.map_or(above.timeouts, |resolved| &resolved.timeouts);
        stream::timeouts(raw.timeouts.get(), &at.key("timeouts"), above)
    };
    let stream = stream::stream(raw.stream.get(), &at.key("stream"), above.stream);
    if above.stream.half_close == HalfClose::Abort || above.stream.heartbeat.is_some() {
        stream::warn_silent_finish(&stream, &at.key("stream"));
    }
    Route {
        name: Arc::from(raw.name.get().or_else(|| paths.first()).map_or("unnamed", String::as_str)),
        paths,
        model: matches.model.get().cloned(),
        fallback: fallback(raw, at, indices)
            .into_iter()
            .map(|cluster| Fallback { cluster, timeouts: timeouts(Some(cluster)) })
            .collect(),
        methods: texts(&matches.methods, &at_match.key("methods"), names::method),
        headers: headers::patterns(&matches.headers, &at_match.key("headers")),
        action,
        models: texts(&raw.models, &at.key("models"), names::text),
        aliases: aliases(raw, &at.key("aliases")),
        streaming: match raw.streaming.get() {
            None | Some(raw::Streaming::Any) => Streaming::Any,
            Some(raw::Streaming::Required) => Streaming::Required,
        },
        include_usage: raw.include_usage.get().copied().unwrap_or(true),
        body_bytes: body_bytes(raw, &at.key("body_bytes"), above),
        stream,
        timeouts: timeouts(first),
        guard: None,
    }
}

fn body_bytes(raw: &raw::Route, at: &At<'_>, above: &Above<'_>) -> u64 {
    let limits = &above.server.request;
    let bytes = value::size(&raw.body_bytes, at, limits.body_bytes, 1..=server::BODY_BYTES_MAX);
    if raw.body_bytes.get().is_some() && bytes > limits.buffered_bytes {
        at.problem(
            format!("more than all bodies together may have ({} bytes)", limits.buffered_bytes),
            "write less, or raise server.request.buffered_bytes",
        );
    }
    bytes
}

fn paths(raw: &raw::Route, at: &At<'_>) -> Vec<String> {
    let at = at.key("match");
    let found = match raw.matches.get().map(|matches| &matches.path) {
        Some(Field::Set(found)) => found,
        None if !raw.matches.is_absent() => return Vec::new(),
        Some(Field::Wrong) => return Vec::new(),
        _ => {
            at.key("path").problem("missing", "write match: { path: /v1/chat/completions }");
            return Vec::new();
        }
    };
    match found {
        OneOrMany::One(path) => {
            names::path(path, &at.key("path"));
            vec![path.clone()]
        }
        OneOrMany::Many(many) => texts(&Field::Set(many.clone()), &at.key("path"), names::path),
    }
}

/// The readable elements of a list, each looked at by `check`.
fn texts(list: &List<String>, at: &At<'_>, check: fn(&str, &At<'_>)) -> Vec<String> {
    let Some(list) = list.get() else { return Vec::new() };
    let readable = list.iter().enumerate().filter_map(|(i, text)| Some((i, text.get()?)));
    readable
        .map(|(i, text)| {
            check(text, &at.index(i));
            text.clone()
        })
        .collect()
}

fn aliases(raw: &raw::Route, at: &At<'_>) -> BTreeMap<String, String> {
    let Some(entries) = raw.aliases.get() else { return BTreeMap::new() };
    let mut aliases = Vec::new();
    for ((from, to), at) in entries.0.iter().zip(at.children()) {
        match to {
            Field::Set(to) => aliases.push((at, from.as_str(), to.as_str())),
            Field::Absent => at.problem("stands for nothing", "write the backend's model name"),
            Field::Wrong => {}
        }
    }
    names::aliases(&aliases);
    aliases.into_iter().map(|(_, from, to)| (from.to_owned(), to.to_owned())).collect()
}

fn action(raw: &raw::Route, at: &At<'_>, indices: &HashMap<&str, usize>) -> Action {
    match (&raw.cluster, &raw.respond) {
        (Field::Set(_), Field::Set(_)) => {
            at.key("respond").problem("both a cluster and a fixed answer", "keep one of them")
        }
        (Field::Set(name), _) => match indices.get(name.as_str()) {
            Some(&index) => return Action::Proxy(index),
            None => {
                at.key("cluster").problem(format!("no cluster has the name {}", shown(name)), known(indices))
            }
        },
        (_, Field::Set(respond)) => return Action::Respond(fixed(respond, &at.key("respond"))),
        (Field::Absent, Field::Absent) => {
            at.key("cluster").problem("missing", "write the cluster's name, or use respond")
        }
        _ => {}
    }
    Action::Respond(fixed(&raw::Respond::default(), at))
}

/// The clusters behind the first one, each named once.
fn fallback(raw: &raw::Route, at: &At<'_>, indices: &HashMap<&str, usize>) -> Vec<usize> {
    let Some(list) = raw.fallback.get() else { return Vec::new() };
    let at = at.key("fallback");
    if raw.respond.get().is_some() && !list.is_empty() {
        at.problem("a fixed answer needs no fallback", "leave it out");
    }
    let mut seen: Vec<&str> = raw.cluster.get().map(String::as_str).into_iter().collect();
    let mut found = Vec::new();
    for (i, name) in list.iter().enumerate().filter_map(|(i, name)| Some((i, name.get()?))) {
        let at = at.index(i);
        match indices.get(name.as_str()) {
            None => at.problem(format!("no cluster has the name {}", shown(name)), known(indices)),
            Some(_) if seen.contains(&name.as_str()) => {
                at.problem(format!("{} stands before already", shown(name)), "name each cluster once")
            }
            Some(&index) => found.push(index),
        }
        seen.push(name);
    }
    found
}

fn known(indices: &HashMap<&str, usize>) -> String {
    let mut names: Vec<&str> = indices.keys().copied().collect();
    names.sort_unstable();
    match names.len() {
        0 => "add it under clusters".into(),
        1..=20 => format!("there are: {}", names.join(", ")),
        n => format!("there are {n} others"),
    }
}

/// Warns of clusters that no route leads to.
pub(super) fn warn_unused(routes: &[Route], clusters: &[Resolved], at: &At<'_>) {
    let used: HashSet<usize> = routes.iter().flat_map(Route::clusters).map(|(cluster, _)| cluster).collect();
    for (i, at) in at.children().iter().enumerate().take(clusters.len()) {
        if !used.contains(&i) {
            at.warning("no route leads here", "name it in a route, or drop it");
        }
    }
}

/// Warns of backends whose path is one that clients send already: `/v1` would come twice.
pub(super) fn warn_doubled(routes: &[Route], clusters: &[Resolved], at: &At<'_>) {
    for (i, (resolved, at)) in clusters.iter().zip(at.children()).enumerate() {
        let leads_here = |route: &&Route| route.clusters().any(|(cluster, _)| cluster == i);
        let mut paths = routes.iter().filter(leads_here).flat_map(|route| &route.paths);
        let Some(path) = paths.find(|path| path.starts_with(&format!("{VERSION}/"))) else { continue };
        let backends = resolved.cluster.backends.iter().enumerate();
        for (backend, prefix) in backends.map(|(i, backend)| (i, &backend.prefix)) {
            if prefix.ends_with(VERSION) {
                at.key("backends").index(backend).key("url").warning(
                    format!(
                        "the path of a url comes before the client's: {path} would be asked as {prefix}{path}"
                    ),
                    "drop /v1",
                );
            }
        }
    }
}

/// What the paths of OpenAI's API begin with, and what its clients are used to find in a base URL.
const VERSION: &str = "/v1";
