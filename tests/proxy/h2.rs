//! Streams of HTTP/2 beside each other: windows, resets, and what an engine is asked. What belongs to the
//! connection is in `proxy/h2_connection`; the cases of the other files run over HTTP/2 as well (`over_h2!`).

use std::sync::atomic::Ordering;

use crate::support;
use crate::support::frames::{self, END_HEADERS, END_STREAM, HEADERS, Raw, frame};
use crate::support::wait::{SOON, ms, silence, wait_until, within};
use crate::support::wire::{CHAT, CHAT_PATH, MIB, Request, chunk, event, whole_stream};
use crate::support::{Client, End, Settings, as_is, checks, h2_engine, sibling, streaming};
use bytes::Bytes;
use h2::Reason;
use tokio::net::TcpStream;

/// No stream waits for another whose window is not opened.
#[tokio::test]
async fn a_stalled_stream_never_slows_its_siblings() {
    let (gateway, mut upstream) = h2_engine(|settings| settings.set("stream.write_stall", "60s")).await;
    let (mut stalled, call) = streaming(&gateway, &mut upstream, &["1"]).await;
    call.narrow();
    let (taken, flood) = call.flood(chunk(event(&"x".repeat(10_000))), 64 * MIB);
    let flood = tokio::spawn(flood);
    let mut before = 0;
    wait_until("the engine is blocked", 2 * SOON, || {
        let now = taken.load(Ordering::SeqCst);
        std::mem::replace(&mut before, now) == now && now > 64 * 1024
    })
    .await;
    let (mut client, mut call) = sibling(&mut stalled, &mut upstream).await;
    let mut sent = String::new();
    for n in 0..50 {
        let event = event(&n.to_string());
        call.chunk(&event).await;
        sent += &event;
        client.until_body(sent.as_bytes()).await;
    }
    checks::ends_same(client, call, sent.as_bytes()).await;
    assert!(taken.load(Ordering::SeqCst) < 8 * MIB, "the flood is held back");
    stalled.h2().cancel();
    assert!(within("the engine is left", SOON, flood).await.unwrap().is_none());
    checks::at_rest(&gateway).await;
}

/// `write_stall` ends one stream and frees its engine; its connection and its siblings go on.
#[tokio::test]
async fn a_stream_that_takes_nothing_is_reset_alone() {
    let (gateway, mut upstream) = h2_engine(|settings| settings.set("stream.write_stall", "700ms")).await;
    let (mut stalled, call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let (mut client, mut other) = sibling(&mut stalled, &mut upstream).await;
    let (_, flood) = call.flood(chunk(event(&"x".repeat(10_000))), 64 * MIB);
    assert!(within("the engine is left", 2 * SOON, flood).await.is_none());
    let line = gateway.wait_access("the stalled one", |line| line["outcome"] == "client_stalled").await;
    assert_eq!(line["phase"], "stream", "{line}");
    assert_eq!(stalled.end().await, End::Broken);
    assert_eq!(stalled.h2().reset, Some(Reason::CANCEL));
    other.chunk(event("on")).await;
    client.until_body(event("on").as_bytes()).await;
    checks::ends_same(client, other, event("on").as_bytes()).await;
    checks::at_rest(&gateway).await;
}

/// A client whose socket takes nothing stalls all its streams, and all of them end.
#[tokio::test]
async fn a_socket_that_takes_nothing_ends_all_its_streams() {
    let (gateway, mut upstream) = h2_engine(|settings| settings.set("stream.write_stall", "700ms")).await;
    // Windows of 2 GiB, so that nothing but the socket can be full.
    let wide = frames::setting(4, i32::MAX as u32);
    let mut raw = Raw::connect(gateway.addr, &wide).await;
    let open = i32::MAX as u32 - 65_535;
    raw.send(&frame(frames::WINDOW_UPDATE, 0, 0, &open.to_be_bytes())).await.unwrap();
    let mut floods = Vec::new();
    for n in 0..3 {
        let stream = 2 * n + 1;
        let head = [frames::request("POST", CHAT_PATH), frames::literal("content-type", "application/json")];
        raw.send(&frame(HEADERS, END_HEADERS, stream, &head.concat())).await.unwrap();
        raw.send(&frame(frames::DATA, END_STREAM, stream, CHAT.as_bytes())).await.unwrap();
        let mut call = upstream.call().await;
        call.open().await;
        let (_, flood) = call.flood(chunk(event(&"x".repeat(10_000))), 64 * MIB);
        floods.push(tokio::spawn(flood));
    }
    for flood in floods {
        assert!(within("every engine is left", 2 * SOON, flood).await.unwrap().is_none());
    }
    let outcomes = gateway.all_access(3).await.into_iter().map(|line| line["outcome"].clone());
    assert_eq!(outcomes.collect::<Vec<_>>(), ["client_stalled"; 3]);
    checks::at_rest(&gateway).await;
}

/// Windows of one byte, opened byte by byte: all of it arrives.
#[tokio::test]
async fn windows_of_one_byte_let_everything_through() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    let stream = TcpStream::connect(gateway.addr).await.unwrap();
    let mut client = Client::over_h2(stream, 1).await;
    client.send(Request::chat().bytes()).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(whole_stream()).await;
    assert_eq!(client.head().await.status(), 200);
    client.until_body(whole_stream().as_bytes()).await;
    checks::ends_same(client, call, whole_stream().as_bytes()).await;
    assert_eq!(gateway.only_access().await["outcome"], "completed");
}

