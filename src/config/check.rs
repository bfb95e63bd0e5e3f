//! What can be wrong in any part of the tree: duplicate keys, crowds, `${NAME}` without a value.

use super::place::At;
use super::tree::{Node, Value};

/// Entries of one map.
const ENTRIES_MAX: usize = 4096;

/// Elements of one list: a cluster of 10,000 backends.
const ELEMENTS_MAX: usize = 16_384;

/// Keys of one gateway; a file has room for about as many.
const KEYS_MAX: usize = 150_000;

/// Notes what is wrong at `at` and below. False if the tree is too crowded to be read further.
pub(super) fn check(at: &At<'_>) -> bool {
    let Some(node) = at.node() else { return true };
    key(at);
    let (members, most) = match &node.value {
        Value::Scalar(_) => {
            variables(at);
            return true;
        }
        Value::List(list) => (list.len(), if is_keys(at) { KEYS_MAX } else { ELEMENTS_MAX }),
        Value::Map(map) => (map.entries.len() + map.duplicates.len(), ENTRIES_MAX),
    };
    if members > most {
        at.problem(format!("{members} entries"), format!("at most {most} are read"));
        return false;
    }
    duplicates(at);
    let mut is_sound = true;
    for child in at.children() {
        is_sound &= check(&child);
    }
    is_sound
}

/// The list of API keys, at the top of the file.
fn is_keys(at: &At<'_>) -> bool {
    at.last_key() == Some("keys") && at.path() == "keys"
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
