//! What the events of a stream look like.

use serde_json::Value;

use super::super::Settings;
use super::super::plan::{Plan, Wishes};
use super::*;

fn events(form: Form, tokens: u32, finish: Finish, plan: &Plan) -> Events {
    let text = Text {
        form,
        request_id: "r1".to_owned(),
        model: "m\"1".to_owned(),
        created: 7,
        prompt_tokens: 3,
        tokens,
        finish,
    };
    Events::new(text, plan, false, false)
}

fn plan(event_bytes: usize) -> Plan {
    let wishes = Wishes { event_bytes: Some(event_bytes), ..Wishes::default() };
    Plan::new(&Settings::default(), &[], 1, &wishes)
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

fn data(event: &str) -> Value {
    serde_json::from_str(event.strip_prefix("data: ").unwrap().trim_end()).unwrap()
}

#[test]
fn a_content_event_has_the_wanted_size() {
    for size in [230, 1_000, 300_000] {
        let mut events = events(Form::Chat, 2, Finish::Stop, &plan(size));
        let event = written(|out| events.token(out, 1, None));
        assert_eq!(event.len(), size);
        let content = data(&event)["choices"][0]["delta"]["content"].as_str().unwrap().to_owned();
        assert!(content.starts_with("tok1 x"), "{content}");
    }
}

#[test]
fn a_small_event_is_as_small_as_its_json() {
    let mut events = events(Form::Completion, 2, Finish::Stop, &plan(0));
    let event = written(|out| events.token(out, 0, Some(5)));
    assert_eq!(
        event,
        "data: {\"id\":\"cmpl-r1\",\"object\":\"text_completion\",\"created\":7,\"model\":\"m\\\"1\",\
         \"choices\":[{\"index\":0,\"text\":\"tok0 t=5 \",\"logprobs\":null,\"finish_reason\":null}]}\n\n"
    );
}

#[test]
fn the_arguments_of_a_tool_call_come_in_pieces() {
    let mut events = events(Form::ToolCall("weather".to_owned()), 3, Finish::ToolCalls, &plan(0));
    let opening = written(|out| events.opening(out));
    let name = data(opening.split_inclusive("\n\n").nth(1).unwrap());
    let function = &name["choices"][0]["delta"]["tool_calls"][0]["function"];
    assert_eq!(*function, json!({"name": "weather"}));
    let mut arguments = String::new();
    for n in 0..3 {
        let event = data(&written(|out| events.token(out, n, None)));
        let delta = &event["choices"][0]["delta"]["tool_calls"][0];
        arguments += delta["function"]["arguments"].as_str().unwrap();
    }
    assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), json!({"text": "tok0 tok1 tok2 "}));
}

#[test]
fn the_whole_answer_has_the_content_of_the_events() {
    let mut events = events(Form::Chat, 12, Finish::Stop, &plan(240));
    let mut streamed = String::new();
    for n in 0..12 {
        let event = data(&written(|out| events.token(out, n, None)));
        streamed += event["choices"][0]["delta"]["content"].as_str().unwrap();
    }
    assert_eq!(events.content(None), streamed);
}

#[test]
fn usage_runs_along_when_asked_for() {
    let mut events = events(Form::Chat, 2, Finish::Length, &plan(0));
    events.running_usage = true;
    let usage = |event: &str| data(event)["usage"]["completion_tokens"].as_u64();
    let role = written(|out| events.opening(out));
    let first = written(|out| events.token(out, 0, None));
    let last = written(|out| events.finish(out));
    assert_eq!([usage(&role), usage(&first), usage(&last)], [Some(0), Some(1), Some(2)]);
    assert_eq!(data(&last)["choices"][0]["finish_reason"], "length");
    let frame = data(&written(|out| events.usage(out)));
    assert_eq!(frame["choices"], json!([]));
    assert_eq!(frame["usage"], json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}));
}

#[test]
fn each_event_is_one_chunk() {
    let mut events = events(Form::Chat, 1, Finish::Stop, &plan(256));
    events.chunked = true;
    let event = written(|out| events.token(out, 0, None));
    assert!(event.starts_with("100\r\ndata: ") && event.ends_with("\n\n\r\n"), "{event}");
    assert_eq!(written(|out| events.end(out)), "0\r\n\r\n");
}

#[test]
fn crlf_ends_every_line() {
    let mut plan = plan(0);
    plan.script.crlf = true;
    let events = events(Form::Chat, 1, Finish::Stop, &plan);
    assert_eq!(written(|out| events.done(out)), "data: [DONE]\r\n\r\n");
    assert_eq!(written(|out| events.comment(out)), ": keep-alive\r\n\r\n");
}
