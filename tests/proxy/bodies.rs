//! Request bodies: whole and identical at any size, changed only where the file says so, refused clearly.

use std::sync::Arc;

use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{ANSWER, CHAT, CHAT_PATH, MIB, Request, chat_of, event, json_answer};
use crate::support::{Client, End, Settings, as_is, checks, one_engine, relayed};
use serde_json::json;

/// H16: bodies of every size around the 64 KiB edges arrive whole, by length and in chunks.
#[tokio::test]
async fn bodies_of_any_size_arrive_identical() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    for size in [65_535, 65_536, 65_537, MIB + 1, 20 * MIB] {
        let body = chat_of(size);
        let by_length = Request::post(CHAT_PATH, &body);
        for request in [by_length.clone(), by_length.chunked(10_000)] {
            let mut client = gateway.send(&request).await;
            let mut call = upstream.call().await;
            assert_eq!(call.request.body.len(), size);
            checks::same(&call.request.body, &body);
            call.open().await;
            call.chunk(event("prompt")).await;
            assert_eq!(client.head().await.status(), 200);
            client.until_body(event("prompt").as_bytes()).await;
            call.finish().await;
            assert_eq!(client.end().await, End::Clean);
        }
    }
    checks::at_rest(&gateway).await;
}

/// H16: ten large uploads at once cost about their size, once, and give it back.
#[tokio::test]
async fn parallel_uploads_are_bounded() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("server.request.buffered_bytes", "400MiB")).await;
    let before = gateway.rss_kb();
    let body = Arc::new(Request::post(CHAT_PATH, chat_of(20 * MIB)).bytes());
    let dialer = gateway.dialer();
    let clients: Vec<_> = (0..10)
        .map(|_| {
            let body = Arc::clone(&body);
            tokio::spawn(async move {
                let mut client = dialer.client().await;
                client.send(body.as_slice()).await;
                checks::streamed(&mut client, "ok").await;
            })
        })
        .collect();
    for _ in 0..10 {
        let call = within("the uploads arrive", 4 * SOON, upstream.call()).await;
        assert!(call.request.body.as_slice() == &body[body.len() - 20 * MIB..], "the body is identical");
        call.stream("ok").await;
    }
    for client in clients {
        client.await.unwrap();
    }
    let peak = gateway.rss_kb().saturating_sub(before);
    assert!(peak < 320 * 1024, "{peak} KiB for 200 MiB of bodies");
    checks::at_rest(&gateway).await;
}

/// H16: one byte too many is a clear refusal, by length and in chunks, and no engine hears of it.
#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let (gateway, upstream) = one_engine(as_is).await;
    let mut client = gateway.client().await;
    let head = format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", 32 * MIB + 1);
    client.send(head).await;
    checks::rejected(&client.answer().await, 413, "body_too_large");

    // Made before there is a connection: it takes a slow machine longer than one may be idle.
    let request = Request::post(CHAT_PATH, chat_of(32 * MIB + 1)).chunked(MIB).bytes();
    let mut reader = gateway.client().await;
    // The gateway may answer and close before it has taken the rest.
    drop(reader.try_send(request).await);
    checks::rejected(&reader.answer().await, 413, "body_too_large");
    assert_eq!(upstream.connections(), 0);
    assert!(gateway.all_access(2).await.iter().all(|line| line["outcome"] == "rejected"));
    checks::at_rest(&gateway).await;
}

/// A whole body at the limit passes.
#[tokio::test]
async fn a_body_at_the_limit_passes() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("server.request.body_bytes", "1MiB")).await;
    let body = chat_of(MIB);
    let mut client = gateway.send(&Request::post(CHAT_PATH, &body)).await;
    let call = upstream.call().await;
    checks::same(&call.request.body, &body);
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    checks::rejected(&gateway.ask(&Request::post(CHAT_PATH, chat_of(MIB + 1))).await, 413, "body_too_large");
}

