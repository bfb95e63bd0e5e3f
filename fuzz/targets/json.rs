//! Request bodies: what passes is JSON to a full parser, too, says the same there, and stays so when it is changed.
use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::Value;
use streamgate::guard::{Field, Guard, Limits};
use streamgate::openai::patch::{self, Edits};
use streamgate::openai::{Dialect, Pointer, Wanted, observe_unary, prompt, request};

static WANTED: LazyLock<(Wanted, Guard)> = LazyLock::new(|| {
    let mut wanted = Wanted::default();
    let some = Some(2);
    let limits = Limits {
        max_tokens: some,
        n: some,
        best_of: some,
        prompts: some,
        logprobs: some,
        tools: some,
        schema_depth: some,
    };
    let pointer = Field::Pointer("/a/0/b".to_owned(), Pointer::parse("/a/0/b").expect("a pointer"));
    let guard = Guard::new(&limits, &[Field::Name("url".to_owned()), pointer], &mut wanted).expect("a guard");
    (wanted, guard)
});

/// Whether a member of this name, with a value, stands anywhere.
fn has(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(key, value)| (key == name && !value.is_null()) || has(value, name))
        }
        Value::Array(list) => list.iter().any(|value| has(value, name)),
        _ => false,
    }
}

/// Reads one input.
pub(crate) fn run(body: &[u8]) {
    observe_unary(body);
    let (wanted, guard) = &*WANTED;
    let Ok(peek) = request::peek(body, wanted) else { return };
    prompt(body).for_each(drop);
    let verdict = guard.check(body, &peek.places, wanted, Dialect::Chat);
    // A full parser refuses half a surrogate pair, and numbers beyond a double.
    let Ok(tree) = serde_json::from_slice::<Value>(body) else { return };
    let model =
        tree.get("model").and_then(Value::as_str).map(|model| model.chars().take(256).collect::<String>());
    assert_eq!(peek.model.as_ref().map(|model| model.value.clone()), model);
    assert_eq!(peek.stream, tree.get("stream").and_then(Value::as_bool));
    // Of members that stand twice the tree has the last.
    if has(&tree, "url") {
        assert!(verdict.is_err(), "a denied field passes");
    }
    if tree.get("n").and_then(Value::as_f64).is_some_and(|n| n > 2.0) {
        assert!(verdict.is_err(), "n passes its limit");
    }
    let mut edits = Edits::default();
    patch::ask_for_usage(&mut edits, &peek, true);
    let asked = request::peek(&edits.apply(&Bytes::copy_from_slice(body)), wanted).expect("still valid");
    assert!(asked.include_usage.is_on && asked.continuous_usage.is_on);
}
