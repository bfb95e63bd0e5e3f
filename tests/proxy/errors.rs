//! Before commitment a failure is a real status, and an engine's own error answer passes as it is.

use crate::support::sockets::{Blackhole, Refusing};
use crate::support::wire::{ANSWER, DONE, Request, answer, event, json_answer};
use crate::support::{End, Gateway, Settings, as_is, checks, one_engine};

/// H13 (d): an engine that never answers: 504 at first_event, for a stream.
#[tokio::test]
async fn a_silent_engine_is_given_up_at_first_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.first_event", "500ms")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    let reply = client.answer().await;
    checks::rejected(&reply, 504, "first_event_timeout");
    call.gone().await;
    checks::timed_out(&gateway, "first_event").await;
}

/// H13 (d): the same for a call that does not stream, at its own timeout.
#[tokio::test]
async fn a_silent_engine_is_given_up_at_unary() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.unary", "500ms")).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    let reply = client.answer().await;
    checks::rejected(&reply, 504, "unary_timeout");
    call.gone().await;
    checks::timed_out(&gateway, "unary").await;
}

/// A head that is held is not an event: the first_event timeout still runs, and gives a real status.
#[tokio::test]
async fn comments_do_not_stop_the_first_event_timeout() {
    let settings =
        |settings: Settings| settings.set("stream.hold_headers", "20s").set("timeouts.first_event", "500ms");
    let (gateway, mut upstream) = one_engine(settings).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(": prefill\n\n").await;
    checks::rejected(&client.answer().await, 504, "first_event_timeout");
    call.gone().await;
    checks::timed_out(&gateway, "first_event").await;
}

/// H14: error answers keep status, headers and body, whatever `stream` said, and the connection lives.
#[tokio::test]
async fn error_answers_pass_as_they_are() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let limited = ["Content-Type: application/json", "Retry-After: 30", "x-ratelimit-remaining-tokens: 0"];
    let dated = ["Content-Type: application/json", "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT"];
    let plain = ["Content-Type: application/json"];
    let cases: [(&str, &[&str]); 4] = [
        ("400 Bad Request", &plain),
        ("429 Too Many Requests", &limited),
        ("503 Service Unavailable", &dated),
        ("500 Internal Server Error", &plain),
    ];
    for (status, headers) in cases {
        let body = format!("{{\"error\": {{ \"message\":\"{status}\",\"code\":400 }} }}\n");
        let mut client = gateway.send(&Request::chat()).await;
        upstream.call().await.answer(answer(status, headers, &body)).await;
        let reply = client.answer().await;
        assert_eq!(reply.head.line.split_once(' ').unwrap().1.split(' ').next(), status.split(' ').next());
        for line in headers {
            let (name, value) = line.split_once(": ").unwrap();
            assert_eq!(reply.head.get(name), Some(value), "{status}");
        }
        assert_eq!(reply.head.get("content-length"), Some(body.len().to_string().as_str()));
        checks::same(&reply.body, body.as_bytes());
        upstream.assert_not_asked();
        // The connection is given back a moment after the client has its answer.
        checks::at_rest(&gateway).await;
    }
    assert_eq!(upstream.connections(), 1, "an error answer leaves the connection usable");
}

/// A status that is not 200 is never reframed, not even when it calls itself an event stream.
#[tokio::test]
async fn an_error_status_is_not_wrapped() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    upstream
        .call()
        .await
        .answer(answer("404 Not Found", &["Content-Type: text/plain"], "no such model"))
        .await;
    let reply = client.answer().await;
    assert_eq!((reply.status(), reply.text().as_str()), (404, "no such model"));
    assert_eq!(gateway.only_access().await["outcome"], "completed", "a relayed 4xx is a completed exchange");
}

/// A relayed 5xx is the engine's error in the books.
#[tokio::test]
async fn a_relayed_500_is_counted_as_the_engines_error() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    let sent = answer("500 Internal Server Error", &["Content-Type: application/json"], "{}");
    upstream.call().await.answer(sent).await;
    assert_eq!(client.answer().await.status(), 500);
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
}

