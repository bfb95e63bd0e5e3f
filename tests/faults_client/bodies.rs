//! Clients whose bodies are not what they say, rows C10, C13 and C14: refused as early as can be, and
//! never taken for something else.

use crate::support::told::whole_json;
use crate::support::wire::{CHAT_PATH, CHAT_UNARY, MIB, Request, chat_of};
use crate::support::{Client, Row, Settings, Told, as_is, checks};
use serde_json::json;

/// Bodies of at most 1 MiB.
fn small(settings: Settings) -> Settings {
    settings.set("server.request.body_bytes", "1MiB")
}

/// C10: a length over the limit is refused by the head, before a byte of the body.
#[tokio::test]
async fn c10_a_length_over_the_limit_is_refused_by_the_head() {
    let row = Row::start(2, small).await;
    let head = Request::post(CHAT_PATH, chat_of(MIB + 1)).head();
    for _ in 0..5 {
        let mut client = row.gateway.client().await;
        client.send(&head).await;
        checks::rejected(&client.answer().await, 413, "body_too_large");
    }
    let fields = json!({ "phase": "upload", "status": 413, "attempts": 0, "error": "body_too_large" });
    row.told("rejected", 5, fields).await;
    row.nobody_asked().await;
    row.settled(5).await;
}

/// C10: a body of unknown length is refused at the byte too many, though its end never comes.
#[tokio::test]
async fn c10_a_chunked_body_is_refused_at_the_limit() {
    let row = Row::start(2, small).await;
    assert_eq!(row.streams(4).await, vec![Told::whole(); 4]);
    let before = row.gateway.rss_kb();
    let mut body = Request::post(CHAT_PATH, chat_of(MIB + 1)).chunked(64 * 1024).bytes();
    body.truncate(body.len() - 7);
    for _ in 0..5 {
        let mut client = row.gateway.client().await;
        // The gateway may answer and close before it has taken all.
        drop(client.try_send(&body).await);
        checks::rejected(&client.answer().await, 413, "body_too_large");
    }
    let grown = row.gateway.rss_kb().saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB");
    let fields = json!({ "phase": "upload", "status": 413, "attempts": 0, "error": "body_too_large" });
    row.told("rejected", 5, fields).await;
    row.settled(9).await;
}

/// C10: a length that lies. Too short: the body is cut JSON, and what follows it is no request. Too
/// long: it never comes.
#[tokio::test]
async fn c10_a_length_that_lies_is_refused() {
    let row = Row::start(2, |settings| settings.set("server.request.body_timeout", "300ms")).await;
    let lie = |length: usize| {
        let head = Request::bare("POST", CHAT_PATH).header("Content-Type: application/json");
        let head = String::from_utf8(head.head()).expect("a head is text");
        let head = head.replace("Content-Length: 0", &format!("Content-Length: {length}"));
        [head.as_bytes(), CHAT_UNARY.as_bytes()].concat()
    };
    let mut short = row.gateway.client().await;
    short.send(lie(CHAT_UNARY.len() - 10)).await;
    checks::rejected(&short.answer().await, 400, "invalid_request");
    short.half_close().await;
    short.closed().await;
    let rest = String::from_utf8_lossy(short.raw()).into_owned();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400"), "{rest}");

    let mut long = row.gateway.client().await;
    long.send(lie(CHAT_UNARY.len() + 10)).await;
    checks::rejected(&long.answer().await, 408, "request_timeout");

    row.told("rejected", 1, json!({ "attempts": 0, "status": 400, "phase": "upload" })).await;
    row.told("timeout", 1, json!({ "attempts": 0, "status": 408, "phase": "upload" })).await;
    row.nobody_asked().await;
    row.settled(2).await;
}

/// C13: who asks for `100 Continue` gets it once the head has passed, and what it then sends is served.
#[tokio::test]
async fn c13_an_expected_100_comes_before_the_body() {
    let row = Row::start(1, as_is).await;
    for (asked, expectation) in (0..).zip(["100-continue", "100-Continue"]) {
        let request = Request::post(CHAT_PATH, CHAT_UNARY).header(&format!("Expect: {expectation}"));
        let mut client = row.gateway.client().await;
        client.send(request.head()).await;
        assert_eq!(client.head().await.status(), 100, "{expectation}");
        assert_eq!(row.engines[0].count("requests").await, asked, "the body comes first");
        client.send(request.framed_body()).await;
        whole_json(&client.answer().await);
    }
    row.told("completed", 2, json!({ "status": 200, "attempts": 1 })).await;
    row.struck(2, "a body that waits for a 100");
    row.settled(2).await;
}

