//! What is noted of events, and how many tokens each is.

use super::*;

fn tell(observer: &mut Observer, data: &str) -> Noted {
    let raw = format!("data: {data}\n");
    observer.event(&Event { kind: EventKind::Data, raw: Some(raw.as_bytes()), single: false, ends: None })
}

fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

const FIRST: Noted = Noted { first_token: true, usage: UsagePlace::Nowhere, keep_alive: false };

#[test]
fn the_first_token_is_text_reasoning_or_a_tool_call() {
    let tool = r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#;
    for token in [r#"{"content":"x"}"#, r#"{"reasoning":"x"}"#, r#"{"reasoning_content":"x"}"#, tool] {
        let mut observer = Observer::default();
        for empty in [r#"{"role":"assistant","content":""}"#, r#"{"content":null}"#, r#"{"tool_calls":[]}"#] {
            assert_eq!(tell(&mut observer, &delta(empty)), Noted::default(), "{empty}");
        }
        assert_eq!(tell(&mut observer, &delta(token)), FIRST, "{token}");
        assert_eq!(tell(&mut observer, &delta(token)), Noted::default(), "{token}");
    }
    assert_eq!(tell(&mut Observer::default(), r#"{"choices":[{"text":"x"}]}"#), FIRST);
}

#[test]
fn usage_comes_on_a_frame_of_its_own() {
    let mut observer = Observer::default();
    tell(&mut observer, &delta(r#"{"content":"x"}"#));
    tell(&mut observer, r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#);
    let noted = tell(
        &mut observer,
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#,
    );
    assert_eq!(noted, Noted { usage: UsagePlace::Frame, ..Noted::default() });
    tell(&mut observer, "[DONE]");
    let usage = Usage { prompt: Some(7), completion: Some(3), total: Some(10), ..Usage::default() };
    assert_eq!(observer.usage(), Some((usage, Source::Reported)));
    assert_eq!(observer.seen().finish_reason.as_deref(), Some("stop"));
    assert_eq!((observer.done(), observer.data_events()), (true, 4));
}

#[test]
fn usage_on_the_last_chunk_is_final_and_is_not_a_frame_to_cut() {
    let mut observer = Observer::default();
    let last =
        r#"{"choices":[{"delta":{"content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":7}}"#;
    assert_eq!(tell(&mut observer, last), Noted { usage: UsagePlace::Beside, ..Noted::default() });
    let usage = Usage { prompt: Some(7), ..Usage::default() };
    assert_eq!(observer.usage(), Some((usage, Source::Reported)));
}

#[test]
fn running_usage_is_overwritten_and_marked() {
    let mut observer = Observer::default();
    for tokens in 1..=3 {
        let frame = format!(
            r#"{{"choices":[{{"delta":{{"content":"x"}}}}],"usage":{{"completion_tokens":{tokens}}}}}"#
        );
        tell(&mut observer, &frame);
    }
    let usage = Usage { completion: Some(3), ..Usage::default() };
    assert_eq!(observer.usage(), Some((usage, Source::Running)));
}

#[test]
fn without_usage_tokens_are_estimated() {
    let mut observer = Observer::default();
    assert_eq!(observer.usage(), None);
    tell(&mut observer, &delta(r#"{"role":"assistant"}"#));
    tell(&mut observer, &delta(r#"{"content":"x"}"#));
    tell(&mut observer, &delta(r#"{"content":"\"usage\": {\"prompt_tokens\": 9}"}"#));
    let usage = Usage { completion: Some(2), ..Usage::default() };
    assert_eq!(observer.usage(), Some((usage, Source::Estimated)));
}

#[test]
fn an_error_then_done_is_an_error() {
    let mut observer = Observer::default();
    let noted = tell(&mut observer, r#"{"error":{"message":"EngineCore died","type":"x","code":500}}"#);
    tell(&mut observer, "[DONE]");
    let code = observer.seen().error.as_ref().and_then(|failure| failure.code.as_deref());
    assert_eq!((noted, code, observer.done()), (Noted::default(), Some("500"), true));
}

#[test]
fn odd_events_are_just_not_observed() {
    let mut observer = Observer::default();
    for odd in ["", "not JSON", "[1]", r#"{"choices":"x"}"#, r#"{"choices":[{"delta":3}]}"#] {
        assert_eq!(tell(&mut observer, odd), Noted::default(), "{odd}");
    }
    let bad = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n";
    assert_eq!(
        observer.event(&Event { kind: EventKind::Data, raw: Some(bad), single: false, ends: None }),
        FIRST
    );
    assert_eq!(
        observer.event(&Event { kind: EventKind::Comment, raw: Some(b": x\n"), single: false, ends: None }),
        Noted::default()
    );
    assert_eq!(observer.data_events(), 6);
}

#[test]
fn an_event_too_large_to_see_counts_as_a_token() {
    assert_eq!(
        Observer::default().event(&Event { kind: EventKind::Data, raw: None, single: false, ends: None }),
        FIRST
    );
}

/// A stream of a dialect, by the data of its events: how many tokens it is charged for.
fn charged(dialect: Dialect, events: &[&str]) -> Option<u64> {
    let mut observer = Observer::new(dialect);
    for data in events {
        tell(&mut observer, data);
    }
    observer.usage().and_then(|(usage, source)| usage.completion.filter(|_| source == Source::Estimated))
}

/// What a dialect's answer begins with, and then each event that must count as one token when it comes first and when it
/// comes again, though nothing in it is called its text.
fn each_counts(dialect: Dialect, beginning: &[&str], events: &[&str]) {
    assert_eq!(charged(dialect, beginning), None, "{beginning:?}");
    for event in events {
        let stream: Vec<&str> = beginning.iter().copied().chain([*event; 3]).collect();
        assert_eq!(charged(dialect, &stream), Some(3), "{event}");
    }
}

#[test]
fn each_event_of_chat_that_says_something_is_charged() {
    let delta = |members: &str| delta(&format!(r#"{{"content":"",{members}}}"#));
    let beginnings = [
        r#"{"choices":[],"prompt_filter_results":[]}"#.to_owned(),
        delta(r#""role":"assistant","reasoning_content":null,"tool_calls":[],"refusal":null"#),
    ];
    let events = [
        r#""reasoning":"x""#,
        r#""reasoning_content":"x""#,
        r#""reasoning_details":[{"type":"reasoning.text","text":"x"}]"#,
        r#""thinking":"x""#,
        r#""tool_calls":[{"index":0,"function":{"arguments":"{"}}]"#,
        r#""function_call":{"arguments":"{"}"#,
        r#""refusal":"x""#,
        r#""audio":{"data":"AAAA"}"#,
    ]
    .map(delta);
    each_counts(
        Dialect::Chat,
        &beginnings.each_ref().map(|one| &**one),
        &events.each_ref().map(|one| &**one),
    );
}

#[test]
fn each_event_of_completions_that_says_something_is_charged() {
    let events = [
        r#"{"choices":[{"text":" x","finish_reason":null}]}"#,
        r#"{"choices":[{"text":"","token_ids":[7],"finish_reason":null}]}"#,
    ];
    each_counts(Dialect::Completions, &[r#"{"choices":[{"text":"","token_ids":null}]}"#], &events);
}

#[test]
fn each_event_of_responses_that_says_something_is_charged() {
    let beginning = [
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"message"}}"#,
        r#"{"type":"response.output_text.delta","delta":""}"#,
    ];
    let events = [
        r#"{"type":"response.output_text.delta","delta":"x"}"#,
        r#"{"type":"response.refusal.delta","delta":"x"}"#,
        r#"{"type":"response.reasoning_text.delta","delta":"x"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","delta":"x"}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}"#,
    ];
    each_counts(Dialect::Responses, &beginning, &events);
}

#[test]
fn each_event_of_messages_that_says_something_is_charged() {
    let beginning = [
        r#"{"type":"message_start","message":{"content":[]}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ];
    let events = [
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"AAAA"}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"AAAA"}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"text","text":"x"}}"#,
    ];
    each_counts(Dialect::Messages, &beginning, &events);
}

/// llama.cpp's `/completion`, SGLang's `/generate`, transcriptions.
#[test]
fn each_event_of_another_endpoint_that_says_something_is_charged() {
    let events = [
        r#"{"content":"x","stop":false}"#,
        r#"{"text":"x","meta_info":{"id":"a"}}"#,
        r#"{"type":"transcript.text.delta","delta":"x"}"#,
    ];
    each_counts(Dialect::Other, &[r#"{"content":"","stop":false}"#], &events);
}

#[test]
fn figures_without_an_answer_are_completed_by_what_passed() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":7}}"#;
    let mut observer = Observer::default();
    tell(&mut observer, &delta(r#"{"content":"x"}"#));
    tell(&mut observer, usage);
    let figures = Usage { prompt: Some(7), completion: Some(1), ..Usage::default() };
    assert_eq!(observer.usage(), Some((figures, Source::Estimated)));
}

/// Of several choices each that has begun must have said why it stopped, whichever of their events are parsed.
#[test]
fn an_answer_is_over_when_each_of_its_choices_is() {
    let frame = |index: u8, rest: &str| format!(r#"{{"choices":[{{"index":{index},{rest}}}]}}"#);
    let word = r#""delta":{"content":"x"},"finish_reason":null"#;
    let stop = r#""delta":{},"finish_reason":"stop""#;
    let mut observer = Observer::new(Dialect::Chat);
    observer.look_for_choices();
    for index in [0, 0, 1, 1, 2] {
        tell(&mut observer, &frame(index, word));
    }
    assert_eq!(observer.tokens(), 5, "each event with text is one");
    for (index, is_over) in [(1, false), (0, false), (1, false), (2, true)] {
        tell(&mut observer, &frame(index, stop));
        assert_eq!(observer.is_over(), is_over, "{index} has ended");
    }
    // The index of a tool call is none of a choice, wherever it stands.
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":7,"function":{}}]},"index":0}]}"#;
    let mut observer = Observer::new(Dialect::Chat);
    observer.look_for_choices();
    for _ in 0..3 {
        tell(&mut observer, call);
    }
    tell(&mut observer, &frame(0, stop));
    assert!(observer.is_over());
    // One end marker is for all.
    let mut observer = Observer::new(Dialect::Completions);
    observer.look_for_choices();
    for index in 0..2 {
        tell(&mut observer, &frame(index, r#""text":"x""#));
    }
    assert!(!observer.is_over());
    tell(&mut observer, "[DONE]");
    assert!(observer.is_over());
}
