//! Heads: which headers pass on either way, what the gateway asserts itself, and 100-continue.

use crate::support::wire::{ANSWER, CHAT_PATH, CHAT_UNARY, Request, answer, json_answer};
use crate::support::{Gateway, Settings, Upstream, as_is, checks, one_engine, relayed};

/// H19: end-to-end headers pass, hop-by-hop ones stop, on both ways.
#[tokio::test]
async fn hop_by_hop_headers_stop_and_the_others_pass() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway
        .send(
            &Request::chat()
                .header("Connection: keep-alive, X-Hop")
                .header("X-Hop: 1")
                .header("Proxy-Authorization: Basic Zm9v")
                .header("TE: trailers")
                .header("Keep-Alive: 5")
                .header("Cookie: a=1; b=2")
                .header("X-Session-Id: s1")
                .header("X-Request-Id: r1")
                .header("X_Request_Id: r2")
                .header("X_Forwarded_For: 192.0.2.1")
                .header("X-Forwarded-Prefix: /admin")
                .header("X_Forwarded_Port: 1")
                .header("X-Real-IP: 192.0.2.1")
                .header("X-Original-URL: /admin")
                .header("X_Rewrite_Url: /admin")
                .header("HTTP2-Settings: AAMAAABkAAQAAP__")
                .header("Session_Id: s2")
                .header("OpenAI-Organization: o"),
        )
        .await;
    let call = upstream.call().await;
    let asked = &call.request.head;
    for hop in [
        "x-hop",
        "proxy-authorization",
        "keep-alive",
        "te",
        "http2-settings",
        "x_request_id",
        "x_forwarded_for",
        "x-forwarded-prefix",
        "x_forwarded_port",
        "x-real-ip",
        "x-original-url",
        "x_rewrite_url",
    ] {
        assert_eq!(asked.get(hop), None, "{hop}");
    }
    assert!(!asked.get("connection").unwrap_or_default().to_lowercase().contains("x-hop"));
    let passing = [
        ("cookie", "a=1; b=2"),
        ("x-session-id", "s1"),
        ("x-request-id", "r1"),
        ("session_id", "s2"),
        ("openai-organization", "o"),
        ("authorization", "Bearer k1"),
        ("content-type", "application/json"),
    ];
    for (name, value) in passing {
        assert_eq!(asked.get(name), Some(value), "{name}");
    }
    assert_eq!(asked.get("host"), Some(upstream.addr.to_string().as_str()), "the client's Host stops here");

    let headers = [
        "Connection: close, X-RHop",
        "X-RHop: 1",
        "x-request-id: u9",
        "Set-Cookie: a=1; Path=/",
        "Set-Cookie: b=2",
        "X-Engine: e",
        "Content-Type: application/json",
    ];
    call.answer(answer("200 OK", &headers, ANSWER)).await;
    let reply = client.answer().await;
    assert_eq!(reply.head.get("x-rhop"), None);
    assert_eq!(reply.head.get("x-request-id"), Some("r1"));
    assert_eq!(reply.head.all("set-cookie"), ["a=1; Path=/", "b=2"]);
    assert_eq!(reply.head.get("x-engine"), Some("e"));
    let line = gateway.only_access().await;
    assert_eq!(line["request_id"], "r1");
    assert!(line.to_string().contains("u9"), "the engine's own id is logged: {line}");

    client.send(Request::unary().bytes()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200, "the engine's close is not the client's");
}

/// `auth: none`: the client's credentials stop at the gateway.
#[tokio::test]
async fn credentials_stop_when_the_file_says_so() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("clusters.c.auth", "none")).await;
    let asked = relayed(&gateway, &mut upstream, &Request::unary().header("x-api-key: k2")).await.head;
    assert_eq!((asked.get("authorization"), asked.get("x-api-key")), (None, None));
}

/// The client's id when it is well-formed, else a new one: the same upstream and back.
#[tokio::test]
async fn every_exchange_has_one_request_id() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let long = "x".repeat(300);
    let mut seen = Vec::new();
    for (given, kept) in [("abc-123_X.9", true), ("has space", false), (long.as_str(), false), ("", false)] {
        let header = format!("X-Request-Id: {given}");
        let mut client = gateway.send(&Request::unary().header(&header)).await;
        let call = upstream.call().await;
        let asked = call.request.head.get("x-request-id").expect("an id").to_owned();
        call.answer(json_answer(ANSWER)).await;
        let reply = client.answer().await;
        assert_eq!(reply.head.get("x-request-id"), Some(asked.as_str()));
        assert_eq!(asked == given, kept, "{given:?} became {asked:?}");
        gateway.wait_access(&asked, |line| line["request_id"] == asked).await;
        assert!(!seen.contains(&asked), "a new id each time");
        seen.push(asked);
    }
}

