//! HTTP/1.0 clients: no chunks, no kept connections, and an answer that breaks off never looks whole.

use crate::support::wire::{
    ANSWER, CHAT_UNARY, DONE, LAST_CHUNK, Request, SSE_HEAD, chunk, event, json_answer, whole_stream,
};
use crate::support::{Call, Client, End, Gateway, Upstream, as_is, checks, one_engine};

const CHUNKED_JSON: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A stream of an HTTP/1.0 client whose head is checked and which has brought one event.
async fn streaming(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    let mut client = gateway.send(&Request::chat().http10()).await;
    let mut call = upstream.call().await;
    assert!(call.request.head.line.ends_with("HTTP/1.1"), "engines are spoken to as ever");
    call.open().await;
    let head = client.head().await;
    assert_eq!(head.status(), 200);
    assert_eq!((head.get("transfer-encoding"), head.get("content-length")), (None, None), "{head:?}");
    assert_eq!(head.get("connection"), Some("close"));
    call.chunk(event("a")).await;
    client.until_body(event("a").as_bytes()).await;
    (client, call)
}

/// Events come at once, byte for byte, and the connection ends with the stream.
#[tokio::test]
async fn a_stream_ends_with_the_connection() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    for keep_alive in [false, true] {
        let mut request = Request::chat().http10();
        if keep_alive {
            request = request.header("Connection: keep-alive");
        }
        let mut client = gateway.send(&request).await;
        let mut call = upstream.call().await;
        call.open().await;
        assert_eq!(client.head().await.get("connection"), Some("close"));
        let (mut sent, whole) = (String::new(), whole_stream());
        for event in whole.split_inclusive("\n\n") {
            call.chunk(event).await;
            sent.push_str(event);
            client.until_body(sent.as_bytes()).await;
        }
        checks::ends_same(client, call, whole.as_bytes()).await;
    }
    let lines = gateway.all_access(2).await;
    assert!(lines.iter().all(|line| line["outcome"] == "completed"), "{lines:?}");
    checks::at_rest(&gateway).await;
}

/// A known length stays, whether the client asks to be kept or not; it is not.
#[tokio::test]
async fn a_known_length_is_told_and_the_connection_closed() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    for request in [Request::unary().http10(), Request::unary().http10().header("Connection: keep-alive")] {
        let mut client = gateway.send(&request).await;
        upstream.call().await.answer(json_answer(ANSWER)).await;
        let answer = client.answer().await;
        assert_eq!(answer.head.get("content-length"), Some(ANSWER.len().to_string().as_str()));
        assert_eq!(answer.head.get("connection"), Some("close"));
        assert_eq!(answer.text(), ANSWER);
        client.closed().await;
        assert_eq!(client.raw(), b"");
    }
    let refused = gateway.ask(&Request::bare("GET", "/nowhere").http10()).await;
    checks::rejected(&refused, 404, "not_found");
}

/// A request that does not stream, and an answer of unknown length to it that has begun.
async fn unknown_length(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    let client = gateway.send(&Request::unary().http10()).await;
    let mut call = upstream.call().await;
    call.send(CHUNKED_JSON).await;
    (client, call)
}

/// A whole answer of unknown length is whole where the connection ends.
#[tokio::test]
async fn an_unknown_length_ends_with_the_connection() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = unknown_length(&gateway, &mut upstream).await;
    call.chunk(ANSWER).await;
    call.send(LAST_CHUNK).await;
    let answer = client.answer().await;
    assert_eq!((answer.end, answer.text()), (End::Clean, ANSWER.to_owned()));
    assert_eq!(answer.head.get("transfer-encoding"), None);
}

/// What broke off ends in a reset: a FIN would say that it is whole.
#[tokio::test]
async fn an_answer_that_broke_off_is_reset() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = unknown_length(&gateway, &mut upstream).await;
    assert_eq!(client.head().await.status(), 200);
    let half = &ANSWER[..40];
    call.chunk(half).await;
    client.until_body(half.as_bytes()).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
    checks::at_rest(&gateway).await;
}

/// A stream can say that it failed, so its connection ends like any other.
#[tokio::test]
async fn a_stream_that_fails_ends_in_an_error_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, call) = streaming(&gateway, &mut upstream).await;
    call.close();
    checks::broken(&mut client, &event("a"), "upstream_disconnected").await;
}

/// Where an error event has no place to stand, or is not to be the end, the connection is reset.
#[tokio::test]
async fn a_stream_whose_framing_must_break_is_reset() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.event_hold", "4KiB")).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream).await;
    let half = format!("data: {}", "x".repeat(16 * 1024));
    call.chunk(&half).await;
    client.until_len(event("a").len() + half.len()).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);

    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.failure_end", "abort")).await;
    let (mut client, call) = streaming(&gateway, &mut upstream).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_request() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (client, mut call) = streaming(&gateway, &mut upstream).await;
    client.close();
    checks::cancel(&gateway, &mut call, "stream").await;
}

/// RFC 9112, 6.1: HTTP/1.0 has no Transfer-Encoding. Other versions are not spoken.
#[tokio::test]
async fn what_is_not_its_grammar_is_refused() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let post = "POST /v1/chat/completions HTTP/1.0\r\n";
    let length = CHAT_UNARY.len();
    let heads = [
        format!("{post}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{CHAT_UNARY}\r\n{LAST_CHUNK}"),
        "GET /v1/models\r\n\r\n".into(),
        "GET /v1/models HTTP/0.9\r\n\r\n".into(),
        "GET /v1/models HTTP/1.2\r\nHost: x\r\n\r\n".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
    ];
    for head in heads {
        let mut client = gateway.client().await;
        client.send(&head).await;
        checks::rejected(&client.answer().await, 400, "invalid_request");
        client.closed().await;
    }
    upstream.assert_not_asked();
}

/// A client of HTTP/1.1 beside it is answered in chunks, as ever.
#[tokio::test]
async fn other_clients_are_answered_as_ever() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (_old, _call) = streaming(&gateway, &mut upstream).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send([SSE_HEAD.as_bytes(), &chunk(DONE), LAST_CHUNK.as_bytes()].concat()).await;
    let head = client.head().await;
    assert_eq!(head.get("transfer-encoding"), Some("chunked"));
    assert_eq!(head.get("connection"), Some("keep-alive"));
}