/// Nobody listens: 502.
#[tokio::test]
async fn a_refused_connect_is_502() {
    let refusing = Refusing::start();
    let gateway = Gateway::start(Settings::new(&[refusing.addr()])).await;
    let reply = gateway.ask(&Request::chat()).await;
    checks::rejected(&reply, 502, "upstream_error");
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["phase"]), (&"upstream_error".into(), &"connect".into()), "{line}");
    checks::at_rest(&gateway).await;
}

/// Nobody answers the connect: 504 at the connect timeout.
#[tokio::test]
async fn a_swallowed_connect_is_504() {
    let blackhole = Blackhole::start().await;
    let gateway = Gateway::start(Settings::new(&[blackhole.addr()])).await;
    checks::rejected(&gateway.ask(&Request::chat()).await, 504, "connect_timeout");
    assert_eq!(gateway.only_access().await["phase"], "connect");
    checks::at_rest(&gateway).await;
}

/// What is not HTTP is never forwarded: 502.
#[tokio::test]
async fn an_answer_that_is_not_http_is_502() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send("SSH-2.0-OpenSSH_9.2 this is not HTTP\r\n\r\n").await;
    checks::rejected(&client.answer().await, 502, "upstream_error");
    call.gone().await;
}

/// B12: an upgrade that nobody asked for is no answer.
#[tokio::test]
async fn an_unasked_101_is_502() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nsecret").await;
    checks::rejected(&client.answer().await, 502, "upstream_error");
    call.gone().await;
}

/// B12: interim answers are not the answer.
#[tokio::test]
async fn interim_answers_are_passed_over() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n").await;
    call.stream("x").await;
    let mut head = client.head().await;
    while head.status() < 200 {
        head = client.head().await;
    }
    assert_eq!(head.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("x"), DONE].concat().as_bytes());
}

/// A close before any answer, and nobody else to ask: 502.
#[tokio::test]
async fn a_close_before_the_answer_is_502() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    for request in [Request::chat(), Request::unary()] {
        let mut client = gateway.send(&request).await;
        upstream.call().await.close();
        checks::rejected(&client.answer().await, 502, "upstream_disconnected");
        upstream.assert_not_asked();
    }
}

/// B6: bytes after the body end the connection's use, not the answer.
#[tokio::test]
async fn bytes_after_the_body_do_not_reach_the_next_exchange() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    call.send([json_answer(ANSWER), b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".to_vec()].concat())
        .await;
    checks::same(&client.answer().await.body, ANSWER.as_bytes());
    client.send(Request::unary().bytes()).await;
    let next = upstream.call().await;
    assert_eq!(next.connection, 1, "the polluted connection is not used again");
    next.answer(json_answer(ANSWER)).await;
    checks::same(&client.answer().await.body, ANSWER.as_bytes());
}

crate::over_h2! {
    a_silent_engine_is_given_up_at_first_event,
    a_silent_engine_is_given_up_at_unary,
    comments_do_not_stop_the_first_event_timeout,
    an_error_status_is_not_wrapped,
    a_relayed_500_is_counted_as_the_engines_error,
    a_refused_connect_is_502,
    a_swallowed_connect_is_504,
    an_answer_that_is_not_http_is_502,
    an_unasked_101_is_502,
    interim_answers_are_passed_over,
    a_close_before_the_answer_is_502,
    bytes_after_the_body_do_not_reach_the_next_exchange,
}

/// Pingora keeps no connection on which proxying failed: whoever is told 502, 503 or 504 of ours is told that it closes.
#[tokio::test]
async fn an_error_of_ours_says_that_its_connection_closes() {
    let dead = Refusing::start();
    let gateway = Gateway::start(Settings::new(&[dead.addr()])).await;
    let mut client = gateway.send(&Request::unary()).await;
    let answer = client.answer().await;
    checks::rejected(&answer, 502, "upstream_error");
    assert_eq!(answer.head.get("connection"), Some("close"));
    client.closed().await;
}