/// H18: nothing is mapped, so not a byte of the body changes.
#[tokio::test]
async fn an_odd_but_legal_body_is_byte_identical() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let body = "{ \"seed\": 9007199254740993,\n  \"temperature\": 0.10, \"n\": 1e2, \"x\": {\"b\":1,\"a\":2},\r\n\
                \t\"messages\":[{\"role\":\"user\",\"content\":\"é \\u2028 \\ud83d\\ude00 \\/ \\ud83d\"}],\n\
                \"mod\\u0065l\" : \"m\" , \"stream\": false, \"dup\":1, \"dup\":2 }\n";
    for request in [Request::post(CHAT_PATH, body), Request::post(CHAT_PATH, body).header("X-Session-Id: s1")]
    {
        let asked = relayed(&gateway, &mut upstream, &request).await;
        checks::same(&asked.body, body.as_bytes());
        assert_eq!(asked.head.get("content-length"), Some(body.len().to_string().as_str()));
    }
    let line = gateway.wait_access("any", |_| true).await;
    assert_eq!(line["model"], "m", "an escaped key is read all the same: {line}");
}

/// H18: an alias changes the model's value and nothing else; the log keeps the client's name.
#[tokio::test]
async fn an_alias_is_patched_in_place() {
    let alias = |settings: Settings| {
        settings.set("routes.0.aliases", json!({ "gpt-4o": "qwen3-32b", "short": "a \"quoted\" name" }))
    };
    let (gateway, mut upstream) = one_engine(alias).await;
    let body = |model: &str| {
        format!(
            "{{ \"x\":{{\"model\":\"gpt-4o\"}}, \"seed\":1e0,\n \"model\" :  {model} , \"stream\":false }}"
        )
    };
    for (model, patched) in [("\"gpt-4o\"", "\"qwen3-32b\""), ("\"gpt\\u002d4o\"", "\"qwen3-32b\"")] {
        let asked = relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, body(model))).await;
        checks::same(&asked.body, body(patched).as_bytes());
        assert_eq!(asked.head.get("content-length"), Some(body(patched).len().to_string().as_str()));
    }
    let asked =
        relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, body("\"short\"")).chunked(7)).await;
    checks::same(&asked.body, body("\"a \\\"quoted\\\" name\"").as_bytes());
    let asked = relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, body("\"other\""))).await;
    checks::same(&asked.body, body("\"other\"").as_bytes());
    gateway.wait_access("the client's name", |line| line["model"] == "gpt-4o").await;
}

/// P4 and the JSON rules: what the gateway acts on must be unambiguous.
#[tokio::test]
async fn bodies_that_could_be_misread_are_refused() {
    let (gateway, upstream) = one_engine(as_is).await;
    let deep = format!("{{\"model\":\"m\",\"x\":{}{}}}", "[".repeat(70), "]".repeat(70));
    let bodies = [
        "not json",
        "[]",
        "{\"model\":\"m\"",
        "{\"model\":\"m\"} x",
        "\u{feff}{\"model\":\"m\"}",
        "{\"model\":\"m\",\"temperature\":NaN}",
        "{\"model\":\"m\",\"model\":\"n\"}",
        "{\"model\":\"m\",\"mod\\u0065l\":\"n\"}",
        "{\"model\":\"m\",\"stream\":true,\"stream\":false}",
        "{\"model\":\"m\",\"max_tokens\":1,\"max_tokens\":2}",
        "{\"model\":5}",
        "{\"model\":\"m\",\"stream\":1}",
        "{\"model\":\"m\",\"stream\":\"true\"}",
        &deep,
    ];
    for body in bodies {
        let reply = gateway.ask(&Request::post(CHAT_PATH, body)).await;
        assert_eq!(reply.status(), 400, "{body:?}: {}", reply.text());
        checks::rejected(&reply, 400, "invalid_request");
    }
    assert_eq!(upstream.connections(), 0);
    let count = bodies.len() as f64;
    gateway.wait_metric("requests_total", &[("outcome", "rejected")], count).await;
    checks::at_rest(&gateway).await;
}

/// A body that is not JSON passes as it is, routed by path alone.
#[tokio::test]
async fn a_body_that_is_not_json_passes() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let body =
        b"--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n\x00\xff\xfe{\"model\":\r\n--b--\r\n";
    let request =
        Request::bare("POST", CHAT_PATH).header("Content-Type: multipart/form-data; boundary=b").body(body);
    checks::same(&relayed(&gateway, &mut upstream, &request).await.body, body);
}

