//! Changing single places of a JSON body and nothing else.
//!
//! Places come from [`request::peek`](super::request::peek) of the same body. The result is the
//! body with those bytes exchanged: it is not parsed, ordered or spelled anew, and however many changes
//! there are, it is copied once.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

use super::request::Peek;

/// Changes to one body, none of which touches another.
#[derive(Debug, Default)]
pub struct Edits {
    /// Start of what is replaced -> its end, and what stands there then.
    replaced: BTreeMap<usize, (usize, String)>,
    /// Start of an object or a `null` -> its end, and the members that it gets.
    added: BTreeMap<usize, (usize, Map<String, Value>)>,
}

impl Edits {
    /// Puts `value` in the place of the one at `span`.
    pub fn replace(&mut self, span: Range<usize>, value: &Value) {
        self.replaced.insert(span.start, (span.end, value.to_string()));
    }

    /// Adds a member to the object at `object`, as its first; with more than one name, the objects between
    /// as well. A `null` becomes an object. What is there already must not be named.
    pub fn add(&mut self, object: Range<usize>, names: &[impl AsRef<str>], value: Value) {
        let Some((last, parents)) = names.split_last() else { return self.replace(object, &value) };
        let entry = self.added.entry(object.start).or_insert_with(|| (object.end, Map::new()));
        let mut members = &mut entry.1;
        for name in parents {
            let inner = members.entry(name.as_ref()).or_insert_with(|| Map::new().into());
            let Value::Object(inner) = inner else { return };
            members = inner;
        }
        members.insert(last.as_ref().to_owned(), value);
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.added.is_empty()
    }

    /// The changed body.
    ///
    /// # Panics
    /// Where a place does not lie in the body.
    pub fn apply(self, body: &Bytes) -> Bytes {
        let mut pieces = self.replaced;
        for (start, (end, members)) in self.added {
            let (at, piece) = added(body, start..end, members);
            pieces.insert(at.start, (at.end, piece));
        }
        let grown: usize = pieces.values().map(|(_, text)| text.len()).sum();
        let mut out = BytesMut::with_capacity(body.len() + grown);
        let mut from = 0;
        for (start, (end, text)) in pieces {
            out.extend_from_slice(&body[from..start]);
            out.extend_from_slice(text.as_bytes());
            from = end;
        }
        out.extend_from_slice(&body[from..]);
        out.freeze()
    }
}

/// What is written for new members of an object or a `null`, and over which bytes.
fn added(body: &[u8], object: Range<usize>, members: Map<String, Value>) -> (Range<usize>, String) {
    let text = Value::Object(members).to_string();
    if body[object.start] != b'{' {
        return (object, text);
    }
    let inside = object.start + 1;
    let is_empty = body[inside..object.end].trim_ascii_start().starts_with(b"}");
    let comma = if is_empty { "" } else { "," };
    (inside..inside, format!("{}{comma}", &text[1..text.len() - 1]))
}

/// Sets `stream_options.include_usage` to true. Whether it was not.
pub fn ask_for_usage(edits: &mut Edits, peek: &Peek) -> bool {
    if peek.include_usage == Some(true) {
        return false;
    }
    match (&peek.stream_options, &peek.include_usage_span) {
        (_, Some(value)) => edits.replace(value.clone(), &true.into()),
        (Some(options), None) => edits.add(options.clone(), &["include_usage"], true.into()),
        (None, None) => edits.add(peek.object.clone(), &["stream_options", "include_usage"], true.into()),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::Pointers;
    use super::super::request::peek;
    use super::*;

    fn edited(body: &'static str, edit: impl FnOnce(&mut Edits)) -> String {
        let mut edits = Edits::default();
        edit(&mut edits);
        let after = edits.apply(&Bytes::from_static(body.as_bytes()));
        String::from_utf8(after.to_vec()).expect("UTF-8")
    }

    #[test]
    fn only_the_model_differs() {
        let before = "{ \"seed\": 9007199254740993, \"mod\\u0065l\" : \"m\\u00e9\", \"n\": 1e2 }";
        let model = peek(before.as_bytes(), &Pointers::default()).expect("valid").model.expect("a model");
        let after = edited(before, |edits| edits.replace(model.span, &"a\"b".into()));
        assert_eq!(after, "{ \"seed\": 9007199254740993, \"mod\\u0065l\" : \"a\\\"b\", \"n\": 1e2 }");
    }

    #[test]
    fn members_go_in_front() {
        let one = |body, object| edited(body, |edits| edits.add(object, &["a"], 1.into()));
        assert_eq!(one(" { }", 1..4), " {\"a\":1 }");
        assert_eq!(one("{\n \"b\": 2}", 0..10), "{\"a\":1,\n \"b\": 2}");
        assert_eq!(one("{\"b\":null}", 5..9), "{\"b\":{\"a\":1}}");
    }

    #[test]
    fn many_changes_are_made_at_once() {
        let body = r#"{"n": null, "m": "x", "o": {}, "z": null}"#;
        let after = edited(body, |edits| {
            edits.add(0..body.len(), &["s", "a"], "1".into());
            edits.add(0..body.len(), &["s", "b", "c"], "2".into());
            edits.add(27..29, &["p"], "3".into());
            edits.replace(17..20, &"y".into());
            edits.add(6..10, &["q"], "4".into());
            edits.add(36..40, &[""; 0], "5".into());
        });
        let want = r#"{"s":{"a":"1","b":{"c":"2"}},"n": {"q":"4"}, "m": "y", "o": {"p":"3"}, "z": "5"}"#;
        assert_eq!(after, want);
        assert!(Edits::default().is_empty());
    }

    #[test]
    fn usage_is_asked_for_in_every_form() {
        for (before, after) in [
            (r#"{"n":1}"#, Some(r#"{"stream_options":{"include_usage":true},"n":1}"#)),
            (r#"{"stream_options":null}"#, Some(r#"{"stream_options":{"include_usage":true}}"#)),
            (r#"{"stream_options":{}}"#, Some(r#"{"stream_options":{"include_usage":true}}"#)),
            (r#"{"stream_options":{"x":1}}"#, Some(r#"{"stream_options":{"include_usage":true,"x":1}}"#)),
            (
                r#"{"stream_options":{"include_usage" : false}}"#,
                Some(r#"{"stream_options":{"include_usage" : true}}"#),
            ),
            (r#"{"stream_options":{"include_usage":true}}"#, None),
        ] {
            let peek = peek(before.as_bytes(), &Pointers::default()).expect("valid");
            let mut edits = Edits::default();
            let asked = ask_for_usage(&mut edits, &peek);
            let told = asked.then(|| edited(before, |fresh| *fresh = edits));
            assert_eq!(told.as_deref(), after, "{before}");
        }
    }
}