/// C13: another expectation is 417, and a refusal by the head comes without a 100.
#[tokio::test]
async fn c13_an_odd_expectation_is_417() {
    let row = Row::start(2, small).await;
    let odd =
        ["y 100-continue", "200-ok", "100-continue, x", "100-continue;q=1", "100-continue\r\nExpect: x"];
    for expectation in odd {
        let request = Request::post(CHAT_PATH, CHAT_UNARY).header(&format!("Expect: {expectation}"));
        let mut client = row.gateway.client().await;
        client.send(request.head()).await;
        checks::rejected(&client.answer().await, 417, "invalid_request");
    }
    let large = Request::post(CHAT_PATH, chat_of(MIB + 1)).header("Expect: 100-continue");
    let mut client = row.gateway.client().await;
    client.send(large.head()).await;
    checks::rejected(&client.answer().await, 413, "body_too_large");
    row.told("rejected", odd.len() + 1, json!({ "attempts": 0 })).await;
    row.nobody_asked().await;
    row.settled(odd.len() + 1).await;
}

/// C14: the body of a refused request looks like another request, and is never taken for one.
#[tokio::test]
async fn c14_a_body_that_nobody_read_is_no_request() {
    let row = Row::start(1, as_is).await;
    let smuggled = Request::post(CHAT_PATH, CHAT_UNARY).header("x-request-id: smuggled").bytes();
    let (mut refused, mut served) = (0, 0);
    for size in [1, 2000] {
        let body = smuggled.repeat(size);
        for request in [Request::post("/nowhere", &body), Request::post("/nowhere", &body).chunked(4096)] {
            let mut client = row.gateway.client().await;
            drop(client.try_send(request.bytes()).await);
            checks::rejected(&client.answer().await, 404, "not_found");
            refused += 1;
            served += usize::from(in_step(&mut client).await);
        }
    }
    row.told("rejected", refused, json!({ "status": 404, "attempts": 0, "error": "not_found" })).await;
    let lines = row.lines(refused + served).await;
    assert!(lines.iter().all(|line| line["request_id"] != "smuggled"), "{lines:?}");
    assert_eq!(row.engines[0].count("requests").await, served as u64);
    row.settled(refused + served).await;
}

/// Asks again on the same connection: served with its own answer, or closed. Gives whether it was served.
async fn in_step(client: &mut Client) -> bool {
    let next = Request::unary().header("Connection: close").bytes();
    drop(client.try_send(next).await);
    client.closed().await;
    let raw = String::from_utf8_lossy(client.raw()).into_owned();
    assert!(raw.is_empty() || raw.starts_with("HTTP/1.1 200"), "{raw}");
    assert!(raw.matches("HTTP/1.1 ").count() <= 1, "{raw}");
    !raw.is_empty()
}

/// C14: an engine's own 4xx leaves both connections usable.
#[tokio::test]
async fn c14_a_relayed_4xx_keeps_the_connections() {
    let row = Row::start(1, as_is).await;
    let mut client = row.gateway.client().await;
    let unknown = CHAT_UNARY.replace("\"m\"", "\"unknown\"");
    for _ in 0..5 {
        client.send(Request::post(CHAT_PATH, &unknown).bytes()).await;
        assert_eq!(client.answer().await.status(), 404);
        client.send(Request::unary().bytes()).await;
        whole_json(&client.answer().await);
    }
    drop(client);
    row.told("completed", 10, json!({ "attempts": 1, "error": null })).await;
    row.never_moved().await;
    let connections = row.engines[0].connections().await;
    // One is missed now and then, in the moment in which the pool takes it back.
    assert!(connections <= 5, "{connections} for 10 exchanges");
    row.struck(5, "a 4xx of the engine");
    row.settled(10).await;
}

crate::over_h2! {
    c10_a_length_over_the_limit_is_refused_by_the_head,
    c10_a_chunked_body_is_refused_at_the_limit,
    c13_an_expected_100_comes_before_the_body,
    c13_an_odd_expectation_is_417,
    c14_a_relayed_4xx_keeps_the_connections,
}
