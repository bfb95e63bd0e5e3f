//! The YAML text as a tree in which every node knows its line.
//!
//! Syntax and size are judged here, meaning is not. The parser's budgets bound the work on hostile
//! input: depth, nodes, and what aliases may multiply. Duplicate keys are kept apart in the tree, so that
//! all of them can be reported together with everything else.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Error, Spanned};

use super::error::Problem;

/// Largest configuration file in bytes.
pub(super) const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Deepest nesting of maps and lists.
const DEPTH_MAX: usize = 64;
/// Maps, lists and scalars of one file, aliases expanded.
const NODES_MAX: usize = 100_000;

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
    Problem::of_file(None, None, "the file is larger than 4 MiB", "share the fleet among gateways")
}

/// Reads `text`; a syntax error is a problem of its own, and the only one told.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    reject_bytes(text)?;
    let node: Node =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| told(&error, text))?;
    if node.is_null() {
        return Err(Problem::of_file(
            None,
            None,
            "the file is empty",
            "conf/streamgate.yaml is a file to start from",
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
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// The parser's error in our words, with a fix where its cause is a habit.
fn told(error: &Error, text: &str) -> Problem {
    let place = error.location();
    let line = place.map(|at| at.line()).filter(|&line| line > 0);
    let column = place.map(|at| at.column()).filter(|&column| column > 0);
    let (what, fix) = match error.without_snippet() {
        Error::Eof { .. } => ("the file is empty".to_owned(), "conf/streamgate.yaml is a file to start from"),
        Error::UnknownAnchor { .. } => {
            ("\"*\" begins an alias here, and no such anchor exists".to_owned(), "quote it: \"*...\"")
        }
        Error::MergeKeyNotAllowed { .. } => {
            ("merge keys (\"<<\") are not supported".to_owned(), "write the keys out")
        }
        Error::MultipleDocuments { .. } => {
            ("a second YAML document".to_owned(), "keep to one, without \"---\" between")
        }
        other => (first_line(&other.to_string()), habit(text, line)),
    };
    Problem::of_file(line, column, what, fix)
}

/// The parser's message without its own mention of the place.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    match line.rfind(" at line ") {
        Some(end) => line[..end].to_owned(),
        None => line.to_owned(),
    }
}

/// A fix for the line on which the syntax broke.
fn habit(text: &str, line: Option<u64>) -> &'static str {
    let Some(line) = line.and_then(|n| text.lines().nth(usize::try_from(n).ok()?.checked_sub(1)?)) else {
        return "";
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    if indent.contains('\t') {
        "indent with spaces, not tabs"
    } else if line.contains(": *") || line.contains("- *") || line.contains("[*") {
        "quote what begins with \"*\""
    } else {
        ""
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        let place = spanned.referenced;
        Ok(Self { value: spanned.value, line: place.line(), column: place.column() })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Null))
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Int(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Int(value.into())))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Int(value)))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        let value = i128::try_from(value).map_err(|_| E::custom("a number beyond all bounds"))?;
        Ok(Value::Scalar(Scalar::Int(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = seq.next_element()? {
            list.push(node);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut read = Map::default();
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<Spanned<Value>>()? {
            let place = key.referenced;
            let key = match key.value {
                Value::Scalar(Scalar::Text(key)) => key,
                Value::Scalar(Scalar::Int(key)) => key.to_string(),
                Value::Scalar(Scalar::Bool(key)) => key.to_string(),
                Value::Scalar(Scalar::Float(key)) => key.to_string(),
                _ => return Err(A::Error::custom("a key must be a word, not a list, a map or nothing")),
            };
            let target = if seen.insert(key.clone()) { &mut read.entries } else { &mut read.duplicates };
            target.push(Entry { key, line: place.line(), column: place.column(), value: map.next_value()? });
        }
        Ok(Value::Map(read))
    }
}
