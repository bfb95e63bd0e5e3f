//! Retries: once more when the engine surely did not start or nothing has reached the client, with the
//! identical body, on a node not yet tried; never otherwise.

use crate::support::sockets::Refusing;
use crate::support::upstream::either;
use crate::support::wait::{ms, silence};
use crate::support::wire::{
    CHAT, CHAT_PATH, MIB, Request, SSE_HEAD, answer, chat_of, chunk, event, stream_answer,
};
use crate::support::{Call, Client, Gateway, Settings, Upstream, as_is, checks, one_engine, two_engines};

/// Serves one exchange, so that a connection waits in the pool; the engine keeps hold of it.
async fn pooled(gateway: &Gateway, upstream: &mut Upstream) -> Call {
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send(stream_answer("first")).await;
    checks::streamed(&mut client, "first").await;
    checks::at_rest(gateway).await;
    call
}

/// A request that is on a pooled connection. It is missed now and then, in the moment in which the pool takes it back.
async fn on_the_pooled_one() -> (Gateway, Upstream, Client, Call) {
    for _ in 0..5 {
        let (gateway, mut upstream) = one_engine(as_is).await;
        pooled(&gateway, &mut upstream).await.keep();
        let client = gateway.send(&Request::unary()).await;
        let call = upstream.call().await;
        if call.connection == 0 {
            return (gateway, upstream, client, call);
        }
    }
    panic!("no pooled connection was used again");
}

/// The exchange after a pooled connection died: one fresh connection, the same node, the same body.
async fn resent(gateway: &Gateway, upstream: &mut Upstream, client: &mut Client, body: &[u8]) {
    let call = upstream.call().await;
    assert_eq!(call.connection, 1, "a fresh connection");
    checks::same(&call.request.body, body);
    call.stream("second").await;
    checks::streamed(client, "second").await;
    upstream.assert_not_asked();
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 2.0).await;
    let line = gateway.all_access(2).await.remove(1);
    assert_eq!(line["attempts"], 1, "a resend is no attempt: {line}");
}

/// H15 (a): the pooled connection was closed shortly before.
#[tokio::test]
async fn a_closed_pooled_connection_is_replaced() {
    for size in [1024, MIB] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        pooled(&gateway, &mut upstream).await.close();
        silence(ms(10)).await;
        let body = chat_of(size);
        let mut client = gateway.send(&Request::post(CHAT_PATH, &body)).await;
        resent(&gateway, &mut upstream, &mut client, &body).await;
    }
}

/// H15 (b): the pooled connection is reset when the request arrives.
#[tokio::test]
async fn a_pooled_connection_reset_by_the_request_is_replaced() {
    for size in [1024, MIB] {
        let body = chat_of(size);
        let mut is_met = false;
        // The pooled one may be missed, as in `on_the_pooled_one`.
        for _ in 0..5 {
            // A large upload may take longer than an idle connection is kept by default.
            let kept = |settings: Settings| settings.set("clusters.c.keepalive", "1m");
            let (gateway, mut upstream) = one_engine(kept).await;
            let call = pooled(&gateway, &mut upstream).await;
            let mut client = gateway.send(&Request::post(CHAT_PATH, &body)).await;
            if call.next_byte().await {
                call.reset();
                resent(&gateway, &mut upstream, &mut client, &body).await;
                is_met = true;
                break;
            }
        }
        assert!(is_met, "no pooled connection was used again");
    }
}

/// H15 (c): an idle connection is given up before the engine gives it up.
#[tokio::test]
async fn an_idle_pooled_connection_is_closed_in_time() {
    let settings = |settings: Settings| settings.set("clusters.c.keepalive", "500ms");
    let (gateway, mut upstream) = one_engine(settings).await;
    let mut call = pooled(&gateway, &mut upstream).await;
    call.gone().await;
    let mut client = gateway.send(&Request::chat()).await;
    resent(&gateway, &mut upstream, &mut client, CHAT.as_bytes()).await;
}

/// H15 (d): a reset on a fresh connection is tried once on the other node, whatever the body's size.
#[tokio::test]
async fn a_reset_before_the_answer_moves_to_the_other_node() {
    for size in [1024, 65_537, MIB, 8 * MIB] {
        let (gateway, mut one, mut two) = two_engines(as_is).await;
        let body = chat_of(size);
        let mut client = gateway.send(&Request::post(CHAT_PATH, &body)).await;
        let (call, other) = either(&mut one, &mut two).await;
        checks::same(&call.request.body, &body);
        call.reset();
        let call = other.call().await;
        checks::same(&call.request.body, &body);
        call.stream("moved").await;
        checks::streamed(&mut client, "moved").await;
        moved_once(&gateway).await;
        one.assert_not_asked();
        two.assert_not_asked();
    }
}

