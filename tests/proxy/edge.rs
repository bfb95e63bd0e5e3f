//! The edge: heads that are refused before anything else looks at them, and connections that say nothing.

use std::time::{Duration, Instant};

use crate::support;
use crate::support::wire::{ANSWER, CHAT_PATH, CHAT_UNARY, Request, json_answer};
use crate::support::{Client, Gateway, Settings, Upstream, checks, one_engine};

fn edge(settings: Settings) -> Settings {
    settings
        .set("server.request", serde_json::json!({ "header_timeout": "1500ms", "keepalive": "1500ms" }))
        .set("routes.1.match.path", serde_json::json!(["/v1/completions", "/v1/audio"]))
}

async fn raw(gateway: &Gateway, bytes: &str) -> Client {
    let mut client = gateway.client().await;
    client.send(bytes).await;
    client
}

/// Each is refused in our own form, with a line and a count, and no engine hears of it.
#[tokio::test]
async fn ambiguous_heads_are_refused_in_our_own_form() {
    let (gateway, mut upstream) = one_engine(edge).await;
    let post = "POST /v1/chat/completions HTTP/1.1\r\n";
    let many = "a: 1\r\n".repeat(101);
    let cases = [
        (format!("{post}Host: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), 400),
        (format!("{post}Host: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"), 400),
        (format!("{post}Host: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 501),
        (format!("{post}Content-Length: 3\r\n\r\n"), 400),
        (format!("{post}Host: x\r\nHost: y\r\n\r\n"), 400),
        (format!("{post}Host: x/?\r\n\r\n"), 400),
        (format!("{post}Host: x\r\nTransfer_Encoding: chunked\r\n\r\n"), 400),
        ("GET / HTTP/1.1\nHost: x\n\n".into(), 400),
        ("GET http://y/v1/models HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400),
        ("CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n".into(), 400),
        ("GET /<> HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n".into(), 400),
        (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(9_000)), 414),
        (format!("{post}Host: x\r\n{many}\r\n"), 431),
        (format!("{post}Host: x\r\na: {}\r\n\r\n", "b".repeat(33 * 1024)), 431),
    ];
    for (number, (bytes, status)) in (1..).zip(&cases) {
        let mut client = raw(&gateway, bytes).await;
        checks::rejected(&client.answer().await, *status, "invalid_request");
        gateway.wait_metric("requests_total", &[("outcome", "rejected")], f64::from(number)).await;
    }
    gateway.all_access(cases.len()).await;
    upstream.assert_not_asked();
    assert_eq!(upstream.connections(), 0);
    checks::at_rest(&gateway).await;
}

/// One deadline for the whole head: a byte now and then does not extend it, on the first request or a later one.
#[tokio::test]
async fn a_trickled_head_ends_at_its_deadline() {
    let (gateway, mut upstream) = one_engine(edge).await;
    for is_first in [true, false] {
        let mut client = gateway.client().await;
        if !is_first {
            client.send(Request::unary().bytes()).await;
            upstream.call().await.answer(json_answer(ANSWER)).await;
            assert_eq!(client.answer().await.status(), 200);
        }
        let begun = Instant::now();
        client.send("POST /v1/chat/completions HTTP/1.1\r\n").await;
        for _ in 0..4 {
            support::wait::silence(Duration::from_millis(100)).await;
            client.send("a").await;
        }
        checks::rejected(&client.answer().await, 408, "request_timeout");
        assert!(begun.elapsed() >= Duration::from_millis(1000), "{:?}", begun.elapsed());
    }
}

/// A connection that says nothing is closed: before its first request, and between two.
#[tokio::test]
async fn silent_connections_are_closed() {
    let (gateway, mut upstream) = one_engine(edge).await;
    let fds = gateway.fd_count();
    let _silent = gateway.client().await;
    let mut idle = gateway.client().await;
    idle.send(Request::unary().bytes()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(idle.answer().await.status(), 200);
    // The engine's connection may stay in the pool.
    support::wait::wait_until("idle clients are closed", support::wait::SOON, || {
        gateway.fd_count() <= fds + 1
    })
    .await;
    // Silence is no exchange.
    gateway.only_access().await;
}

/// A chunked upload whose framing is wrong is the client's mistake, and it is told so.
#[tokio::test]
async fn wrong_chunks_are_400() {
    let (gateway, mut upstream) = one_engine(edge).await;
    let long = format!("2;{}", "x".repeat(300));
    for size in ["0x39", "+39", "-5", "zz", "ffffffffffffffffff", "", "2 ", &long] {
        let head = format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut client = raw(&gateway, &format!("{head}{size}\r\nxx\r\n0\r\n\r\n")).await;
        checks::rejected(&client.answer().await, 400, "invalid_request");
    }
    upstream.assert_not_asked();
}

/// RFC 9112, 3.2.2: the absolute form is taken, and becomes a path for the engine.
#[tokio::test]
async fn the_absolute_form_is_a_path_like_any_other() {
    let (gateway, mut upstream) = one_engine(edge).await;
    let length = CHAT_UNARY.len();
    let bytes = format!(
        "POST http://x{CHAT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{CHAT_UNARY}"
    );
    let mut client = raw(&gateway, &bytes).await;
    let call = upstream.call().await;
    assert!(call.request.head.line.starts_with(&format!("POST {CHAT_PATH} ")), "{}", call.request.head.line);
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// Bodies that say they are not JSON pass as they are; a form's type around JSON does not hide it.
#[tokio::test]
async fn other_bodies_pass_by_their_path_alone() {
    let (gateway, mut upstream) = one_engine(edge).await;
    for kind in ["audio/wav", "text/csv", "image/png", "multipart/form-data; boundary=b", "text/plain"] {
        let request = Request::post("/v1/audio", b"not \xff json")
            .without("content-type")
            .header(&format!("Content-Type: {kind}"));
        let recorded = support::relayed(&gateway, &mut upstream, &request).await;
        assert_eq!(recorded.body, b"not \xff json", "{kind}");
    }
    let form = Request::post(CHAT_PATH, "{\"model\":1}")
        .without("content-type")
        .header("Content-Type: application/x-www-form-urlencoded");
    checks::rejected(&gateway.ask(&form).await, 400, "invalid_request");
}

/// Many requests of a client that is quick, on the edge's own loop.
#[tokio::test]
async fn a_connection_serves_many_requests() {
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let gateway = Gateway::start(Settings::new(&[engine])).await;
    let mut client = gateway.client().await;
    for _ in 0..200 {
        client.send(Request::unary().bytes()).await;
        assert_eq!(client.answer().await.status(), 200);
    }
}

/// Blank lines before a later request are bytes of its head: they do not begin its time anew, each.
#[tokio::test]
async fn blank_lines_hold_no_connection() {
    let (gateway, mut upstream) = one_engine(edge).await;
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    let line = async {
        // More of them than two of its times are long: the connection goes before.
        for _ in 0..10 {
            support::wait::silence(Duration::from_millis(300)).await;
            if client.try_send("\r\n").await.is_err() {
                return true;
            }
        }
        false
    };
    assert!(line.await, "3 s of blank lines, and 1.5 s are all there is");
    gateway.wait_metric("connections_active", &[], 0.0).await;
}