/// H08: a body that ends with an empty DATA frame is one request with one end, and the connection to the
/// engine serves the next client.
#[tokio::test]
async fn h08_an_empty_last_frame_ends_a_body_once() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    for content in ["one", "two"] {
        let mut client = gateway.client().await;
        let request = Request::post(CHAT_PATH, CHAT).chunked(20);
        client.send(request.head()).await;
        client.h2().give(Bytes::from_static(CHAT.as_bytes()), false).await.unwrap();
        silence(ms(50)).await;
        client.h2().give(Bytes::new(), true).await.unwrap();
        let call = upstream.call().await;
        checks::same(&call.request.body, CHAT.as_bytes());
        assert_eq!(call.request.head.all("transfer-encoding"), [""; 0]);
        // Anything behind the request would be read as the next one, and fail there.
        call.stream(content).await;
        checks::streamed(&mut client, content).await;
        gateway.wait_metric("in_flight", &[], 0.0).await;
    }
    assert_eq!(upstream.connections(), 1);
    upstream.assert_not_asked();
}

/// The framing is broken by a reset that says whose fault it was, behind all that came before.
#[tokio::test]
async fn a_broken_answer_is_reset_behind_its_last_byte() {
    let (gateway, mut upstream) = h2_engine(|settings| settings.set("stream.event_hold", "1KiB")).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let half = format!("data: {}", "x".repeat(60_000));
    call.chunk(&half).await;
    let sent = [event("1"), half].concat();
    client.until_len(sent.len()).await;
    call.reset();
    assert_eq!(client.end().await, End::Broken);
    checks::same(client.body(), sent.as_bytes());
    assert_eq!(client.h2().reset, Some(Reason::INTERNAL_ERROR));

    let abort = |settings: Settings| settings.set("stream.failure_end", "abort");
    let (gateway, mut upstream) = h2_engine(abort).await;
    let (mut client, call) = streaming(&gateway, &mut upstream, &["1"]).await;
    call.reset();
    assert_eq!(client.end().await, End::Broken);
    assert!(
        client.body().ends_with(b"\n\n") && client.body().len() > event("1").len(),
        "the error event is out"
    );
}

/// What an engine is asked over HTTP/1.1 says what was asked over HTTP/2.
#[tokio::test]
async fn the_engine_is_asked_in_http_1() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    let request = Request::chat().header("Cookie: a=1").header("Cookie: b=2").header("X-Custom: c");
    let asked = support::relayed(&gateway, &mut upstream, &request).await;
    assert_eq!(asked.head.line, format!("POST {CHAT_PATH} HTTP/1.1"));
    assert_eq!(asked.head.get("cookie"), Some("a=1; b=2"));
    assert_eq!(asked.head.get("x-custom"), Some("c"));
    assert_eq!(asked.head.get("x-forwarded-host"), Some("gateway.test"));
    assert_eq!(asked.head.get("x-forwarded-proto"), Some("http"));
    assert_eq!(asked.head.get("content-length"), Some(CHAT.len().to_string().as_str()));
}

/// A request body whose trailers follow it is whole without them.
#[tokio::test]
async fn trailers_end_a_body() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    let mut client = gateway.client().await;
    client.send(Request::post(CHAT_PATH, CHAT).chunked(20).head()).await;
    client.h2().give(Bytes::from_static(CHAT.as_bytes()), false).await.unwrap();
    client.h2().trailers();
    let call = upstream.call().await;
    checks::same(&call.request.body, CHAT.as_bytes());
    let before = gateway.cpu_ticks();
    silence(ms(300)).await;
    assert!(gateway.cpu_ticks() - before < 15, "waiting for the engine is no work");
    call.stream("ok").await;
    checks::streamed(&mut client, "ok").await;
}
