//! What an engine without faults answers.

use std::time::Duration;

use serde_json::{Value, json};
use streamgate::sim::{Engine, Settings};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::client::{Client, End, quick, start, stats_when, within};

#[tokio::test]
async fn a_stream_has_role_tokens_finish_and_done_in_order() {
    let mut client = Client::connect(start(quick()).await).await;
    client.stream("x-request-id: r1\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 200);
    for line in [
        "content-type: text/event-stream; charset=utf-8",
        "transfer-encoding: chunked",
        "x-request-id: r1",
        "x-sim-engine: sim",
    ] {
        assert!(answer.head.lines().any(|it| it == line), "{line} in {}", answer.head);
    }
    let events = answer.events();
    let deltas: Vec<&Value> = events[..7].iter().map(|event| &event["choices"][0]["delta"]).collect();
    let token = |n: u32| json!({"content": format!("tok{n} ")});
    let role = json!({"role": "assistant", "content": ""});
    assert_eq!(deltas, [&role, &token(0), &token(1), &token(2), &token(3), &token(4), &json!({})]);
    assert_eq!(
        (&events[6]["choices"][0]["finish_reason"], &events[6]["id"]),
        (&json!("stop"), &json!("chatcmpl-r1"))
    );
    assert_eq!(events[7..], [json!("[DONE]")]);
}

#[tokio::test]
async fn the_usage_event_has_no_choice_and_comes_before_done() {
    let mut client = Client::connect(start(quick()).await).await;
    let body = r#"{"prompt":"hi","stream":true,"max_tokens":2,
        "stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#;
    client.post("/v1/completions", "", body).await;
    let events = client.answer().await.events();
    let completion: Vec<&Value> = events.iter().map(|event| &event["usage"]["completion_tokens"]).collect();
    assert_eq!(completion, [&json!(1), &json!(2), &json!(2), &json!(2), &Value::Null]);
    assert_eq!(events[2]["choices"][0]["finish_reason"], "length");
    assert_eq!((&events[3]["choices"], &events[4]), (&json!([]), &json!("[DONE]")));
}

#[tokio::test]
async fn a_tool_call_streams_its_arguments() {
    let mut client = Client::connect(start(quick()).await).await;
    let body = r#"{"messages":[],"stream":true,"sim":{"tokens":3},
        "tools":[{"type":"function","function":{"name":"weather"}}]}"#;
    client.post("/v1/chat/completions", "", body).await;
    let events = client.answer().await.events();
    let call = |n: usize| &events[n]["choices"][0]["delta"]["tool_calls"][0]["function"];
    assert_eq!(*call(1), json!({"name": "weather"}));
    let arguments: String = (2..5).map(|n| call(n)["arguments"].as_str().unwrap()).collect();
    assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), json!({"text": "tok0 tok1 tok2 "}));
    assert_eq!(events[5]["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let address = start(quick()).await;
    let mut client = Client::connect(address).await;
    client.unary("").await;
    let answer = client.answer().await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "tok0 tok1 tok2 tok3 tok4 ");
    assert_eq!(answer["usage"]["completion_tokens"], 5);
    client.post("/v1/embeddings", "", r#"{"input":["a","b"]}"#).await;
    assert_eq!(client.answer().await.json()["data"].as_array().map(Vec::len), Some(2));
    client.stream("").await;
    assert_eq!(client.answer().await.events().len(), 8);
    assert_eq!(client.get("/v1/models").await.json()["data"][0]["id"], "sim-model");
    assert_eq!(client.get("/health").await.status, 200);
    let stats = client.get("/sim/stats").await.json();
    assert_eq!(
        (&stats["connections"], &stats["requests"], &stats["completed"]),
        (&json!(1), &json!(3), &json!(3))
    );
}

#[tokio::test]
async fn chunked_bodies_and_expect_are_understood() {
    let mut client = Client::connect(start(quick()).await).await;
    let head = "POST /v1/completions HTTP/1.1\r\nhost: e\r\ntransfer-encoding: chunked\r\n";
    client.send(&format!("{head}expect: 100-continue\r\n\r\n")).await;
    assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("a\r\n{\"prompt\":\r\n4\r\n\"x\"}\r\n0\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn what_it_does_not_serve_gets_an_error_in_vllms_form() {
    let mut client = Client::connect(start(quick()).await).await;
    let missing = client.get("/nothing").await;
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &json!(404)));
    let wrong_method = client.get("/v1/chat/completions").await;
    assert_eq!(wrong_method.status, 405);
    assert!(wrong_method.head.contains("allow: POST\r\n"));
    client.post("/v1/chat/completions", "", r#"{"model":"x","messages":[]}"#).await;
    assert_eq!(client.answer().await.json()["error"]["type"], "NotFoundError");
    client.unary("x-sim-fault: nope\r\n").await;
    let wrong = client.answer().await;
    assert!(wrong.text().contains("unknown fault `nope`"), "{}", wrong.text());
    client.send("HEAD /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    let (head, end) = client.rest().await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(end, End::Fin);
}

#[tokio::test]
async fn an_old_client_gets_a_stream_without_chunks() {
    let mut client = Client::connect(start(quick()).await).await;
    client
        .send("POST /v1/completions HTTP/1.0\r\ncontent-length: 28\r\n\r\n{\"prompt\":\"x\",\"stream\":true}")
        .await;
    let (text, end) = client.rest().await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("connection: close") && !head.contains("transfer-encoding"), "{head}");
    assert!(body.starts_with("data: {") && body.ends_with("data: [DONE]\n\n"), "{body}");
    assert_eq!(end, End::Fin);
}

#[tokio::test]
async fn the_head_comes_before_the_prefill_unless_told_otherwise() {
    let slow = Settings { first_event: Duration::from_secs(3600), ..quick() };
    let mut client = Client::connect(start(slow.clone()).await).await;
    client.stream("").await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 200"));
    assert!(client.is_silent().await);
    let mut client = Client::connect(start(Settings { early_200: false, ..slow }).await).await;
    client.stream("").await;
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let settings = Settings { keepalive: Duration::from_millis(30), ..quick() };
    let mut client = Client::connect(start(settings).await).await;
    assert_eq!(client.get("/health").await.status, 200);
    assert_eq!(client.rest().await, (String::new(), End::Fin));
}

#[tokio::test]
async fn requests_beyond_the_slots_wait() {
    let slow = "x-sim-first-event: 3600s\r\n";
    let address = start(Settings { slots: 1, ..quick() }).await;
    let (mut first, mut second) = (Client::connect(address).await, Client::connect(address).await);
    first.stream(slow).await;
    stats_when(address, |stats| stats["running"] == 1).await;
    second.stream("").await;
    stats_when(address, |stats| stats["waiting"] == 1).await;
    let page = Client::connect(address).await.get("/metrics").await;
    let line = "vllm:num_requests_waiting{model_name=\"sim-model\",engine=\"0\"} 1\n";
    assert!(page.text().contains(line), "{}", page.text());
    drop(first);
    assert_eq!(second.answer().await.events().len(), 8);
}

#[tokio::test]
async fn stamps_and_sizes_follow_the_request() {
    let mut client = Client::connect(start(quick()).await).await;
    client.stream("x-sim-stamp: 1\r\nx-sim-event-bytes: 300000\r\nx-sim-tokens: 2\r\n").await;
    let answer = client.answer().await;
    let sizes: Vec<usize> = answer.text().split_inclusive("\n\n").map(str::len).collect();
    assert_eq!(sizes[1..3], [300_000, 300_000]);
    let events = answer.events();
    let content = events[1]["choices"][0]["delta"]["content"].as_str().unwrap();
    let stamp = content.strip_prefix("tok0 t=").unwrap().split(' ').next().unwrap();
    assert!(stamp.parse::<u64>().unwrap() > 1_700_000_000_000_000, "{stamp}");
}

#[tokio::test]
async fn an_engine_without_pauses_streams_everything() {
    let settings = Settings { inter_token: Duration::ZERO, tokens: 20_000, event_bytes: 230, ..quick() };
    let mut client = Client::connect(start(settings).await).await;
    client.stream("").await;
    let events = client.answer().await.events();
    let content = |event: &Value| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    for n in [0, 1, 9_999, 19_999] {
        let content = content(&events[n + 1]).unwrap();
        assert!(content.starts_with(&format!("tok{n} ")), "{content}");
    }
    assert_eq!(events.len(), 20_003);
}

#[tokio::test]
async fn shutdown_ends_the_engine_and_its_streams() {
    let engine = Engine::bind(Settings { tokens: u32::MAX, ..quick() }).await.unwrap();
    let address = engine.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(engine.run(async { stopped.await.unwrap() }));
    let mut client = Client::connect(address).await;
    client.stream("").await;
    client.until("tok1 ").await;
    stop.send(()).unwrap();
    within(running).await.unwrap();
    client.rest().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn two_engines_know_nothing_of_each_other() {
    let one = start(Settings { name: "one".to_owned(), model: "a".to_owned(), ..quick() }).await;
    let two = start(Settings { name: "two".to_owned(), model: "b".to_owned(), ..quick() }).await;
    let mut client = Client::connect(one).await;
    client.stream("").await;
    assert_eq!(client.answer().await.status, 404, "it serves another model");
    client.unary("").await;
    assert!(client.answer().await.head.contains("x-sim-engine: one\r\n"));
    let stats = stats_when(two, |_| true).await;
    assert_eq!((&stats["name"], &stats["requests"]), (&json!("two"), &json!(0)));
}

/// Each token has a hash of its request's id (the published one of `a`) and of all tokens before it, and the engine
/// tells the same of what it sent; a fault is counted where it strikes.
#[tokio::test]
async fn tokens_prove_their_place() {
    let address = start(Settings { proof: true, ..quick() }).await;
    let mut client = Client::connect(address).await;
    client.stream("x-request-id: a\r\nx-sim-fault: error_at=2\r\n").await;
    let events = client.answer().await.events();
    let token = |n: usize| events[n + 1]["choices"][0]["delta"]["content"].as_str().unwrap().to_owned();
    assert_eq!(token(0), "tok0#af63dc4c8601ec8c ");
    let chain = |text: &str| {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
        text.bytes().fold(14_695_981_039_346_656_037, step)
    };
    assert_eq!(token(1), format!("tok1#{:016x} ", chain(&format!("a{}", token(0)))));
    let all = format!("{:016x}", chain(&format!("a{}{}", token(0), token(1))));
    let mut client = Client::connect(address).await;
    let sent = json!({"request_id": "a", "tokens": 2, "hash": all, "finished": false});
    assert_eq!(client.get("/sim/proofs").await.json(), json!([sent]));
    assert_eq!(client.get("/sim/stats").await.json()["faults"], 1);
}
