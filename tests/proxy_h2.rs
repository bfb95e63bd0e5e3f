//! What only HTTP/2 has: streams beside each other, windows, resets and goodbyes. The cases of the other
//! files run over it as well (`over_h2!`).

mod support;

use std::sync::atomic::Ordering;

use bytes::Bytes;
use h2::Reason;
use serde_json::json;
use support::frames::{self, END_HEADERS, END_STREAM, HEADERS, Raw, SETTINGS, frame};
use support::protocol::{Protocol, speak};
use support::wait::{SOON, ms, silence, wait_until, within};
use support::wire::{ANSWER, CHAT, CHAT_PATH, DONE, MIB, Request, chunk, event, json_answer, whole_stream};
use support::{Call, Client, End, Gateway, Settings, Upstream, as_is, checks, one_engine, streaming};
use tokio::net::TcpStream;

/// A gateway whose clients speak HTTP/2, in front of one engine.
async fn h2_engine(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream) {
    speak(Protocol::H2c);
    one_engine(adjust).await
}

/// Another stream of `first`'s connection, opened.
async fn sibling(first: &mut Client, upstream: &mut Upstream) -> (Client, Call) {
    let mut client = first.sibling();
    client.send(Request::chat().bytes()).await;
    let mut call = upstream.call().await;
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    (client, call)
}

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

/// On SIGTERM a connection is told, its streams finish, and it is closed behind the last of them.
#[tokio::test]
async fn a_drain_says_goaway_and_lets_streams_finish() {
    let (mut gateway, mut upstream) =
        h2_engine(|settings| settings.set("server.shutdown.drain", "10m")).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    gateway.terminate();
    let late = wait_refused(&mut client).await;
    assert!(late.is_go_away() && late.reason() == Some(Reason::NO_ERROR), "{late}");
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("1"), DONE].concat().as_bytes());
    client.closed().await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    let line = gateway.wait_access("the stream", |line| line["path"] == CHAT_PATH).await;
    assert_eq!(line["outcome"], "completed", "{line}");
}

/// Opens streams until the connection takes no more. What is still accepted is answered.
async fn wait_refused(client: &mut Client) -> h2::Error {
    within("new streams are refused", SOON, async {
        loop {
            let mut late = client.sibling();
            if let Err(error) = late.try_send(Request::bare("GET", "/v1/models").bytes()).await {
                let inner = error.into_inner().expect("an error of HTTP/2");
                return *inner.downcast::<h2::Error>().expect("an error of HTTP/2");
            }
            if let Err(error) = late.h2().try_head().await {
                return error;
            }
        }
    })
    .await
}

/// Connections that say nothing, too little, or nothing more are closed in their time.
#[tokio::test]
async fn silent_connections_are_closed() {
    let short = |settings: Settings| {
        settings.set("server.request.header_timeout", "300ms").set("server.request.keepalive", "400ms")
    };
    let (gateway, mut upstream) = h2_engine(short).await;
    for said in ["", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut client = Client::over(TcpStream::connect(gateway.addr).await.unwrap());
        client.send(said).await;
        client.closed().await;
    }
    let mut raw = Raw::connect(gateway.addr, &[]).await;
    assert_eq!(raw.ended().await, Some(0), "a connection without a request");
    // The time counts from the end of the last stream, not from its beginning.
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    silence(ms(700)).await;
    call.chunk(event("2")).await;
    client.until_body([event("1"), event("2")].concat().as_bytes()).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    client.closed().await;
    assert_eq!(gateway.all_access(1).await[0]["outcome"], "completed");
}