/// C14: a body that nobody read is never taken for the next request.
#[tokio::test]
async fn an_unread_body_is_not_the_next_request() {
    let (gateway, upstream) = one_engine(as_is).await;
    let smuggled = Request::bare("GET", "/v1/smuggled").bytes();
    let refused = Request::post("/nowhere", &smuggled);
    for request in [refused.clone(), refused.clone().chunked(10)] {
        let mut client = gateway.send(&request).await;
        checks::rejected(&client.answer().await, 404, "not_found");
        in_step(client).await;
    }
    let mut late = gateway.client().await;
    late.send(refused.head()).await;
    checks::rejected(&late.answer().await, 404, "not_found");
    silence(ms(50)).await;
    // The gateway may have closed.
    drop(late.try_send(&smuggled).await);
    in_step(late).await;
    assert!(gateway.access_lines().iter().all(|line| line["path"] != "/v1/smuggled"));
    assert_eq!(upstream.connections(), 0);
}

/// The connection serves the next request with its own answer, or it is closed.
async fn in_step(mut client: Client) {
    let next = Request::bare("GET", "/v1/models").header("Connection: close").bytes();
    if client.try_send(next).await.is_ok() {
        client.closed().await;
        let raw = String::from_utf8_lossy(client.raw()).into_owned();
        assert!(raw.is_empty() || raw.starts_with("HTTP/1.1 200"), "{raw}");
        assert!(raw.matches("HTTP/1.1 ").count() <= 1, "{raw}");
    }
}

/// C6: a body that does not come is given up, and no engine waits for it.
#[tokio::test]
async fn a_slow_body_is_408() {
    let (gateway, upstream) =
        one_engine(|settings| settings.set("server.request.body_timeout", "500ms")).await;
    let mut client = gateway.client().await;
    let request = Request::post(CHAT_PATH, CHAT);
    client.send(request.head()).await;
    client.send(&request.framed_body()[..10]).await;
    checks::rejected(&client.answer().await, 408, "request_timeout");
    assert_eq!(upstream.connections(), 0);
    assert_eq!(gateway.only_access().await["phase"], "upload");
    checks::at_rest(&gateway).await;
}

/// What all bodies may take together is bounded: 503 with a time to come back.
#[tokio::test]
async fn bodies_beyond_the_ledger_are_503() {
    let tight = |settings: Settings| {
        settings.set("server.request.body_bytes", "1MiB").set("server.request.buffered_bytes", "1MiB")
    };
    let (gateway, mut upstream) = one_engine(tight).await;
    let big = format!("{{\"model\":\"m\",\"x\":\"{}\"}}", "y".repeat(700 * 1024));
    let mut first = gateway.send(&Request::post(CHAT_PATH, &big)).await;
    let call = upstream.call().await;
    let reply = gateway.ask(&Request::post(CHAT_PATH, &big)).await;
    checks::rejected(&reply, 503, "overloaded");
    assert!(reply.head.get("retry-after").is_some(), "{:?}", reply.head);
    gateway.wait_log("of 1048576 bytes (server.request.buffered_bytes)").await;
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(first.answer().await.status(), 200);
    checks::at_rest(&gateway).await;
    relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, &big)).await;
}

/// Who announces much and sends nothing takes no room of others.
#[tokio::test]
async fn what_is_announced_and_not_sent_takes_no_room() {
    let tight = |settings: Settings| {
        settings.set("server.request.body_bytes", "1MiB").set("server.request.buffered_bytes", "1MiB")
    };
    let (gateway, mut upstream) = one_engine(tight).await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        let mut client = gateway.client().await;
        let head = format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n");
        client.send(format!("{head}Content-Length: 1000000\r\n\r\n{{").as_bytes()).await;
        idle.push(client);
    }
    gateway.wait_metric("held_bytes", &[("kind", "body")], 40.0 * 16.0 * 1024.0).await;
    let big = format!("{{\"model\":\"m\",\"x\":\"{}\"}}", "y".repeat(200 * 1024));
    relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, &big)).await;
    drop(idle);
    checks::at_rest(&gateway).await;
}

crate::over_h2! {
    bodies_of_any_size_arrive_identical,
    a_body_over_the_limit_is_413,
    a_body_at_the_limit_passes,
    an_odd_but_legal_body_is_byte_identical,
    an_alias_is_patched_in_place,
    a_body_that_is_not_json_passes,
    a_slow_body_is_408,
    bodies_beyond_the_ledger_are_503,
}
