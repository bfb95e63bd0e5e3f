//! What differs between two configurations, and what of it a running process cannot take.
//!
//! The texts are compared setting by setting, in meaning: 2000ms is 2s. Members of a list that have names
//! are told apart by them, so that a backend put first in its list is one backend more and not many that
//! changed.

use std::collections::HashMap;
use std::fmt;

use super::error::{Problem, Problems};
use super::later::same;
use super::tree::{self, Node, Value};
use super::{Config, Loaded, Rotate, Server};

/// One setting that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, as in `clusters.qwen.backends.gpu-1.weight`.
    pub path: String,
    /// How.
    pub kind: Kind,
    /// A reload with it is refused.
    pub needs_restart: bool,
}

/// How a setting differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only the new file has it.
    Added,
    /// Only the old file has it.
    Removed,
    /// Both have it.
    Changed,
}

impl fmt::Display for Change {
    /// `+ PATH`, `- PATH` or `~ PATH`, and what it needs.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.kind {
            Kind::Added => '+',
            Kind::Removed => '-',
            Kind::Changed => '~',
        };
        let restart = if self.needs_restart { " (needs a restart)" } else { "" };
        write!(to, "{mark} {}{restart}", self.path)
    }
}

/// A configuration and the text that it was read from.
#[derive(Clone, Copy)]
pub struct Version<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Its text, which has been read before.
    pub text: &'a str,
}

/// What a reload from `old` to `new` would change, in the order of the new file; what is only in the old
/// one stands behind its neighbours. Empty when nothing that is done differs.
pub fn changes(old: Version<'_>, new: Version<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    if old.config == new.config {
        return changes;
    }
    if let (Ok(before), Ok(after)) = (tree::parse(old.text), tree::parse(new.text)) {
        compare(&before, &after, "", &mut changes);
    }
    let fixed = fixed(old.config, new.config);
    // A default that was written out changes nothing of what the process does.
    let differs = |path: &str| concerns(&fixed, path) || (STORE.contains(&path) && fixed.contains(&STORE[0]));
    changes.retain(|change| !is_settled_at_start(&change.path) || differs(&change.path));
    for change in &mut changes {
        change.needs_restart = is_settled_at_start(&change.path);
    }
    changes
}

/// Refuses a configuration that differs in what is settled when the process starts, or that would open a gateway with
/// keys to everybody: who takes the last key back does not mean that.
///
/// # Errors
/// Each such setting, with its line in the new file.
pub fn needs_restart(running: &Config, new: &Loaded) -> Result<(), Problems> {
    let fixed = fixed(running, &new.config);
    let opens = !running.keys.is_empty() && new.config.keys.is_empty();
    if fixed.is_empty() && !opens {
        return Ok(());
    }
    let root = tree::parse(&new.text).ok();
    let problem = |path: &&'static str| Problem {
        path: (*path).to_owned(),
        line: root.as_ref().map(|root| line(root, path)),
        column: None,
        what: "differs from what is running, and is settled at the start".into(),
        fix: "take the change back, or restart".into(),
    };
    let mut problems: Vec<Problem> = fixed.iter().map(problem).collect();
    if opens {
        problems.push(Problem {
            what: "there is none any more, and everybody could use the engines".into(),
            fix: "keep one, or restart to open the gateway".into(),
            ..problem(&"keys")
        });
    }
    Err(Problems::new(problems, 0))
}

/// Whether the setting at this path is settled when the process starts, so that a reload with another value is
/// refused.
pub fn is_settled_at_start(path: &str) -> bool {
    let first = path.split(['.', '[']).next().unwrap_or(path);
    matches!(first, "server" | "sim")
        || matches!(path, "log" | "log.format" | "log.access" | "telemetry" | "telemetry.otlp")
        || path.starts_with("log.usage")
        || STORE.contains(&path)
}

/// The settings of the store of limits, of which the first stands for all.
const STORE: [&str; 4] =
    ["limits.store", "limits.store_password_env", "limits.store_password_file", "limits.store_ca"];

/// Whether a path is that of a setting, inside it or above it.
fn concerns(settings: &[&str], path: &str) -> bool {
    let inside = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    settings.iter().any(|setting| inside(setting, path) || inside(path, setting))
}

