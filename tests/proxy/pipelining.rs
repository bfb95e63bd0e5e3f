//! Clients that send on while they are answered: each request is answered in its turn, whole, and the
//! answer that runs is never the worse for it.

use crate::support::wait::{ms, silence};
use crate::support::wire::{ANSWER, CHAT_PATH, DONE, Request, chat_of, event, json_answer};
use crate::support::{Client, End, Gateway, Settings, Upstream, as_is, checks, one_engine, streaming};

/// A chat request that can be told from others.
fn numbered(number: usize) -> Request {
    let body = format!("{{\"model\":\"m\",\"stream\":false,\"messages\":[],\"user\":\"{number}\"}}");
    Request::post(CHAT_PATH, body)
}

/// The same in chunks, every other time.
fn mixed(number: usize) -> Request {
    if number.is_multiple_of(2) { numbered(number) } else { numbered(number).chunked(7) }
}

fn answer_to(number: usize) -> String {
    format!("{{\"id\":\"{number}\"}}")
}

/// Answers each request with its own number.
async fn echoing() -> Gateway {
    let engine = Upstream::answering(|request| {
        let body: serde_json::Value = serde_json::from_slice(&request.body).expect("a body of its own");
        json_answer(&answer_to(body["user"].as_str().expect("numbered").parse().expect("a number")))
    })
    .await;
    Gateway::start(Settings::new(&[engine])).await
}

async fn answered_in_order(client: &mut Client, count: usize) {
    for number in 0..count {
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.text()), (200, answer_to(number)));
    }
    assert_eq!(client.raw(), b"", "no more answers than requests");
}

/// Two and fifty requests in one write, and cut at every odd place.
#[tokio::test]
async fn requests_in_one_write_are_answered_in_order() {
    let gateway = echoing().await;
    for count in [2, 50] {
        let mut client = gateway.client().await;
        let all: Vec<u8> = (0..count).flat_map(|number| mixed(number).bytes()).collect();
        client.send(&all).await;
        answered_in_order(&mut client, count).await;
        for cut in [1, 97, 997] {
            for piece in all.chunks(cut) {
                client.send(piece).await;
            }
            answered_in_order(&mut client, count).await;
        }
    }
}

/// Requests that come in the middle of a stream wait for its end.
#[tokio::test]
async fn requests_behind_a_stream_wait_for_its_end() {
    for count in [1, 49] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let (mut client, mut call) = streaming(&gateway, &mut upstream, &["a"]).await;
        let all: Vec<u8> = (0..count).flat_map(|number| mixed(number).bytes()).collect();
        client.send(all).await;
        for content in ["b", "c"] {
            call.chunk(event(content)).await;
        }
        call.chunk(DONE).await;
        let stream = [&event("a"), &event("b"), &event("c"), DONE].concat();
        client.until_body(stream.as_bytes()).await;
        upstream.assert_not_asked();
        call.finish().await;
        assert_eq!(client.end().await, End::Clean);
        for number in 0..count {
            let call = upstream.call().await;
            assert!(String::from_utf8_lossy(&call.request.body).contains(&format!("\"user\":\"{number}\"")));
            call.answer(json_answer(ANSWER)).await;
            assert_eq!(client.answer().await.text(), ANSWER);
        }
        let lines = gateway.all_access(count + 1).await;
        assert!(lines.iter().all(|line| line["outcome"] == "completed"), "{lines:?}");
        checks::at_rest(&gateway).await;
    }
}

/// `half_close: finish`: requests that came before the client's end are answered before the connection closes.
#[tokio::test]
async fn the_end_waits_behind_the_requests_before_it() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.half_close", "finish")).await;
    let mut client = gateway.client().await;
    client.send([numbered(0).bytes(), numbered(1).bytes()].concat()).await;
    for number in 0..2 {
        let call = upstream.call().await;
        if number == 0 {
            client.half_close().await;
            silence(ms(50)).await;
        }
        call.answer(json_answer(&answer_to(number))).await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.text()), (200, answer_to(number)));
    }
    client.closed().await;
    assert_eq!(client.raw(), b"", "no more answers than requests");
    checks::at_rest(&gateway).await;
}

/// Who sends on and leaves is gone all the same: his stream ends, and nothing of the rest is begun.
#[tokio::test]
async fn who_sends_on_and_leaves_is_gone() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["a"]).await;
    client.send([numbered(0).bytes(), numbered(1).bytes()].concat()).await;
    // They have been read when the stream has gone on.
    call.chunk(event("b")).await;
    client.until_body([event("a"), event("b")].concat().as_bytes()).await;
    client.close();
    checks::cancel(&gateway, &mut call, "stream").await;
    upstream.assert_not_asked();
}

/// More than is kept: the stream is completed, and the connection closed behind it without a reset.
#[tokio::test]
async fn too_much_behind_a_stream_closes_behind_it() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["a"]).await;
    let before = gateway.rss_kb();
    for _ in 0..64 {
        client.send(Request::post(CHAT_PATH, chat_of(64 * 1024)).bytes()).await;
    }
    call.chunk(DONE).await;
    client.until_body([&event("a"), DONE].concat().as_bytes()).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    client.closed().await;
    assert_eq!(client.raw(), b"", "nothing of the rest is answered");
    upstream.assert_not_asked();
    assert!(gateway.rss_kb() < before + 2048, "{} KiB after {before}", gateway.rss_kb());
    assert_eq!(gateway.only_access().await["outcome"], "completed");
}

/// After `Connection: close`, and after a head that is refused, nothing more is answered.
#[tokio::test]
async fn nothing_is_answered_behind_the_last_request() {
    let gateway = echoing().await;
    let bad = b"GET / HTTP/1.1\r\n\r\n".to_vec();
    for (last, status) in [(numbered(1).header("Connection: close").bytes(), 200), (bad, 400)] {
        let mut client = gateway.client().await;
        client.send([numbered(0).bytes(), last, numbered(2).bytes()].concat()).await;
        assert_eq!(client.answer().await.text(), answer_to(0));
        assert_eq!(client.answer().await.status(), status);
        client.closed().await;
        assert_eq!(client.raw(), b"");
    }
}

/// A body in chunks that goes wrong late: the client is told, and what follows is not taken for a request.
#[tokio::test]
async fn wrong_chunks_that_come_late_are_400() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let request = numbered(0).chunked(10);
    let framed = request.framed_body();
    let wrong: [&[u8]; 4] = [b"\r\n", b"2 \r\nxx\r\n", b"2\nxx\n", b"1;0123456789abcdef0123456789abcdef"];
    for wrong in wrong {
        let mut client = gateway.client().await;
        client.send(request.head()).await;
        client.send(&framed[..15]).await;
        gateway
            .wait_metric_where("the body is read", "held_bytes", &[("kind", "body")], |held| held > 0.0)
            .await;
        client.send(wrong.repeat(20)).await;
        client.send(numbered(1).bytes()).await;
        checks::rejected(&client.answer().await, 400, "invalid_request");
        client.closed().await;
        assert_eq!(client.raw(), b"");
    }
    upstream.assert_not_asked();
}