async fn moved_once(gateway: &Gateway) {
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["attempts"]), (&"completed".into(), &2.into()), "{line}");
    gateway.wait_metric("retries_total", &[("cluster", "c")], 1.0).await;
    checks::at_rest(gateway).await;
}

/// H15 (d): the same node is never asked twice.
#[tokio::test]
async fn without_another_node_a_reset_is_502() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    upstream.call().await.reset();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    upstream.assert_not_asked();
    assert_eq!(gateway.only_access().await["attempts"], 1);
}

/// P6: two nodes fail, the last failure is told.
#[tokio::test]
async fn two_attempts_are_all() {
    let (gateway, mut one, mut two) = two_engines(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (call, other) = either(&mut one, &mut two).await;
    call.close();
    other.call().await.close();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["attempts"]), (&"upstream_error".into(), &2.into()), "{line}");
    one.assert_not_asked();
    two.assert_not_asked();
}

/// A cluster with `retry.attempts: 1` never moves.
#[tokio::test]
async fn one_attempt_means_one() {
    let once = |settings: Settings| settings.set("clusters.c.retry", serde_json::json!({ "attempts": 1 }));
    let (gateway, mut one, mut two) = two_engines(once).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (call, other) = either(&mut one, &mut two).await;
    call.close();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    other.assert_not_asked();
}

/// B1: a node that refuses is passed over without the client noticing.
#[tokio::test]
async fn a_refused_connect_moves_to_the_other_node() {
    let refusing = Refusing::start();
    let engine = Upstream::answering(|_| stream_answer("ok")).await;
    let gateway = Gateway::start(Settings::new(&[refusing.addr(), engine])).await;
    for _ in 0..10 {
        let mut client = gateway.send(&Request::chat()).await;
        checks::streamed(&mut client, "ok").await;
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 10.0).await;
}

/// A second attempt takes no turn: beside a dead node only every other exchange meets it.
#[tokio::test]
async fn a_dead_node_costs_only_the_exchanges_whose_turn_it_is() {
    let refusing = Refusing::start();
    let engine = Upstream::answering(|_| stream_answer("ok")).await;
    let gateway = Gateway::start(Settings::new(&[refusing.addr(), engine])).await;
    for count in 1..=6 {
        let mut client = gateway.send(&Request::chat()).await;
        checks::streamed(&mut client, "ok").await;
        // One after the other: the line is written when the turn is over.
        gateway.all_access(count).await;
    }
    let attempts: Vec<_> = gateway.all_access(6).await.iter().map(|line| line["attempts"].as_u64()).collect();
    assert_eq!(attempts, [2, 1, 2, 1, 2, 1].map(Some));
}

/// H14 and B16: 429, 502, 503 and 504 move; the other node's answer is the client's.
#[tokio::test]
async fn an_overloaded_node_is_left_for_the_other() {
    for status in
        ["429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"]
    {
        let (gateway, mut one, mut two) = two_engines(as_is).await;
        let mut client = gateway.send(&Request::chat()).await;
        let (call, other) = either(&mut one, &mut two).await;
        call.answer(answer(status, &["Content-Type: application/json"], "{}")).await;
        other.call().await.stream("moved").await;
        checks::streamed(&mut client, "moved").await;
        moved_once(&gateway).await;
    }
}

