//! A client that leaves stops the engine's work, in every phase, and the books say so.

use crate::support;
use crate::support::sockets::Blackhole;
use crate::support::upstream::either;
use crate::support::wait::{ms, silence};
use crate::support::wire::{ANSWER, CHAT, CHAT_PATH, DONE, Request, chunk, event, json_answer};
use crate::support::{End, Gateway, Gone, Leave, Settings, checks, one_engine, streaming, two_engines};
use serde_json::json;

/// No timer of the gateway may be what stops the engine.
fn patient(settings: Settings) -> Settings {
    ["connect", "first_event", "unary", "idle"]
        .into_iter()
        .fold(settings, |settings, timeout| settings.set(&format!("timeouts.{timeout}"), "25s"))
}

/// H09: gone during the prefill, though the engine never says a byte; the other node hears nothing.
#[tokio::test]
async fn leaving_during_the_prefill_stops_the_engine() {
    let completion = r#"{"model":"m","stream":true,"prompt":"hi"}"#;
    let embedding = r#"{"model":"m","input":"hi"}"#;
    let requests = [
        (Request::chat(), "first_event"),
        (Request::unary(), "unary"),
        (Request::post("/v1/completions", completion), "first_event"),
        (Request::post("/v1/embeddings", embedding), "unary"),
    ];
    for how in Leave::ways() {
        for (request, phase) in &requests {
            let (gateway, mut one, mut two) = two_engines(patient).await;
            let client = gateway.send(request).await;
            let (mut call, other) = either(&mut one, &mut two).await;
            gateway.wait_metric("in_flight", &[("cluster", "c")], 1.0).await;
            client.leave(how);
            checks::cancel(&gateway, &mut call, phase).await;
            other.assert_not_asked();
            assert_eq!(other.connections(), 0);
            let line = gateway.only_access().await;
            assert!(line["cancel_ms"].is_number(), "{line}");
            assert_eq!(line["attempts"], 1, "{line}");
        }
    }
}

/// Gone while the engine's 200 is held for its first event.
#[tokio::test]
async fn leaving_while_the_head_is_held_stops_the_engine() {
    for how in Leave::ways() {
        let hold = |settings: Settings| patient(settings).set("stream.hold_headers", "20s");
        let (gateway, mut upstream) = one_engine(hold).await;
        let client = gateway.send(&Request::chat()).await;
        let mut call = upstream.call().await;
        call.open().await;
        call.chunk(": prefill\n\n").await;
        silence(ms(50)).await;
        client.leave(how);
        checks::cancel(&gateway, &mut call, "first_event").await;
    }
}

/// Gone during the upload: no engine is ever asked.
#[tokio::test]
async fn leaving_during_the_upload_asks_no_engine() {
    for how in Leave::ways() {
        let (gateway, upstream) = one_engine(patient).await;
        let request = Request::post(CHAT_PATH, "x".repeat(100_000));
        let mut client = gateway.client().await;
        client.send(request.head()).await;
        client.send("x".repeat(50_000)).await;
        gateway
            .wait_metric_where("a body is held", "held_bytes", &[("kind", "body")], |held| held > 0.0)
            .await;
        client.leave(how);
        checks::cancelled(&gateway, "upload").await;
        assert_eq!(upstream.connections(), 0);
    }
}

/// Gone while the connect is unanswered: not at the connect timeout, but at once.
#[tokio::test]
async fn leaving_during_the_connect_ends_it() {
    for how in Leave::ways() {
        let blackhole = Blackhole::start().await;
        let gateway = Gateway::start(patient(Settings::new(&[blackhole.addr()]))).await;
        let client = gateway.send(&Request::chat()).await;
        gateway.wait_metric("in_flight", &[("cluster", "c")], 1.0).await;
        client.leave(how);
        checks::cancelled(&gateway, "connect").await;
    }
}

