//! The YAML text as a tree in which every node knows its line.
//!
//! Syntax and size are judged here, meaning is not. The parser's budgets bound the work on hostile
//! input: depth, nodes, and what aliases may multiply. Duplicate keys are kept apart in the tree, so that
//! all of them can be reported together with everything else.

mod entries;
mod from_yaml;
mod straight;
mod told;

use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use super::error::Problem;
use entries::Entries;
use told::told;

/// Largest configuration file in bytes: twice 100,000 keys, each with models of its own.
pub(super) const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Deepest nesting of maps and lists. The schema needs eight; the parser recurses, and more would take
/// more stack than a worker thread has.
const DEPTH_MAX: usize = 24;
/// Maps, lists and scalars of one file, aliases expanded: 100,000 keys, each with models of its own.
const NODES_MAX: usize = 1_000_000;
/// Of these, what aliases may multiply.
const REPLAYED_MAX: usize = 50_000;
/// Aliases (`*name`) of one file.
const ALIASES_MAX: usize = 1000;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    /// From 1.
    pub(super) line: u64,
    /// From 1.
    pub(super) column: u64,
}

/// What YAML 1.2's core schema makes of a node; booleans are `true` and `false` only.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// A text with `${NAME}` in it.
    Given(Given),
}

/// A text that holds values of environment variables. Messages repeat what is written, never the values.
#[derive(Clone, PartialEq)]
pub(super) struct Given {
    /// As in the file.
    pub(super) written: String,
    /// With the values in their places; else what is wrong, and the fix.
    pub(super) text: Result<String, (String, &'static str)>,
}

impl std::fmt::Debug for Given {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_tuple("Given").field(&self.written).finish()
    }
}

/// What a node holds.
#[derive(Debug)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Map),
}

/// A map as written.
#[derive(Debug, Default)]
pub(super) struct Map {
    /// Each key once, in the order of the file.
    pub(super) entries: Vec<Entry>,
    /// Entries whose key stood there already.
    pub(super) duplicates: Vec<Entry>,
}

/// One line of a map.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Where the key stands.
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) value: Node,
}

impl Node {
    /// The first entry with this key, if this is a map that has it.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(map) => map.entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The text with values of environment variables that this is, if it is one.
    pub(super) fn given(&self) -> Option<&Given> {
        match &self.value {
            Value::Scalar(Scalar::Given(given)) => Some(given),
            _ => None,
        }
    }

    /// Nothing, `~` or `null`: the same as leaving the setting out.
    pub(super) fn is_null(&self) -> bool {
        matches!(self.value, Value::Scalar(Scalar::Null))
    }
}

/// The bytes as text.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, Problem> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_large());
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let lines = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        let fix = if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            "it looks like UTF-16; save it as UTF-8"
        } else {
            "save it as UTF-8"
        };
        Problem::of_file(Some(lines as u64 + 1), None, "not UTF-8", fix)
    })
}

fn too_large() -> Problem {
    Problem::of_file(None, None, "the file is larger than 32 MiB", "share the fleet among gateways")
}

/// Reads `text`; a syntax error is a problem of its own, and the only one told.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    reject_bytes(text)?;
    let node = match straight::parse(text) {
        Some(node) => node,
        None => parse_fragment(text)?,
    };
    if node.is_null() {
        return Err(Problem::of_file(
            None,
            None,
            "the file is empty",
            "conf/streamgate.yaml is a file to start from",
        ));
    }
    if !matches!(node.value, Value::Map(_)) {
        let fix = "it begins with lines like \"server:\" at the left edge";
        return Err(Problem::of_file(
            Some(node.line),
            Some(node.column),
            "the file is not a map of settings",
            fix,
        ));
    }
    Ok(node)
}

/// Reads a piece of YAML that stands in the code.
pub(super) fn parse_fragment(text: &str) -> Result<Node, Problem> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| told(&error, text))
}

/// What the parser would take or explain badly: too much, a byte order mark, NUL.
fn reject_bytes(text: &str) -> Result<(), Problem> {
    if text.len() > FILE_BYTES_MAX {
        return Err(too_large());
    }
    if text.starts_with('\u{feff}') {
        return Err(Problem::of_file(
            Some(1),
            Some(1),
            "the file begins with a byte order mark",
            "save it as UTF-8 without BOM",
        ));
    }
    if let Some(at) = text.find('\0') {
        let line = 1 + text[..at].matches('\n').count() as u64;
        return Err(Problem::of_file(
            Some(line),
            None,
            "a NUL byte",
            "remove it; was the file written to its end?",
        ));
    }
    Ok(())
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 3 * NODES_MAX,
            max_documents: 1,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: REPLAYED_MAX,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}
