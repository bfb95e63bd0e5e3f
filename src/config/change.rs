//! What differs between two configurations, and what of it a running process cannot take.
//!
//! The texts are compared setting by setting, in meaning: 2000ms is 2s. Members of a list that have names
//! are told apart by them, so that a backend put first in its list is one backend more and not many that
//! changed.

mod compare;

use std::fmt;

use compare::compare;

use super::error::{Problem, Problems};
use super::tree::{self, Node};
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

#[cfg(test)]
mod tests;
