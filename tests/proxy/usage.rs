//! `include_usage`: the usage frame is asked for, and cut out again where the client did not ask.

use crate::support;
use crate::support::wire::{CHAT_PATH, DONE, FINISH, Request, USAGE, event};
use crate::support::{Call, Client, End, Gateway, Settings, Upstream, checks, one_engine};
use serde_json::{Value, json};

fn asking(settings: Settings) -> Settings {
    settings.set("routes.0.include_usage", true).set("routes.1.include_usage", true)
}

fn body(value: &Value) -> Request {
    Request::post(CHAT_PATH, value.to_string())
}

/// Sends `asked`, answers with a stream that ends in a usage frame, and gives what the engine was asked
/// and what the client got.
async fn exchange(gateway: &Gateway, upstream: &mut Upstream, asked: &Request) -> (Vec<u8>, String) {
    let mut client: Client = gateway.send(asked).await;
    let mut call: Call = upstream.call().await;
    let seen = call.request.body.clone();
    call.open().await;
    call.chunk([&event("a"), FINISH].concat()).await;
    call.chunk(USAGE).await;
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    (seen, String::from_utf8_lossy(client.body()).into_owned())
}

#[tokio::test]
async fn a_client_that_did_not_ask_gets_no_usage_frame() {
    let (gateway, mut upstream) = one_engine(asking).await;
    let plain = "{\"model\":\"m\", \"stream\":true,  \"messages\":[]}";
    let (seen, got) = exchange(&gateway, &mut upstream, &Request::post(CHAT_PATH, plain)).await;
    let patched =
        "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\", \"stream\":true,  \"messages\":[]}";
    assert_eq!(String::from_utf8_lossy(&seen), patched);
    assert_eq!(got, [&event("a"), FINISH, DONE].concat());
    checks::usage(&gateway).await;
}

#[tokio::test]
async fn a_client_that_asked_gets_its_frame_and_its_body_is_untouched() {
    let (gateway, mut upstream) = one_engine(asking).await;
    let request = Request::chat();
    let (seen, got) = exchange(&gateway, &mut upstream, &request).await;
    assert_eq!(seen, request.framed_body());
    assert_eq!(got, [&event("a"), FINISH, USAGE, DONE].concat());
    checks::usage(&gateway).await;
}

#[tokio::test]
async fn a_client_that_refused_the_frame_is_asked_for_and_spared_it() {
    let (gateway, mut upstream) = one_engine(asking).await;
    let refusing = json!({ "model": "m", "stream": true, "stream_options": { "include_usage": false } });
    let (seen, got) = exchange(&gateway, &mut upstream, &body(&refusing)).await;
    let seen: Value = serde_json::from_slice(&seen).expect("JSON");
    assert_eq!(seen["stream_options"]["include_usage"], true);
    assert_eq!(got, [&event("a"), FINISH, DONE].concat());
}

/// Only streams of the two endpoints that know the option are touched.
#[tokio::test]
async fn whole_answers_and_other_endpoints_are_not_asked() {
    let (gateway, mut upstream) = one_engine(asking).await;
    for request in [
        Request::unary(),
        Request::post("/v1/embeddings", "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}"),
    ] {
        let recorded = support::relayed(&gateway, &mut upstream, &request).await;
        assert_eq!(recorded.body, request.framed_body());
    }
}

/// DeepSeek's usage rides on the last chunk: such a frame is never cut.
#[tokio::test]
async fn usage_on_a_frame_with_choices_always_passes() {
    let (gateway, mut upstream) = one_engine(asking).await;
    let last = "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
                \"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}\n\n";
    let plain = json!({ "model": "m", "stream": true, "messages": [] });
    let mut client = gateway.send(&body(&plain)).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk([&event("a"), last, DONE].concat()).await;
    call.finish().await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("a"), last, DONE].concat().as_bytes());
    checks::usage(&gateway).await;
}

/// The alias and the option are both put in place, and nothing else moves.
#[tokio::test]
async fn an_alias_and_the_option_go_into_one_body() {
    let (gateway, mut upstream) =
        one_engine(|settings| asking(settings).set("routes.0.aliases", json!({ "m": "qwen\"3" }))).await;
    let plain = "{ \"stream\":true, \"seed\":9007199254740993, \"model\":\"m\" }";
    let (seen, _) = exchange(&gateway, &mut upstream, &Request::post(CHAT_PATH, plain)).await;
    let patched = "{\"stream_options\":{\"include_usage\":true}, \"stream\":true, \"seed\":9007199254740993, \
                   \"model\":\"qwen\\\"3\" }";
    assert_eq!(String::from_utf8_lossy(&seen), patched);
    assert_eq!(gateway.only_access().await["model"], "m");
}

crate::over_h2! {
    a_client_that_did_not_ask_gets_no_usage_frame,
    a_client_that_asked_gets_its_frame_and_its_body_is_untouched,
    a_client_that_refused_the_frame_is_asked_for_and_spared_it,
    whole_answers_and_other_endpoints_are_not_asked,
    usage_on_a_frame_with_choices_always_passes,
    an_alias_and_the_option_go_into_one_body,
}