/// The query passes, and a backend's path prefix goes in front.
#[tokio::test]
async fn the_target_keeps_its_query_and_gets_the_prefix() {
    let mut upstream = Upstream::start().await;
    let url = format!("http://{}/base", upstream.addr);
    let settings = Settings::new(&[upstream.addr]).set("clusters.c.backends.0.url", url);
    let gateway = Gateway::start(settings).await;
    let request = Request::post("/v1/chat/completions?a=1&b=%2F", CHAT_UNARY);
    let asked = relayed(&gateway, &mut upstream, &request).await;
    assert_eq!(asked.head.line, "POST /base/v1/chat/completions?a=1&b=%2F HTTP/1.1");
    assert_eq!(gateway.only_access().await["path"], CHAT_PATH);
}

/// The answer to a HEAD has a length and no body, and the connection stays in step.
#[tokio::test]
async fn a_head_answer_has_no_body() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.client().await;
    client.expect_no_body();
    for _ in 0..2 {
        client.send(Request::bare("HEAD", CHAT_PATH).bytes()).await;
        let call = upstream.call().await;
        assert!(call.request.head.line.starts_with("HEAD "));
        call.answer("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 123\r\n\r\n").await;
        let reply = client.answer().await;
        assert_eq!((reply.status(), reply.head.get("content-length")), (200, Some("123")));
    }
    assert_eq!(client.raw(), b"");
}

/// H17: the gateway says 100 itself, and the engine is never asked to.
#[tokio::test]
async fn an_expected_100_comes_before_the_body() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let body = format!("{{\"model\":\"m\",\"x\":\"{}\"}}", "y".repeat(2 * 1024 * 1024));
    let request = Request::post(CHAT_PATH, &body).header("Expect: 100-continue");
    let mut client = gateway.client().await;
    client.send(request.head()).await;
    assert_eq!(client.head().await.status(), 100);
    client.send(&body).await;
    let call = upstream.call().await;
    assert_eq!(call.request.head.get("expect"), None);
    checks::same(&call.request.body, body.as_bytes());
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// H17: what can be refused by the head is refused without a 100.
#[tokio::test]
async fn a_refusal_by_the_head_says_no_100() {
    let (gateway, upstream) = one_engine(as_is).await;
    let refusals = [(CHAT_PATH, 40 * 1024 * 1024, 413, "body_too_large"), ("/nowhere", 10, 404, "not_found")];
    for (path, length, status, code) in refusals {
        let mut client = gateway.client().await;
        client
            .send(format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
            ))
            .await;
        checks::rejected(&client.answer().await, status, code);
    }
    assert_eq!(upstream.connections(), 0);
}

/// H17: a refused client that sends its body all the same is not taken for the next request.
#[tokio::test]
async fn a_body_after_a_refused_expectation_is_no_request() {
    let (gateway, upstream) = one_engine(as_is).await;
    let smuggled = Request::bare("GET", "/v1/smuggled").bytes();
    for (path, length, status) in [(CHAT_PATH, 40 * 1024 * 1024, 413), ("/nowhere", smuggled.len(), 404)] {
        let mut client = gateway.client().await;
        client
            .send(format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
            ))
            .await;
        assert_eq!(client.answer().await.status(), status);
        // The gateway may have closed.
        drop(client.try_send(&smuggled).await);
        client.closed().await;
        assert_eq!(client.raw(), b"", "one answer for one request");
    }
    assert!(gateway.all_access(2).await.iter().all(|line| line["path"] != "/v1/smuggled"));
    assert_eq!(upstream.connections(), 0);
}

/// H20: a target is relayed whole up to `uri_bytes`, and one byte more is 414.
#[tokio::test]
async fn a_long_target_is_relayed_whole_or_414() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let target = |bytes: usize| format!("{CHAT_PATH}?q={}", "x".repeat(bytes - CHAT_PATH.len() - 3));
    for bytes in [8 * 1024 - 1, 8 * 1024] {
        let asked = relayed(&gateway, &mut upstream, &Request::post(&target(bytes), CHAT_UNARY)).await;
        assert_eq!(asked.head.line, format!("POST {} HTTP/1.1", target(bytes)));
    }
    for bytes in [8 * 1024 + 1, 20 * 1024, 64 * 1024] {
        let mut client = gateway.client().await;
        // The gateway may answer and close before it has taken all.
        drop(client.try_send(Request::post(&target(bytes), CHAT_UNARY).bytes()).await);
        checks::rejected(&client.answer().await, 414, "invalid_request");
    }
    upstream.assert_not_asked();
    assert!(gateway.all_access(5).await.iter().all(|line| line["attempts"].as_u64() <= Some(1)));
}

crate::over_h2! {
    credentials_stop_when_the_file_says_so,
    every_exchange_has_one_request_id,
    the_target_keeps_its_query_and_gets_the_prefix,
    a_head_answer_has_no_body,
    an_expected_100_comes_before_the_body,
    a_refusal_by_the_head_says_no_100,
}