/// The settings that differ and are fixed from start to exit. The admin token is read anew: only the name
/// of its file is fixed.
fn fixed(old: &Config, new: &Config) -> Vec<&'static str> {
    let Server {
        listen,
        admin,
        threads,
        memory_bytes,
        connections_max,
        connections_per_ip,
        trusted_proxies,
        request,
        shutdown,
        upgrade_socket,
        pool_max_idle,
    } = &old.server;
    let server = &new.server;
    let differs = [
        ("server.listen", *listen != server.listen),
        ("server.admin.listen", admin.listen != server.admin.listen),
        ("server.admin.token_file", admin.token_file != server.admin.token_file),
        ("server.threads", *threads != server.threads),
        ("server.memory", *memory_bytes != server.memory_bytes),
        ("server.connections.max", *connections_max != server.connections_max),
        ("server.connections.per_ip", *connections_per_ip != server.connections_per_ip),
        ("server.trusted_proxies", *trusted_proxies != server.trusted_proxies),
        ("server.request", *request != server.request),
        ("server.shutdown", *shutdown != server.shutdown),
        ("server.upgrade_socket", *upgrade_socket != server.upgrade_socket),
        ("server.pool.max_idle", *pool_max_idle != server.pool_max_idle),
        ("log.format", old.log.format != new.log.format),
        ("log.access", old.log.access != new.log.access),
        ("log.usage", old.log.usage.as_ref().map(|to| &to.file) != new.log.usage.as_ref().map(|to| &to.file)),
        ("log.usage_rotate", rotate(old) != rotate(new)),
        ("telemetry.otlp", old.telemetry.otlp != new.telemetry.otlp),
        (STORE[0], old.limits.store != new.limits.store),
        ("sim", old.sim != new.sim),
    ];
    differs.into_iter().filter_map(|(path, differs)| differs.then_some(path)).collect()
}

fn rotate(config: &Config) -> Option<Rotate> {
    config.log.usage.as_ref().map(|to| to.rotate)
}

/// The line of a setting, or else of what it would stand in.
fn line(root: &Node, path: &str) -> u64 {
    let (mut node, mut line) = (root, root.line);
    for key in path.split('.') {
        let Some(entry) = node.entry(key) else { break };
        (node, line) = (&entry.value, entry.line);
    }
    line
}

fn compare(old: &Node, new: &Node, path: &str, changes: &mut Vec<Change>) {
    match (members(old, path), members(new, path)) {
        (Some(old), Some(new)) => compare_members(&old, &new, changes),
        _ if same(old, new) => {}
        _ => changes.push(Change { path: path.into(), kind: Kind::Changed, needs_restart: false }),
    }
}

fn compare_members(old: &[(String, &Node)], new: &[(String, &Node)], changes: &mut Vec<Change>) {
    let mut before: HashMap<&str, &Node> = old.iter().map(|(path, node)| (path.as_str(), *node)).collect();
    let lone = |path: &str, kind| Change { path: path.to_owned(), kind, needs_restart: false };
    for (path, node) in new {
        match before.remove(path.as_str()) {
            Some(before) => compare(before, node, path, changes),
            None => changes.push(lone(path, Kind::Added)),
        }
    }
    let gone = old.iter().filter(|(path, _)| before.contains_key(path.as_str()));
    changes.extend(gone.map(|(path, _)| lone(path, Kind::Removed)));
    if order(old) != order(new) && same_set(old, new) {
        let list =
            old.first().and_then(|(path, _)| path.rsplit_once(['.', '['])).map_or("", |(list, _)| list);
        // Routes are asked in their order; of other named members it means nothing.
        if list == "routes" {
            changes.push(lone(list, Kind::Changed));
        }
    }
}

fn order<'t>(members: &'t [(String, &Node)]) -> Vec<&'t str> {
    members.iter().map(|(path, _)| path.as_str()).collect()
}

fn same_set(old: &[(String, &Node)], new: &[(String, &Node)]) -> bool {
    let (mut old, mut new) = (order(old), order(new));
    old.sort_unstable();
    new.sort_unstable();
    old == new
}

/// The members of a map, or of a list of maps, by their paths. A list of plain values is one value.
fn members<'t>(node: &'t Node, path: &str) -> Option<Vec<(String, &'t Node)>> {
    match &node.value {
        Value::Scalar(_) => None,
        Value::Map(map) => {
            let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            Some(map.entries.iter().map(|entry| (below(&entry.key), &entry.value)).collect())
        }
        Value::List(list) => {
            let is_of_maps = list.iter().all(|node| matches!(node.value, Value::Map(_)));
            let place = |(i, node): (usize, &'t Node)| {
                let place =
                    name(node).map_or_else(|| format!("{path}[{i}]"), |name| format!("{path}.{name}"));
                (place, node)
            };
            is_of_maps.then(|| list.iter().enumerate().map(place).collect())
        }
    }
}

