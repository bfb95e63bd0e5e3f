//! What can be wrong in any part of the tree: duplicate keys, crowds, `${NAME}` without a value.

use super::place::At;
use super::tree::{Node, Value};

/// Entries of one map or list.
const MEMBERS_MAX: usize = 4096;

/// Notes what is wrong at `at` and below. False if the tree is too crowded to be read further.
pub(super) fn check(at: &At<'_>) -> bool {
    let Some(node) = at.node() else { return true };
    key(at);
    let members = match &node.value {
        Value::Scalar(_) => {
            variables(at);
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

fn variables(at: &At<'_>) {
    if let Some(Err((what, fix))) = at.node().and_then(Node::given).map(|given| &given.text) {
        at.problem_as_is(what.clone(), *fix);
    }
}

/// A name that came from outside could add a setting or hide one.
fn key(at: &At<'_>) {
    if at.last_key().is_some_and(|key| key.contains("${")) {
        at.problem_as_is("a key takes no value of the environment", "write the name itself");
    }
}
