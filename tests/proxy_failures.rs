//! Failures are told: a real status before commitment, one error event after it, and an engine's own
//! error answer as it is.

mod support;

use support::sockets::{Blackhole, Refusing};
use support::wait::ms;
use support::wire::{ANSWER, DONE, FINISH, Request, answer, chunk, event, json_answer};
use support::{Call, Client, End, Gateway, Settings, Upstream, as_is, checks, one_engine, streaming};

/// A stream with two events already at the client.
async fn two_events(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    streaming(gateway, upstream, &["1", "2"]).await
}

fn delivered() -> String {
    [event("1"), event("2")].concat()
}

/// The books of an exchange that an engine cut after its head.
async fn cut_was_counted(gateway: &Gateway, upstream: &mut Upstream, fds: usize) {
    let line = gateway.only_access().await;
    assert_eq!(line["outcome"], "upstream_error", "{line}");
    assert_eq!(line["attempts"], 1, "never tried again after commitment: {line}");
    checks::at_rest(gateway).await;
    upstream.assert_not_asked();
    let connections = upstream.connections();
    checks::alive(gateway, upstream, fds).await;
    assert_eq!(upstream.connections(), connections + 1, "the cut connection is not used again");
}

/// H06 (a): FIN in the middle of a chunk. The partial event is dropped, the error event stands at a boundary.
#[tokio::test]
async fn a_fin_inside_a_chunk_becomes_an_error_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.send("40\r\ndata: {\"x\"").await;
    call.close();
    checks::broken(&mut client, &delivered(), "upstream_disconnected").await;
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// H06 (b): the same with a reset.
#[tokio::test]
async fn a_reset_inside_a_chunk_becomes_an_error_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.send("40\r\ndata: {\"x\"").await;
    call.reset();
    checks::broken(&mut client, &delivered(), "upstream_disconnected").await;
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// A FIN between two events, after the head of the stream only, is a cut as well.
#[tokio::test]
async fn a_fin_between_events_becomes_an_error_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let (mut client, call) = two_events(&gateway, &mut upstream).await;
    call.close();
    checks::broken(&mut client, &delivered(), "upstream_disconnected").await;
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// H06 (c): a body that is no stream and stays short of its length is short for the client too.
#[tokio::test]
async fn a_short_body_stays_short() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    let part = "x".repeat(400);
    call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n").await;
    call.send(&part).await;
    assert_eq!(client.head().await.status(), 200);
    client.until_body(part.as_bytes()).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
    checks::same(client.body(), part.as_bytes());
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// A part of a large event has gone out: no error event can follow it, so the framing breaks.
#[tokio::test]
async fn a_cut_inside_a_large_event_breaks_the_framing() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    let part = format!("data: {}", "x".repeat(100_000));
    call.chunk(&part).await;
    let whole = [delivered(), part].concat();
    client.until_len(delivered().len() + 1).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
    assert!(whole.as_bytes().starts_with(client.body()), "nothing is added after the partial event");
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
}

/// `failure_end: abort`: after the error event the framing breaks.
#[tokio::test]
async fn failure_end_abort_breaks_the_framing_after_the_error_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.failure_end", "abort")).await;
    let (mut client, call) = two_events(&gateway, &mut upstream).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
    let body = String::from_utf8_lossy(client.body()).into_owned();
    let error = body.strip_prefix(&delivered()).expect("what came is delivered");
    assert!(error.contains("upstream_disconnected"), "{error}");
}

/// H13 (d): an engine that never answers: 504 at first_event, for a stream.
#[tokio::test]
async fn a_silent_engine_is_given_up_at_first_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.first_event", "500ms")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    let reply = client.answer().await;
    checks::rejected(&reply, 504, "first_event_timeout");
    call.gone().await;
    timed_out(&gateway, "first_event").await;
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
    timed_out(&gateway, "unary").await;
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
    timed_out(&gateway, "first_event").await;
}

/// After commitment the same timeout is told as an event.
#[tokio::test]
async fn a_committed_stream_without_events_ends_in_an_error_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.first_event", "500ms")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    checks::broken(&mut client, "", "first_event_timeout").await;
    call.gone().await;
}

/// An engine that falls silent between events, comments aside.
#[tokio::test]
async fn an_idle_stream_ends_in_an_error_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.idle", "500ms")).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.chunk(": still here\n\n").await;
    let delivered = format!("{}: still here\n\n", delivered());
    client.until_body(delivered.as_bytes()).await;
    checks::broken(&mut client, &delivered, "idle_timeout").await;
    call.gone().await;
    timed_out(&gateway, "stream").await;
}

/// A held partial event is dropped when the idle timeout cuts the stream.
#[tokio::test]
async fn an_idle_timeout_drops_the_partial_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.idle", "500ms")).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.chunk("data: {\"half").await;
    checks::broken(&mut client, &delivered(), "idle_timeout").await;
    call.gone().await;
}

/// H13: a stream that goes on for ever ends at the total timeout.
#[tokio::test]
async fn an_endless_stream_ends_at_the_total_timeout() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.total", "1s")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    let engine = tokio::spawn(async move {
        let mut sent = 0;
        while call.try_send(chunk(event("x"))).await.is_ok() {
            sent += 1;
            support::wait::silence(ms(50)).await;
        }
        sent
    });
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    let count = client.body().windows(event("x").len()).filter(|w| *w == event("x").as_bytes()).count();
    checks::broken(&mut client, &event("x").repeat(count), "total_timeout").await;
    assert!(engine.await.unwrap() >= count, "the engine is left");
    timed_out(&gateway, "stream").await;
}

async fn timed_out(gateway: &Gateway, phase: &str) {
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["phase"]), (&"timeout".into(), &phase.into()), "{line}");
    assert_eq!(line["attempts"], 1, "a request that timed out is not sent again: {line}");
    gateway.wait_metric("requests_total", &[("outcome", "timeout")], 1.0).await;
    checks::at_rest(gateway).await;
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

/// An error object inside a 200 stream passes as data, and `[DONE]` after it is no success.
#[tokio::test]
async fn an_error_object_in_a_stream_passes_and_is_counted() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    let error = "data: {\"error\":{\"message\":\"engine died\",\"type\":\"server_error\",\"code\":500}}\n\n";
    call.chunk(error).await;
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&delivered(), error, DONE].concat().as_bytes());
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
}

/// A missing end marker is counted, not judged, and never invented.
#[tokio::test]
async fn a_missing_end_marker_is_not_invented() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.chunk(FINISH).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&delivered(), FINISH].concat().as_bytes());
    assert_eq!(gateway.only_access().await["outcome"], "completed");
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