fn name(node: &Node) -> Option<&str> {
    match &node.entry("name")?.value.value {
        Value::Scalar(tree::Scalar::Text(name)) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    const OLD: &str = "\
server: { listen: [ { address: 127.0.0.1:0 } ], threads: 2 }
clusters:
  c:
    backends: [ { name: a, url: http://h:1 }, { name: b, url: http://h:2 } ]
    keepalive: 2s
routes:
  - { name: one, match: { path: /v1/a }, cluster: c }
  - { name: two, match: { path: /v1/b }, cluster: c }
";

    fn told(new: &str) -> Vec<String> {
        let load = |text| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
        changes(load(OLD).version(), load(new).version()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_means_the_same_is_no_change() {
        assert!(told(OLD).is_empty());
        assert!(told(&OLD.replace("2s", "2000ms")).is_empty());
        assert!(told(&OLD.replace("threads: 2", "threads: 2, pool: { max_idle: 1024 }")).is_empty());
        assert!(told(&OLD.replace("clusters:", "# a remark\nclusters:")).is_empty());
    }

    #[test]
    fn members_are_told_by_name() {
        let new = OLD.replace("{ name: a, url: http://h:1 }", "{ name: x, url: http://h:9 }");
        assert_eq!(told(&new), ["+ clusters.c.backends.x", "- clusters.c.backends.a"]);
        let new = OLD.replace("h:2 }", "h:2, drain: true }");
        assert_eq!(told(&new), ["+ clusters.c.backends.b.drain"]);
        let (one, two) = OLD.split_once("  - { name: one").unwrap();
        let (first, second) = two.split_once('\n').unwrap();
        assert_eq!(told(&format!("{one}{second}  - {{ name: one{first}\n")), ["~ routes"]);
    }

    #[test]
    fn what_is_settled_at_the_start_is_marked_and_refused() {
        let new = OLD.replace("threads: 2", "threads: 3").replace("keepalive: 2s", "keepalive: 3s");
        assert_eq!(told(&new), ["~ server.threads (needs a restart)", "~ clusters.c.keepalive"]);
        let load = |text| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
        let refused =
            needs_restart(&load(OLD).config, &load(&new)).unwrap_err().in_file("f.yaml").to_string();
        assert!(refused.starts_with("f.yaml:1: server.threads: differs from what is running"), "{refused}");
        assert!(needs_restart(&load(OLD).config, &load(OLD)).is_ok());
    }

    #[test]
    fn a_store_of_limits_is_settled_at_the_start_and_other_limits_are_not() {
        let limits = "limits: { store: memory, per_ip: { requests: 5/s } }\n";
        assert_eq!(told(&format!("{OLD}{limits}")), ["+ limits"]);
        let load = |text: &str| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
        let (old, new) = (format!("{OLD}{limits}"), limits.replace("memory", "redis://h:1"));
        let new = load(&format!("{OLD}{new}"));
        let refused = needs_restart(&load(&old).config, &new).unwrap_err().in_file("f.yaml").to_string();
        assert!(refused.starts_with("f.yaml:9: limits.store: differs"), "{refused}");
        let paths: Vec<_> =
            changes(load(&old).version(), new.version()).iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["~ limits.store (needs a restart)"]);
    }

    #[test]
    fn what_a_store_is_reached_with_belongs_to_it() {
        let environment = Environment { file: |_| Ok(b"canary".to_vec()), ..Environment::bare(2, 1 << 30) };
        let load = |file: &str| {
            let limits = format!("limits: {{ store: \"redis://h:1\", store_password_file: {file} }}\n");
            Config::parse(&format!("{OLD}{limits}"), &environment).unwrap()
        };
        let (old, new) = (load("/a"), load("/b"));
        assert!(needs_restart(&old.config, &load("/a")).is_ok());
        let refused = needs_restart(&old.config, &new).unwrap_err().in_file("f.yaml").to_string();
        assert!(refused.starts_with("f.yaml:9: limits.store: differs"), "{refused}");
        let paths: Vec<_> = changes(old.version(), new.version()).iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["~ limits.store_password_file (needs a restart)"]);
    }

    #[test]
    fn the_last_key_does_not_go_while_it_runs() {
        let load = |text: &str| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
        let digest = "a".repeat(64);
        let key = |name: &str, digit: &str| {
            format!("  - {{ name: {name}, sha256: \"{}\" }}\n", digest.replacen('a', digit, 1))
        };
        let two = load(&format!("{OLD}keys:\n{}{}", key("x", "b"), key("y", "c")));
        let one = load(&format!("{OLD}keys:\n{}", key("x", "b")));
        assert!(needs_restart(&two.config, &one).is_ok());
        let refused = needs_restart(&one.config, &load(OLD)).unwrap_err().in_file("f.yaml").to_string();
        assert!(
            refused.contains("keys: there is none any more, and everybody could use the engines"),
            "{refused}"
        );
    }
}
