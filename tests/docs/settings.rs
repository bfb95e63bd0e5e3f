//! Every setting of the file, as `streamgate schema` has it.
//!
//! The schema nests; a reader looks for a path. So it is walked once into groups (an object each) of
//! settings, where `[]` stands for the members of a list and `*` for names of the user's choice. What stands
//! in several places (`stream`, `timeouts`) is a group at the first of them, and a reference at the others.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The parts of the file. What others override stands before them, so that it is described there.
pub(crate) const PARTS: [&str; 12] = [
    "server",
    "log",
    "telemetry",
    "stream",
    "timeouts",
    "clusters",
    "routes",
    "session",
    "keys",
    "limits",
    "cors",
    "sim",
];

/// An object of the schema.
pub(crate) struct Group {
    /// Where it stands, as in `clusters.*.health`.
    pub(crate) path: String,
    /// What it is for, and its default.
    pub(crate) about: About,
    /// Its members.
    pub(crate) settings: Vec<Setting>,
}

/// One setting.
pub(crate) struct Setting {
    /// Where it stands.
    pub(crate) path: String,
    /// What may be written.
    pub(crate) kind: Kind,
    /// What it does, and its default.
    pub(crate) about: About,
}

/// What may be written.
pub(crate) enum Kind {
    /// A plain value, in words.
    Plain(String),
    /// One of these words, each with what it means.
    Words(Vec<(String, String)>),
    /// A group of its own, at this path.
    Group(String),
}

/// A description, with its last sentence taken off.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) text: String,
    pub(crate) default: Default,
}

/// The last sentence of a description.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Default {
    /// "Default `5s`.", perhaps with more words behind it: what could be written as well.
    Written { value: String, words: String },
    /// "Default: …": in words only.
    Told(String),
    /// "Required.", perhaps with more words behind it.
    Required(String),
    /// Nothing is said.
    Missing,
}

/// The groups, those of a part behind it.
pub(crate) fn groups() -> Vec<Group> {
    let schema: Value = serde_json::from_str(&streamgate::config::schema_json()).expect("it is JSON");
    let mut walk = Walk { schema: &schema, groups: Vec::new(), seen: BTreeMap::new() };
    let parts = schema["properties"].as_object().expect("a file is an object");
    assert_eq!(parts.len(), PARTS.len(), "a part is missing in PARTS");
    for part in PARTS {
        let kind = walk.kind(&parts[part], part, &about(&parts[part]));
        assert!(matches!(kind, Kind::Group(_)), "{part} is no group");
    }
    walk.groups
}

struct Walk<'s> {
    schema: &'s Value,
    groups: Vec<Group>,
    /// Where each definition stands first.
    seen: BTreeMap<String, String>,
}

impl<'s> Walk<'s> {
    /// What a schema takes; objects become groups.
    fn kind(&mut self, node: &'s Value, path: &str, text: &str) -> Kind {
        if let Some(name) = node["$ref"].as_str().and_then(|to| to.strip_prefix("#/$defs/")) {
            let node = &self.schema["$defs"][name];
            if node["properties"].is_object() {
                if let Some(first) = self.seen.get(name) {
                    return Kind::Group(first.clone());
                }
                self.seen.insert(name.to_owned(), path.to_owned());
            }
            return self.kind(node, path, text);
        }
        if let Some(members) = node["properties"].as_object() {
            self.group(members, path, text);
            return Kind::Group(path.to_owned());
        }
        if let Some(choices) = node["anyOf"].as_array().or_else(|| node["oneOf"].as_array()) {
            return self.choice(choices, path, text);
        }
        if node["items"].is_object() {
            let member = self.kind(&node["items"], &format!("{path}[]"), text);
            return in_a("list of", member);
        }
        if node["additionalProperties"].is_object() {
            let member = self.kind(&node["additionalProperties"], &format!("{path}.*"), text);
            return in_a("map to", member);
        }
        words(node).map_or_else(|| Kind::Plain(plain(node)), Kind::Words)
    }

