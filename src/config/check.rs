//! What can be wrong in any part of the tree: duplicate keys, crowds, `${NAME}`.

use super::place::At;
use super::tree::{Scalar, Value};

/// Entries of one map or list.
const MEMBERS_MAX: usize = 4096;

/// Notes what is wrong at `at` and below. False if the tree is too crowded to be read further.
pub(super) fn check(at: &At<'_>) -> bool {
    let Some(node) = at.node() else { return true };
    let members = match &node.value {
        Value::Scalar(scalar) => {
            environment(at, scalar);
            return true;
        }
        Value::List(list) => list.len(),
        Value::Map(map) => map.entries.len() + map.duplicates.len(),
    };
    if members > MEMBERS_MAX {
        at.problem(format!("{members} entries"), format!("at most {MEMBERS_MAX} are read"));
        return false;
    }
    duplicates(at);
    let mut is_sound = true;
    for child in at.children() {
        is_sound &= check(&child);
    }
    is_sound
}

fn duplicates(at: &At<'_>) {
    for (again, first_line) in at.duplicates() {
        again.problem("duplicate key", format!("it stands in line {first_line} already; keep one"));
    }
}

fn environment(at: &At<'_>, scalar: &Scalar) {
    if let Scalar::Text(text) = scalar
        && text.contains("${")
    {
        at.problem("values from the environment (\"${NAME}\") are not available yet", "write the value");
    }
}
