//! The request peek, the patch and the observer, for arbitrary JSON and arbitrary bytes.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};
use streamgate::openai::patch::{self, Edits};
use streamgate::openai::request::{self, Invalid, Peek};
use streamgate::openai::{Dialect, Found, Observer, Pointer, Pointers, Wanted, observe_unary};
use streamgate::sse::{Ends, Event, EventKind};

fn peek(body: &[u8]) -> Result<Peek, Invalid> {
    request::peek(body, &Wanted::default())
}

/// Any JSON value, a few levels deep.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name(), inner), 0..4).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    const KNOWN: [&str; 9] = [
        "model",
        "stream",
        "stream_options",
        "include_usage",
        "max_tokens",
        "n",
        "user",
        "session_id",
        "usage",
    ];
    prop_oneof![(0..KNOWN.len()).prop_map(|i| KNOWN[i].to_owned()), ".{0,6}"]
}

/// A JSON object as text, with white space or without.
fn body() -> impl Strategy<Value = (Map<String, Value>, String)> {
    let fields =
        (vec((name(), value()), 0..6), proptest::option::of(any::<bool>()), proptest::option::of(".{0,6}"));
    (fields, any::<bool>()).prop_map(|((members, stream, model), pretty)| {
        let mut object = Map::from_iter(members);
        object.extend(stream.map(|stream| ("stream".to_owned(), Value::from(stream))));
        object.extend(model.map(|model| ("model".to_owned(), Value::from(model))));
        let text =
            if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
        (object, text.expect("JSON"))
    })
}

/// Whether the fields that are acted on have types we accept.
fn acceptable(object: &Map<String, Value>) -> bool {
    let whole = |value: &Value| {
        value.is_null()
            || value.as_f64().is_some_and(|x| x < 0.0 || (x.fract() == 0.0 && x <= 9e15) || value.is_u64())
    };
    let is = |name: &str, test: &dyn Fn(&Value) -> bool| object.get(name).is_none_or(test);
    is("model", &|value| value.is_string() || value.is_null())
        && is("stream", &|value| value.is_boolean() || value.is_null())
        && is("max_tokens", &whole)
        && is("n", &whole)
        && is("stream_options", &|value| match value {
            Value::Object(inner) => inner.get("include_usage").is_none_or(|x| x.is_boolean() || x.is_null()),
            other => other.is_null(),
        })
}

/// A pointer to where something is, or might be: it leads along members that are there as far as it can.
fn pointer(object: &Map<String, Value>, picks: &[usize], beyond: &[String]) -> Pointer {
    let escaped = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let mut text = String::new();
    let mut at = &Value::Object(object.clone());
    for pick in picks {
        let (name, next) = match at {
            Value::Object(members) if !members.is_empty() => {
                members.iter().nth(pick % members.len()).expect("in range")
            }
            Value::Array(list) if !list.is_empty() => {
                (&(pick % list.len()).to_string(), &list[pick % list.len()])
            }
            _ => break,
        };
        text.push_str(&escaped(name));
        at = next;
    }
    let beyond = beyond.iter().map(|name| escaped(name));
    text.extend(beyond);
    Pointer::parse(if text.is_empty() { "/x" } else { &text }).expect("a pointer")
}

