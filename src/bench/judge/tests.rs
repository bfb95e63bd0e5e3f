use super::*;

const HELLO: &str = r#"data: {"choices":[{"delta":{"content":"Hello"}}]}"#;
const STOP: &str = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const LENGTH: &str = r#"data: {"id":"c-a","choices":[{"delta":{},"finish_reason":"length"}]}"#;

fn token(index: u64) -> String {
    format!(r#"data: {{"id":"c-a","choices":[{{"delta":{{"content":"tok{index} t={} "}}}}]}}"#, 10 + index)
}

fn usage(tokens: u64) -> String {
    format!(r#"data: {{"id":"c-a","choices":[],"usage":{{"completion_tokens":{tokens}}}}}"#)
}

fn stream(events: &[&str]) -> String {
    events.iter().map(|event| format!("{event}\n\n")).collect()
}

/// The number of tokens of a body that comes in pieces of this size.
fn judge(body: &str, piece: usize) -> Result<u64, Wrong> {
    let mut judge = Judge::new("a", 3);
    for chunk in body.as_bytes().chunks(piece) {
        judge.take(Bytes::copy_from_slice(chunk))?;
    }
    judge.end()
}

fn judged(events: &[&str]) -> Result<u64, Wrong> {
    let body = stream(events);
    let whole = judge(&body, body.len().max(1));
    for piece in [1, 7, 64] {
        assert_eq!(judge(&body, piece), whole, "in pieces of {piece}");
    }
    whole
}

#[test]
fn any_endpoints_stream_is_right_that_ends() {
    let done = "data: [DONE]";
    assert_eq!(judged(&[HELLO, HELLO, STOP, done]), Ok(2));
    assert_eq!(judged(&[": heartbeat", HELLO, "event: ping", STOP, done]), Ok(1));
    assert_eq!(judged(&[HELLO, STOP]), Ok(1), "a finish reason is an end");
    assert_eq!(judged(&[HELLO, done]), Ok(1), "so is [DONE]");
    assert_eq!(judged(&[HELLO, STOP, &usage(9), done]), Ok(9), "the usage knows better");
    let reasoning =
        r#"data: {"choices":[{"delta":{"content":null,"reasoning":"Hm","reasoning_content":"Hm"}}]}"#;
    assert_eq!(judged(&[reasoning, STOP]), Ok(1));
    let completion = r#"data: {"choices":[{"text":"Hello","finish_reason":null}]}"#;
    assert_eq!(judged(&[completion, STOP, done]), Ok(1));
}

#[test]
fn what_ends_too_early_is_told() {
    let no_end = |tokens, missing| Err(Wrong::NoEnd { tokens, missing });
    assert_eq!(judged(&[]), no_end(0, "finish reason or [DONE]"));
    assert_eq!(judged(&[HELLO]), no_end(1, "finish reason or [DONE]"));
    let half = stream(&[HELLO]) + "data: {";
    assert_eq!(judge(&half, 9), no_end(1, "the end of an event"));
}

#[test]
fn what_comes_behind_the_end_is_told() {
    let behind = |what: &str| Err(Wrong::Behind(what.to_owned()));
    assert_eq!(judged(&[HELLO, STOP, HELLO]), behind("Hello"));
    assert_eq!(judged(&["data: [DONE]", "data: [DONE]"]), behind("data: [DONE]"));
    assert_eq!(judged(&["data: [DONE]", ": late"]), behind(": late"));
    assert_eq!(judge(&(stream(&[STOP, "data: [DONE]"]) + "data"), 5), behind("half an event"));
}

#[test]
fn events_that_are_none_of_an_answer_are_told() {
    let error = r#"data: {"error":{"message":"out of memory","code":500}}"#;
    assert_eq!(judged(&[HELLO, error, "data: [DONE]"]), Err(Wrong::ErrorEvent("out of memory".into())));
    for odd in ["data: {", "data: hello", "data: 7", r#"data: {"choices":7}"#, r#"data: {"choices":[]} x"#] {
        assert!(matches!(judged(&[odd]), Err(Wrong::Json(_))), "{odd}");
    }
}

#[test]
fn of_a_stamped_answer_each_token_is_accounted_for() {
    let (zero, one, two, done) = (token(0), token(1), token(2), "data: [DONE]");
    assert_eq!(judged(&[&zero, &one, &two, LENGTH, done]), Ok(3));
    assert_eq!(judged(&[&zero, &one, LENGTH, &usage(2), done]), Ok(2), "a limit of the engine's own");
    let lost = |got, due| Err(Wrong::Lost { got, due });
    assert_eq!(judged(&[&zero, &one, LENGTH, done]), lost(2, 3));
    assert_eq!(judged(&[&zero, &one, LENGTH, &usage(3), done]), lost(2, 3));
    assert_eq!(judged(&[&zero, &two, LENGTH, done]), Err(Wrong::Order { got: 2, due: 1 }));
    assert_eq!(judged(&[&zero, &zero, LENGTH, done]), Err(Wrong::Order { got: 0, due: 1 }));
    assert_eq!(judged(&[&zero, HELLO]), Err(Wrong::Content("Hello".into())));
    let no_done = Err(Wrong::NoEnd { tokens: 1, missing: "[DONE]" });
    assert_eq!(judged(&[&zero, LENGTH]), no_done, "that engine always says it");
}

#[test]
fn an_event_of_another_answer_is_crosstalk() {
    let other = token(1).replace("c-a", "c-b");
    assert_eq!(judged(&[&token(0), &other]), Err(Wrong::Crosstalk("c-b".into())));
    let finish = LENGTH.replace("c-a", "c-b");
    assert_eq!(judged(&[&token(0), &finish]), Err(Wrong::Crosstalk("c-b".into())));
}

#[test]
fn a_chunk_tells_what_it_brought() {
    let mut judge = Judge::new("a", 9);
    let body = stream(&[": heartbeat", &token(0), &token(1), &usage(2)]);
    let brought = judge.take(body.into()).unwrap();
    assert_eq!(brought, Brought { events: 3, texts: 2, sent: vec![10, 11] });
    assert_eq!(judge.tokens(), 2);
}

#[test]
fn an_event_without_end_is_given_up() {
    let mut judge = Judge::new("a", 9);
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    let first_wrong = (0..64).find_map(|_| judge.take(chunk.clone()).err());
    assert_eq!(first_wrong, Some(Wrong::TooLarge("an event", EVENT_MAX)));
}
