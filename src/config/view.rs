//! A configuration as an operator may see it: what is written in the file, without its secrets.
//!
//! It is made of the text and not of the typed settings, so that it shows what was written. A variable
//! stays `${NAME}`; what a cluster sets in heads is hidden, since a credential may be among it, and so are the digests of keys.

use serde_json::{Map, Value as Json};

use super::tree::{self, Node, Scalar, Value};

/// In place of what is hidden.
const HIDDEN: &str = "(hidden)";

/// The settings of a text that has been checked; null for one that cannot be read.
pub fn view(text: &str) -> Json {
    tree::parse(text).map_or(Json::Null, |root| json(&root, false))
}

fn json(node: &Node, in_headers: bool) -> Json {
    match &node.value {
        Value::Scalar(scalar) => shown(scalar),
        Value::List(list) => list.iter().map(|node| json(node, false)).collect(),
        Value::Map(map) => {
            let entry = |entry: &tree::Entry| {
                let value = match entry.key.as_str() {
                    "set" if in_headers => hidden(&entry.value),
                    // Of a key that can be guessed it would be the key.
                    "sha256" => HIDDEN.into(),
                    key => json(&entry.value, key == "headers"),
                };
                (entry.key.clone(), value)
            };
            Json::Object(map.entries.iter().map(entry).collect())
        }
    }
}

/// Keeps the names and hides the values.
fn hidden(node: &Node) -> Json {
    match &node.value {
        Value::Map(map) => {
            let names = map.entries.iter().map(|entry| (entry.key.clone(), HIDDEN.into()));
            Json::Object(names.collect::<Map<_, _>>())
        }
        _ => HIDDEN.into(),
    }
}

/// A scalar as it is written, but for a password in a URL.
fn shown(scalar: &Scalar) -> Json {
    match scalar {
        Scalar::Null => Json::Null,
        Scalar::Bool(value) => (*value).into(),
        Scalar::Int(value) => i64::try_from(*value).map_or_else(|_| value.to_string().into(), Json::from),
        Scalar::Float(value) => (*value).into(),
        Scalar::Text(text) => without_password(text).into(),
        Scalar::Given(given) => given.written.clone().into(),
    }
}

fn without_password(text: &str) -> String {
    match text.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{HIDDEN}@{rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_the_rest_is_shown() {
        let text = "clusters: { c: { headers: { set: { x-key: canary }, remove: [a] }, auth: { bearer_env: T },\n\
                    backends: [ { name: \"${NAME}\", url: \"http://u:canary@h:1\" } ] } }\nn: [1, true, null, 2.5]\nkeys: [{ name: a, sha256: canary }]";
        let shown = view(text);
        let cluster = &shown["clusters"]["c"];
        assert_eq!(cluster["headers"]["set"]["x-key"], HIDDEN);
        assert_eq!(cluster["headers"]["remove"][0], "a");
        assert_eq!(cluster["backends"][0]["name"], "${NAME}");
        assert_eq!(cluster["backends"][0]["url"], "http://(hidden)@h:1");
        assert_eq!(shown["keys"][0], serde_json::json!({ "name": "a", "sha256": HIDDEN }));
        assert_eq!(shown["n"], serde_json::json!([1, true, null, 2.5]));
        assert!(!shown.to_string().contains("canary"));
        assert_eq!(view("["), Json::Null);
    }
}