/// The naive twin of finding and adding: a tree is walked, and grown where it can be. `None` where it
/// cannot.
fn grown(at: &mut Value, names: &[String], new: &str) -> Option<()> {
    if at.is_null() && !names.is_empty() {
        *at = Value::Object(Map::new());
    }
    match (names, at) {
        ([], at) if at.is_null() => *at = new.into(),
        ([], _) => return None,
        ([name, rest @ ..], Value::Object(members)) => {
            grown(members.entry(name).or_insert(Value::Null), rest, new)?;
        }
        ([name, rest @ ..], Value::Array(list)) => {
            let index: usize = name.parse().ok().filter(|index: &usize| index.to_string() == *name)?;
            grown(list.get_mut(index)?, rest, new)?;
        }
        _ => return None,
    }
    Some(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn peek_agrees_with_a_full_parse((object, text) in body()) {
        match peek(text.as_bytes()) {
            Ok(peek) => {
                prop_assert!(acceptable(&object));
                prop_assert_eq!(peek.model.as_ref().map(|model| model.value.as_str()), object.get("model").and_then(Value::as_str));
                prop_assert_eq!(peek.stream, object.get("stream").and_then(Value::as_bool));
                prop_assert_eq!(peek.user.map(|user| user.value), object.get("user").and_then(Value::as_str).map(str::to_owned));
                let usage = object.get("stream_options").and_then(|options| options.get("include_usage"));
                prop_assert_eq!(peek.include_usage.is_on, usage.and_then(Value::as_bool) == Some(true));
            }
            Err(Invalid::Type { .. }) => prop_assert!(!acceptable(&object)),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn a_patch_changes_its_span_only((_, text) in body(), new in ".{0,8}") {
        let Ok(peek) = peek(text.as_bytes()) else { return Ok(()) };
        let body = Bytes::from(text.clone());
        if let Some(model) = &peek.model {
            let mut edits = Edits::default();
            edits.replace(model.span.clone(), &Value::from(new.as_str()));
            let patched = edits.apply(&body);
            let tail = text.len() - model.span.end;
            prop_assert_eq!(&patched[..model.span.start], &body[..model.span.start]);
            prop_assert_eq!(&patched[patched.len() - tail..], &body[model.span.end..]);
            let mut want: Map<String, Value> = serde_json::from_str(&text).expect("JSON");
            want.insert("model".to_owned(), Value::from(new));
            prop_assert_eq!(serde_json::from_slice::<Value>(&patched).expect("JSON"), Value::Object(want));
        }
        let mut edits = Edits::default();
        let unasked = patch::ask_for_usage(&mut edits, &peek, true);
        prop_assert_eq!(unasked.frame, !peek.include_usage.is_on);
        let asked = self::peek(&edits.apply(&body)).expect("still valid");
        prop_assert!(asked.include_usage.is_on && asked.continuous_usage.is_on);
    }

    #[test]
    fn a_pointer_leads_where_a_full_parse_does(
        (object, text) in body(), picks in vec(0..8_usize, 0..4), beyond in vec(name(), 0..3), new in ".{0,8}",
    ) {
        let pointer = pointer(&object, &picks, &beyond);
        let mut wanted = Pointers::default();
        let number = wanted.add(pointer.clone());
        let Ok(peek) = request::peek(text.as_bytes(), &wanted.clone().into()) else { return Ok(()) };
        // Read again, since serde_json's floats do not survive the way into text and back.
        let mut tree: Value = serde_json::from_str(&text).expect("JSON");
        let spelt: String =
            pointer.names().iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        let there = tree.pointer(&spelt).filter(|value| !value.is_null()).cloned();
        match peek.places.find(text.as_bytes(), &wanted, number) {
            Found::Value(span) => {
                prop_assert_eq!(Some(serde_json::from_str::<Value>(&text[span]).expect("JSON")), there);
            }
            Found::Blocked => {
                prop_assert_eq!(there, None);
                prop_assert_eq!(grown(&mut tree, pointer.names(), &new), None);
            }
            Found::Nothing { within, names } => {
                prop_assert_eq!(there, None);
                let mut edits = Edits::default();
                edits.add(within.clone(), names, Value::from(new.as_str()));
                let body = Bytes::from(text.clone());
                let patched = edits.apply(&body);
                grown(&mut tree, pointer.names(), &new).expect("it can be added");
                prop_assert_eq!(serde_json::from_slice::<Value>(&patched).expect("JSON"), tree);
                // All other bytes stand as they stood, around one new piece.
                let is_null = &body[within.clone()] == b"null";
                let (head, tail) = if is_null { (within.start, within.end) } else { (within.start + 1, within.start + 1) };
                prop_assert_eq!(&patched[..head], &body[..head]);
                prop_assert_eq!(&patched[patched.len() - (body.len() - tail)..], &body[tail..]);
            }
        }
    }

    #[test]
    fn a_second_model_is_refused((object, text) in body()) {
        let comma = if object.is_empty() { "" } else { "," };
        let twice = format!(r#"{{"mode\u006c":"x","model":"x"{comma}{}"#, text.trim_start_matches('{'));
        prop_assert_eq!(peek(twice.as_bytes()), Err(Invalid::Duplicate { field: "model" }));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..64), cut in 0..256_usize, (_, text) in body()) {
        let cut = cut.min(text.len());
        for input in [&bytes[..], &text.as_bytes()[..cut], &[&text.as_bytes()[..cut], &bytes].concat()] {
            let _refused_or_not = peek(input).is_ok();
            observe_unary(input);
            for dialect in [Dialect::Chat, Dialect::Responses, Dialect::Messages] {
                let mut observer = Observer::new(dialect);
                for raw in [input, &[b"data: ", input].concat(), &[b"event: error\ndata: ", input].concat()] {
                    observer.event(&Event { kind: EventKind::Data, raw: Some(raw), single: false, ends: None });
                    let ends = Some(Ends { head: raw, tail: raw });
                    observer.event(&Event { kind: EventKind::Data, raw: None, single: false, ends });
                    observer.event(&Event { kind: EventKind::Other, raw: Some(raw), single: false, ends: None });
                }
                prop_assert_eq!(observer.data_events(), 6);
            }
        }
    }
}
