//! Settings of the schema that this release does not act on yet.
//!
//! A file may hold the whole schema, so that it can be written once and for all. A setting from the
//! table below is taken at its default, where it says nothing that is not so, and refused at any
//! other value: a gateway that ignores a limit in silence is worse than one that does not start.
//! A feature that arrives takes its rows away.

use super::place::At;
use super::tree::{self, Node, Scalar, Value};
use super::units::{Duration, Quantity, Size};

/// One setting: its path, with `*` for any name or index, and its default as YAML.
type Row = (&'static str, &'static str);

/// Null, an empty list and an empty map are accepted everywhere.
const ROWS: &[Row] = &[("clusters.*.continue", "never")];

/// Notes what is refused, in the whole file.
pub(super) fn check(root: &At<'_>) {
    for &(path, default) in ROWS {
        let Ok(default) = tree::parse_fragment(default) else { continue };
        for at in matching(root, path) {
            check_one(&at, &default);
        }
    }
}

fn check_one(at: &At<'_>, default: &Node) {
    if let Some(node) = at.node() {
        refuse_differing(at, node, default);
    }
}

/// Null, `[]`, `{}`.
fn says_nothing(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(scalar) => *scalar == Scalar::Null,
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.entries.is_empty(),
    }
}

/// Every place that the pattern names.
fn matching<'t>(root: &At<'t>, path: &'static str) -> Vec<At<'t>> {
    let mut places = vec![root.clone()];
    for step in path.split('.') {
        places = match step {
            "*" => places.iter().flat_map(At::children).collect(),
            key => places.iter().map(|at| at.key(key)).filter(|at| at.node().is_some()).collect(),
        };
    }
    places
}

/// Tells each innermost value that differs from its default; true if there is none. A map may leave
/// keys out.
fn refuse_differing(at: &At<'_>, node: &Node, default: &Node) -> bool {
    if says_nothing(node) {
        return true;
    }
    if let (Value::Map(map), Value::Map(_)) = (&node.value, &default.value) {
        let mut all_same = true;
        for (child, entry) in at.children().iter().zip(&map.entries) {
            all_same &= match default.entry(&entry.key) {
                Some(default) => refuse_differing(child, &entry.value, &default.value),
                None => refuse(child, "leave it out"),
            };
        }
        return all_same;
    }
    if same(node, default) {
        return true;
    }
    match &default.value {
        Value::Scalar(scalar) if *scalar != Scalar::Null => {
            refuse(at, &format!("leave it out or write {}", told(scalar)))
        }
        _ => refuse(at, "leave it out"),
    }
}

fn refuse(at: &At<'_>, fix: &str) -> bool {
    // Of a value that is no value at all, only that is told.
    if !at.has_problem() {
        at.problem("not available yet", fix.to_owned());
    }
    false
}

/// Equal in meaning: 2000ms is 2s.
pub(super) fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Scalar(Scalar::Given(a)), Value::Scalar(b)) => a.text.as_ref().is_ok_and(|a| *a == told(b)),
        (Value::Scalar(Scalar::Text(a)), Value::Scalar(Scalar::Text(b))) => {
            a == b || equal_as::<Duration>(a, b) || equal_as::<Size>(a, b)
        }
        (Value::Scalar(a), Value::Scalar(b)) => a == b,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => false,
    }
}

fn equal_as<T: Quantity + PartialEq>(a: &str, b: &str) -> bool {
    matches!((T::from_text(a), T::from_text(b)), (Ok(a), Ok(b)) if a == b)
}

fn told(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Null => "null".into(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) => value.to_string(),
        Scalar::Text(text) => text.clone(),
        Scalar::Given(given) => given.written.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_of_the_table_is_yaml_and_no_setting_stands_twice() {
        let mut paths = std::collections::HashSet::new();
        for (path, default) in ROWS {
            assert!(tree::parse_fragment(default).is_ok(), "{path}");
            assert!(paths.insert(path), "{path} stands twice");
        }
    }

    #[test]
    fn equal_quantities_in_other_units_are_the_default() {
        let node = |text| tree::parse_fragment(text).unwrap();
        assert!(same(&node("2000ms"), &node("2s")));
        assert!(same(&node("8192B"), &node("8KiB")));
        assert!(!same(&node("3s"), &node("2s")));
    }
}
