//! An HTTP/2 connection: how it begins, whom it carries, how long it may be quiet, and how it ends.

use crate::support::frames::{self, END_HEADERS, END_STREAM, HEADERS, Raw, SETTINGS, frame};
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{ANSWER, CHAT_PATH, DONE, MIB, Request, event, json_answer};
use crate::support::{Client, End, Settings, as_is, checks, h2_engine, sibling, streaming};
use h2::Reason;
use serde_json::json;
use tokio::net::TcpStream;

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
        settings.set("server.request.header_timeout", "1s").set("server.request.keepalive", "1500ms")
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
    silence(ms(2000)).await;
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
    ];
    let count = cases.len();
    for (request, status, code) in cases {
        client.send(request.bytes()).await;
        checks::rejected(&client.answer().await, status, code);
    }
    let lines = gateway.all_access(count).await;
    assert!(lines.iter().all(|line| line["outcome"] == "rejected" && line["client"] == "127.0.0.1"));
    client.send(Request::chat().bytes()).await;
    upstream.call().await.stream("ok").await;
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