/// H11: gone between two events, and inside one.
#[tokio::test]
async fn leaving_during_the_stream_stops_the_engine() {
    for how in Leave::ways() {
        for partial in ["", "data: {\"half"] {
            let (gateway, mut upstream) = one_engine(patient).await;
            let fds = gateway.fd_count();
            let (client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
            if !partial.is_empty() {
                call.chunk(partial).await;
            }
            client.leave(how);
            checks::cancel(&gateway, &mut call, "stream").await;
            let connections = upstream.connections();
            checks::alive(&gateway, &mut upstream, fds).await;
            assert_eq!(upstream.connections(), connections + 1, "a cancelled connection is not used again");
        }
    }
}

/// Gone during a whole answer that has begun.
#[tokio::test]
async fn leaving_during_a_whole_answer_stops_the_engine() {
    for how in Leave::ways() {
        let (gateway, mut upstream) = one_engine(patient).await;
        let mut client = gateway.send(&Request::unary()).await;
        let mut call = upstream.call().await;
        call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await;
        assert_eq!(client.head().await.status(), 200);
        client.leave(how);
        checks::cancel(&gateway, &mut call, "unary").await;
    }
}

/// Gone while the engine writes as fast as it can: the failed write stops it.
#[tokio::test]
async fn a_failed_write_stops_the_engine() {
    for how in Leave::ways() {
        let (gateway, mut upstream) = one_engine(patient).await;
        let (mut client, call) = streaming(&gateway, &mut upstream, &["1"]).await;
        let (_, flood) = call.flood(chunk(event(&"x".repeat(1000))), usize::MAX / 2);
        client.until_len(100_000).await;
        client.leave(how);
        let left = support::wait::within("the engine is left", support::wait::SOON, flood).await;
        assert!(left.is_none(), "the flood ends by a failed write");
        checks::cancelled(&gateway, "stream").await;
    }
}

/// A later exchange on the same client connection is watched like the first.
#[tokio::test]
async fn a_second_exchange_on_a_connection_is_cancelled_as_well() {
    let (gateway, mut upstream) = one_engine(patient).await;
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    client.send(Request::chat().bytes()).await;
    let mut call = upstream.call().await;
    client.close();
    checks::cancel(&gateway, &mut call, "first_event").await;
}

/// H10, `half_close: abort`: a FIN is a client that is gone.
#[tokio::test]
async fn a_half_close_is_a_cancel_by_default() {
    for (request, phase) in [(Request::chat(), "first_event"), (Request::unary(), "unary")] {
        let (gateway, mut upstream) = one_engine(patient).await;
        let mut client = gateway.send(&request).await;
        let mut call = upstream.call().await;
        client.half_close().await;
        checks::cancel(&gateway, &mut call, phase).await;
        client.closed().await;
        assert_eq!(client.raw(), b"", "nothing is answered");
    }
}

/// H10, `half_close: finish`: the answer comes whole, then the connection closes, and nothing spins.
#[tokio::test]
async fn a_half_close_is_served_when_the_file_says_so() {
    let finish = |settings: Settings| {
        patient(settings).set("stream.half_close", "finish").set("stream.heartbeat", "20s")
    };
    let (gateway, mut upstream) = one_engine(finish).await;
    for stream in [true, false] {
        let mut client = gateway.send(&if stream { Request::chat() } else { Request::unary() }).await;
        let mut call = upstream.call().await;
        client.half_close().await;
        let ticks = gateway.cpu_ticks();
        silence(ms(500)).await;
        assert!(gateway.cpu_ticks() - ticks < 25, "spins while it waits");
        let expected = if stream { [&event("x"), DONE].concat() } else { ANSWER.to_owned() };
        if stream {
            call.open().await;
            call.chunk(event("x")).await;
            call.chunk(DONE).await;
            call.finish().await;
        } else {
            call.answer(json_answer(ANSWER)).await;
        }
        let reply = client.answer().await;
        assert_eq!((reply.status(), reply.end), (200, End::Clean));
        checks::same(&reply.body, expected.as_bytes());
        client.closed().await;
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 2.0).await;
    checks::at_rest(&gateway).await;
}

/// H10, `half_close: finish`: who really leaves is found out by the next heartbeat.
#[tokio::test]
async fn with_half_close_served_a_heartbeat_finds_who_left() {
    let finish = |settings: Settings| {
        patient(settings).set("stream.half_close", "finish").set("stream.heartbeat", "100ms")
    };
    let (gateway, mut upstream) = one_engine(finish).await;
    let (client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    client.close();
    call.gone().await;
    assert_eq!(gateway.only_access().await["outcome"], "client_closed");
    checks::at_rest(&gateway).await;
}

/// H11: two hundred clients leave one after the other; the next is always served, and nothing piles up.
#[tokio::test]
async fn leaving_again_and_again_leaves_nothing_behind() {
    let (gateway, mut upstream) = one_engine(patient).await;
    checks::alive(&gateway, &mut upstream, usize::MAX / 2).await;
    let (fds, rss) = (gateway.fd_count(), gateway.rss_kb());
    let rounds = 200;
    for round in 0..rounds {
        let (mut client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
        call.chunk(event("2")).await;
        call.chunk(event("3")).await;
        client.until_len(3 * event("1").len()).await;
        client.leave([Leave::Fin, Leave::Reset][round % 2]);
        call.gone().await;
    }
    gateway.wait_metric("cancels_total", &[("phase", "stream")], rounds as f64).await;
    checks::at_rest(&gateway).await;
    checks::alive(&gateway, &mut upstream, fds).await;
    let grown = gateway.rss_kb().saturating_sub(rss);
    assert!(grown < 16 * 1024, "{grown} KiB after {rounds} cancels");
}

/// The gateway leaves the engine with a plain close.
#[tokio::test]
async fn the_engine_sees_a_fin() {
    let (gateway, mut upstream) = one_engine(patient).await;
    let (client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    client.close();
    assert_eq!(call.gone().await, Gone::Fin);
}

/// What the log says of a cancel: whose doing, where, and what had come.
#[tokio::test]
async fn a_cancel_is_told_in_the_access_line() {
    let (gateway, mut upstream) = one_engine(patient).await;
    let mut client = gateway.client().await;
    client.send(Request::post(CHAT_PATH, CHAT).header("x-request-id: leaving-1").bytes()).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(event("1")).await;
    client.head().await;
    client.until_body(event("1").as_bytes()).await;
    client.close();
    call.gone().await;
    let line = gateway.only_access().await;
    let wanted = json!({
        "request_id": "leaving-1", "method": "POST", "path": CHAT_PATH, "route": "chat", "cluster": "c",
        "backend": "u1", "attempts": 1, "status": 200, "outcome": "client_closed", "phase": "stream",
        "streaming": true, "model": "m", "events": 1,
    });
    for (name, value) in wanted.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name}: {line}");
    }
}

crate::over_h2! {
    leaving_during_the_prefill_stops_the_engine,
    leaving_while_the_head_is_held_stops_the_engine,
    leaving_during_the_upload_asks_no_engine,
    leaving_during_the_connect_ends_it,
    leaving_during_the_stream_stops_the_engine,
    leaving_during_a_whole_answer_stops_the_engine,
    a_failed_write_stops_the_engine,
    a_second_exchange_on_a_connection_is_cancelled_as_well,
    leaving_again_and_again_leaves_nothing_behind,
    the_engine_sees_a_fin,
    a_cancel_is_told_in_the_access_line,
}
