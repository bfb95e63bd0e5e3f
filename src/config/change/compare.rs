//! Two trees, member by member.
//!
//! The hard idea: a member of a list that has a name is found by it, wherever in the list it stands.

use std::collections::HashMap;

use super::{Change, Kind};
use crate::config::later::same;
use crate::config::tree::{Node, Scalar, Value};

/// Notes what differs below `path`.
pub(super) fn compare(old: &Node, new: &Node, path: &str, changes: &mut Vec<Change>) {
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
        Value::Scalar(Scalar::Text(name)) => Some(name),
        _ => None,
    }
}
