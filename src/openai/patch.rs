//! Changing single places of a JSON body and nothing else.
//!
//! Places come from [`request::peek`](super::request::peek) of the same body. The result is the
//! body with those bytes exchanged: it is not parsed, ordered or spelled anew, and however many changes
//! there are, it is copied once.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

use super::request::{Flag, Peek};

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

/// What of an answer's usage the client did not ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unasked {
    /// The frame at its end.
    pub frame: bool,
    /// The figures on each event.
    pub running: bool,
}

/// Has the engine told to send usage at the end of its stream, and with `running` on each event. vLLM and SGLang send
/// the latter only together with the former, so a client that asked for it alone did not ask for anything.
pub fn ask_for_usage(edits: &mut Edits, peek: &Peek, running: bool) -> Unasked {
    let (frame, continuous) = (&peek.include_usage, &peek.continuous_usage);
    switch_on(edits, peek, "include_usage", frame);
    if running {
        switch_on(edits, peek, "continuous_usage_stats", continuous);
    }
    let is_running = running || continuous.is_on;
    Unasked { frame: !frame.is_on, running: is_running && !(frame.is_on && continuous.is_on) }
}

/// Sets a switch of `stream_options`.
fn switch_on(edits: &mut Edits, peek: &Peek, name: &str, flag: &Flag) {
    match (&peek.stream_options, &flag.span) {
        _ if flag.is_on => {}
        (_, Some(value)) => edits.replace(value.clone(), &true.into()),
        (Some(options), None) => edits.add(options.clone(), &[name], true.into()),
        (None, None) => edits.add(peek.object.clone(), &["stream_options", name], true.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Wanted;
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
        let model = peek(before.as_bytes(), &Wanted::default()).expect("valid").model.expect("a model");
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

    fn asked(before: &'static str, running: bool) -> (String, Unasked) {
        let peek = peek(before.as_bytes(), &Wanted::default()).expect("valid");
        let mut edits = Edits::default();
        let unasked = ask_for_usage(&mut edits, &peek, running);
        (edited(before, |fresh| *fresh = edits), unasked)
    }

    #[test]
    fn usage_is_asked_for_in_every_form() {
        for (before, after) in [
            (r#"{"n":1}"#, r#"{"stream_options":{"include_usage":true},"n":1}"#),
            (r#"{"stream_options":null}"#, r#"{"stream_options":{"include_usage":true}}"#),
            (r#"{"stream_options":{}}"#, r#"{"stream_options":{"include_usage":true}}"#),
            (r#"{"stream_options":{"x":1}}"#, r#"{"stream_options":{"include_usage":true,"x":1}}"#),
            (
                r#"{"stream_options":{"include_usage" : false}}"#,
                r#"{"stream_options":{"include_usage" : true}}"#,
            ),
        ] {
            assert_eq!(asked(before, false), (after.into(), Unasked { frame: true, running: false }));
        }
        let has_asked = r#"{"stream_options":{"include_usage":true}}"#;
        assert_eq!(asked(has_asked, false), (has_asked.into(), Unasked::default()));
    }

    #[test]
    fn running_usage_is_asked_for_with_the_frame_and_cut_for_who_has_not_both() {
        let both = |frame| Unasked { frame, running: true };
        for (before, after, unasked) in [
            (
                r#"{"n":1}"#,
                r#"{"stream_options":{"continuous_usage_stats":true,"include_usage":true},"n":1}"#,
                both(true),
            ),
            (
                r#"{"stream_options":{"include_usage":true}}"#,
                r#"{"stream_options":{"continuous_usage_stats":true,"include_usage":true}}"#,
                both(false),
            ),
            (
                r#"{"stream_options":{"continuous_usage_stats":true}}"#,
                r#"{"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
                both(true),
            ),
            (
                r#"{"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
                r#"{"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
                Unasked::default(),
            ),
        ] {
            assert_eq!(asked(before, true), (after.into(), unasked), "{before}");
        }
        let alone = asked(r#"{"stream_options":{"continuous_usage_stats":true}}"#, false);
        assert_eq!(alone.1, both(true), "vLLM would have sent it nothing");
    }
}