/// A listener with h2c serves HTTP/1.1 as well, whatever its first bytes look like.
#[tokio::test]
async fn http_1_is_served_beside_it() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    let mut client = Client::connect(gateway.addr).await;
    for _ in 0..2 {
        client.send(Request::unary().bytes()).await;
        upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    let mut odd = Client::connect(gateway.addr).await;
    odd.send("PRI * HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(odd.head().await.status(), 404);
    // Shorter than the preface, so nothing may wait for more.
    let mut short = Client::connect(gateway.addr).await;
    short.send("OPTIONS / HTTP/1.0\r\n\r\n").await;
    assert_eq!(short.head().await.status(), 404);
}

/// Heads are bounded and checked as over HTTP/1.1: our own answer, an id, a line.
#[tokio::test]
async fn bad_heads_are_refused_in_our_own_form() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    let mut client = gateway.client().await;
    let long = format!("/{}", "a".repeat(9000));
    let many = (0..101).fold(Request::chat(), |request, n| request.header(&format!("X-{n}: 1")));
    let wide = Request::chat().header(&format!("X-Wide: {}", "y".repeat(33_000)));
    let cases = [
        (Request::bare("GET", &long), 414, "invalid_request"),
        (many, 431, "invalid_request"),
        (wide, 431, "invalid_request"),
        (Request::bare("GET", "/").without("host").header("Host: a@b"), 400, "invalid_request"),
        (Request::bare("GET", "/").header("Content-Length: x"), 400, "invalid_request"),
    ];
    let count = cases.len();
    for (request, status, code) in cases {
        // Sent apart from the client's own reading of a length.
        client.h2().begin_raw(&request).await;
        checks::rejected(&client.answer().await, status, code);
    }
    let lines = gateway.all_access(count).await;
    assert!(lines.iter().all(|line| line["outcome"] == "rejected" && line["client"] == "127.0.0.1"));
    client.send(Request::chat().bytes()).await;
    upstream.call().await.stream("ok").await;
    checks::streamed(&mut client, "ok").await;
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

/// The last frames of an answer are out before the process is.
#[tokio::test]
async fn a_long_answer_is_whole_though_the_process_ends_behind_it() {
    let (mut gateway, mut upstream) =
        h2_engine(|settings| settings.set("server.shutdown.drain", "10m")).await;
    let mut client = gateway.send(&Request::unary()).await;
    let call = upstream.call().await;
    gateway.terminate();
    gateway.wait_log("leaving").await;
    let body = format!("{{\"x\":\"{}\"}}", "y".repeat(4 * MIB));
    let answering = tokio::spawn(call.answer(json_answer(&body)));
    let answer = client.answer_within(4 * SOON).await;
    assert_eq!((answer.status(), answer.end), (200, End::Clean));
    checks::same(&answer.body, body.as_bytes());
    answering.await.unwrap();
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
}

/// As many streams at once as are announced, each with its own answer.
#[tokio::test]
async fn many_streams_share_a_connection() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    let mut first = gateway.client().await;
    let mut clients = Vec::new();
    for n in 0..100 {
        let mut client = first.sibling();
        client.send(Request::chat().header(&format!("X-Stream: {n}")).bytes()).await;
        clients.push(client);
    }
    let mut calls = Vec::new();
    for _ in 0..100 {
        let mut call = upstream.call().await;
        call.open().await;
        calls.push(call);
    }
    gateway.wait_metric("streams_active", &[], 100.0).await;
    for mut call in calls {
        let content = call.request.head.get("x-stream").unwrap().to_owned();
        call.chunk([&event(&content), DONE].concat()).await;
        call.finish().await;
    }
    for (n, mut client) in clients.into_iter().enumerate() {
        checks::streamed(&mut client, &n.to_string()).await;
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 100.0).await;
    checks::at_rest(&gateway).await;
}

/// All streams of a client that goes are cancelled with it.
#[tokio::test]
async fn a_connection_that_goes_takes_its_streams_with_it() {
    let (gateway, mut upstream) = h2_engine(as_is).await;
    let mut first = gateway.client().await;
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(sibling(&mut first, &mut upstream).await);
    }
    let (clients, calls): (Vec<_>, Vec<_>) = open.into_iter().unzip();
    first.close();
    for mut call in calls {
        call.gone().await;
    }
    drop(clients);
    gateway.wait_metric("cancels_total", &[], 20.0).await;
    for line in gateway.all_access(20).await {
        assert_eq!(line["outcome"], "client_closed", "{line}");
        assert_eq!(line["error"], json!(null), "{line}");
        assert!(line["cancel_ms"].is_number(), "{line}");
    }
    checks::at_rest(&gateway).await;
}

/// Frames that a client may send at any time change nothing.
#[tokio::test]
async fn settings_and_pings_are_answered() {
    let (gateway, _upstream) = h2_engine(as_is).await;
    let mut raw = Raw::connect(gateway.addr, &[]).await;
    let settings = raw.until(SETTINGS, 0).await;
    let ids: Vec<u16> = settings.payload.chunks(6).map(|one| u16::from_be_bytes([one[0], one[1]])).collect();
    assert!(ids.contains(&3) && ids.contains(&6), "streams and header lists are bounded: {ids:?}");
    raw.send(&frame(frames::PING, 0, 0, b"12345678")).await.unwrap();
    assert_eq!(raw.until(frames::PING, 0).await.payload, b"12345678");
    raw.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &frames::request("GET", "/v1/models")))
        .await
        .unwrap();
    assert_eq!(raw.until(frames::DATA, 1).await.payload, br#"{"data":[],"object":"list"}"#);
}