/// H14: when both say 503, the last answer passes as it was.
#[tokio::test]
async fn the_last_error_answer_passes_as_it_was() {
    let (gateway, mut one, mut two) = two_engines(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    let (call, other) = either(&mut one, &mut two).await;
    call.answer(answer("503 Service Unavailable", &["Retry-After: 5"], "first")).await;
    other.call().await.answer(answer("503 Service Unavailable", &["Retry-After: 7"], "second")).await;
    let reply = client.answer().await;
    assert_eq!((reply.status(), reply.text().as_str()), (503, "second"));
    assert_eq!(reply.head.get("retry-after"), Some("7"));
}

/// B15: 500 and what the client caused are not tried again.
#[tokio::test]
async fn other_error_answers_do_not_move() {
    for status in ["500 Internal Server Error", "400 Bad Request", "404 Not Found"] {
        let (gateway, mut one, mut two) = two_engines(as_is).await;
        let mut client = gateway.send(&Request::chat()).await;
        let (call, other) = either(&mut one, &mut two).await;
        call.answer(answer(status, &[], "as it is")).await;
        let reply = client.answer().await;
        assert_eq!(reply.text(), "as it is", "{status}");
        other.assert_not_asked();
    }
}

/// A request that was sent and timed out may be running: it is not sent again.
#[tokio::test]
async fn a_request_that_timed_out_does_not_move() {
    let short =
        |settings: Settings| settings.set("timeouts.first_event", "400ms").set("timeouts.unary", "400ms");
    let (gateway, mut one, mut two) = two_engines(short).await;
    for (request, code) in [(Request::chat(), "first_event_timeout"), (Request::unary(), "unary_timeout")] {
        let mut client = gateway.send(&request).await;
        let (mut call, other) = either(&mut one, &mut two).await;
        checks::rejected(&client.answer().await, 504, code);
        call.gone().await;
        other.assert_not_asked();
    }
}

/// While the head is held, a cut stream still moves; the client never learns of it.
#[tokio::test]
async fn a_cut_before_the_first_event_moves_while_the_head_is_held() {
    let hold = |settings: Settings| settings.set("stream.hold_headers", "20s");
    let (gateway, mut one, mut two) = two_engines(hold).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (mut call, other) = either(&mut one, &mut two).await;
    call.open().await;
    call.chunk(": prefill\n\n").await;
    call.reset();
    other.call().await.stream("moved").await;
    checks::streamed(&mut client, "moved").await;
    moved_once(&gateway).await;
}

/// The same when the comment and the end come in one piece.
#[tokio::test]
async fn a_comment_and_the_end_at_once_move_while_the_head_is_held() {
    let hold = |settings: Settings| settings.set("stream.hold_headers", "20s");
    for _ in 0..5 {
        let (gateway, mut one, mut two) = two_engines(hold).await;
        let mut client = gateway.send(&Request::chat()).await;
        let (mut call, other) = either(&mut one, &mut two).await;
        call.send([SSE_HEAD.as_bytes(), &chunk(": prefill\n\n")].concat()).await;
        call.close();
        other.call().await.stream("moved").await;
        checks::streamed(&mut client, "moved").await;
        moved_once(&gateway).await;
    }
}

/// After commitment nothing moves, not even before the first event.
#[tokio::test]
async fn a_committed_stream_never_moves() {
    let (gateway, mut one, mut two) = two_engines(as_is).await;
    for events in [0, 1] {
        let mut client = gateway.send(&Request::chat()).await;
        let (mut call, other) = either(&mut one, &mut two).await;
        call.open().await;
        let delivered = event("x").repeat(events);
        if events > 0 {
            call.chunk(&delivered).await;
        }
        assert_eq!(client.head().await.status(), 200);
        client.until_body(delivered.as_bytes()).await;
        call.reset();
        checks::broken(&mut client, &delivered, "upstream_disconnected").await;
        other.assert_not_asked();
    }
    assert_eq!(gateway.metric("retries_total", &[]).await, 0.0);
}

/// A pooled connection that dies later than a stale one would was at work on the request, so the node is
/// not asked again.
#[tokio::test]
async fn a_pooled_connection_that_dies_at_work_is_not_taken_for_a_stale_one() {
    let (gateway, mut upstream, mut client, call) = on_the_pooled_one().await;
    silence(ms(1_200)).await;
    call.reset();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    upstream.assert_not_asked();
    let line = gateway.wait_access("second", |line| line["outcome"] == "upstream_error").await;
    assert_eq!((&line["attempts"], &line["resent"]), (&1.into(), &false.into()), "{line}");
}

crate::over_h2! {
    a_closed_pooled_connection_is_replaced,
    a_pooled_connection_reset_by_the_request_is_replaced,
    an_idle_pooled_connection_is_closed_in_time,
    a_reset_before_the_answer_moves_to_the_other_node,
    without_another_node_a_reset_is_502,
    two_attempts_are_all,
    one_attempt_means_one,
    a_refused_connect_moves_to_the_other_node,
    an_overloaded_node_is_left_for_the_other,
    the_last_error_answer_passes_as_it_was,
    other_error_answers_do_not_move,
    a_request_that_timed_out_does_not_move,
    a_cut_before_the_first_event_moves_while_the_head_is_held,
    a_comment_and_the_end_at_once_move_while_the_head_is_held,
    a_committed_stream_never_moves,
    a_pooled_connection_that_dies_at_work_is_not_taken_for_a_stale_one,
}