    fn group(&mut self, members: &'s Map<String, Value>, path: &str, text: &str) {
        let at = self.groups.len();
        self.groups.push(Group { path: path.into(), about: About::of(text), settings: Vec::new() });
        for (name, node) in members {
            let (path, text) = (format!("{path}.{name}"), about(node));
            let kind = self.kind(node, &path, &text);
            self.groups[at].settings.push(Setting { path, kind, about: About::of(&text) });
        }
    }

    /// Several forms: words together, the rest joined by "or". Null is "not written", and no form.
    fn choice(&mut self, choices: &'s [Value], path: &str, text: &str) -> Kind {
        let choices = choices.iter().filter(|choice| choice["type"] != "null");
        let mut kinds: Vec<Kind> = choices.map(|choice| self.kind(choice, path, text)).collect();
        if kinds.iter().all(|kind| matches!(kind, Kind::Words(_))) {
            let words = kinds.into_iter().flat_map(|kind| match kind {
                Kind::Words(words) => words,
                Kind::Plain(_) | Kind::Group(_) => Vec::new(),
            });
            return Kind::Words(words.collect());
        }
        if kinds.len() == 1 {
            return kinds.remove(0);
        }
        Kind::Plain(kinds.iter().map(Kind::told).collect::<Vec<_>>().join(" or "))
    }
}

impl Kind {
    /// In words, for a cell of a table.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Plain(words) => words.clone(),
            Self::Words(words) => {
                let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
                words.join(", ")
            }
            Self::Group(path) => format!("[`{path}`](#{})", path.replace(['.', '*', '[', ']'], "")),
        }
    }
}

fn in_a(container: &str, member: Kind) -> Kind {
    match member {
        Kind::Group(path) => Kind::Group(path),
        member => Kind::Plain(format!("{container} {}", member.told())),
    }
}

/// The words of an enumeration, or the one of a constant.
fn words(node: &Value) -> Option<Vec<(String, String)>> {
    let word = |value: &Value| Some((value.as_str()?.to_owned(), about(node)));
    match (&node["enum"], &node["const"]) {
        (Value::Array(list), _) => Some(list.iter().filter_map(word).collect()),
        (_, Value::String(_)) => word(&node["const"]).map(|word| vec![word]),
        _ => None,
    }
}

/// What a plain value is. Quantities are known by the patterns that editors check them with.
fn plain(node: &Value) -> String {
    let pattern = node["pattern"].as_str().unwrap_or_default();
    let is = |name: &str| {
        node["type"] == name || node["type"].as_array().is_some_and(|t| t.contains(&name.into()))
    };
    let kind = match pattern {
        _ if pattern.contains("(ms|s|m|h)") => "duration",
        _ if pattern.contains("KiB") => "size",
        _ if pattern.contains("/(") => "rate",
        _ if pattern.contains('%') => "share",
        _ if is("integer") => "number",
        _ if is("number") => "decimal number",
        _ if is("boolean") => "true or false",
        _ if is("string") => "text",
        _ => panic!("no word for {node}"),
    };
    kind.to_owned()
}

fn about(node: &Value) -> String {
    node["description"].as_str().unwrap_or_default().replace('\n', " ")
}

impl About {
    /// Takes the last sentence off.
    fn of(text: &str) -> Self {
        let sentence =
            ["Default ", "Default: ", "Required"].iter().filter_map(|begin| text.rfind(begin)).max();
        let Some(at) = sentence else {
            return Self { text: text.to_owned(), default: Default::Missing };
        };
        let (before, last) = (text[..at].trim().to_owned(), text[at..].trim_end_matches('.'));
        let default = if let Some(words) = last.strip_prefix("Default: ") {
            Default::Told(words.to_owned())
        } else if let Some(written) = last.strip_prefix("Default `") {
            let (value, words) = written.split_once('`').expect("it is quoted");
            Default::Written { value: value.into(), words: words.trim_start_matches(": ").into() }
        } else {
            let words = last.trim_start_matches("Required").trim_start_matches([':', ',']).trim();
            Default::Required(words.to_owned())
        };
        Self { text: before, default }
    }
}
