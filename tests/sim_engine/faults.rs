//! Each fault does what it says.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use streamgate::sim::{Fault, Settings};

use crate::client::{Client, End, events, quick, start, stats_when};

async fn faulty(fault: &str) -> Client {
    let mut client = Client::connect(start(quick()).await).await;
    client.stream(&format!("x-sim-fault: {fault}\r\n")).await;
    client
}

/// The payload of the chunks in `text`, and whether the final chunk is among them.
fn dechunk(text: &str) -> (String, bool) {
    let (_, mut rest) = text.split_once("\r\n\r\n").unwrap();
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let Some(data) = after.get(..size) else { break };
        body.push_str(data);
        rest = &after[size + 2..];
    }
    (body, false)
}

#[tokio::test]
async fn refuse_resets_every_nth_connection() {
    let faults = vec!["refuse;p=2".parse::<Fault>().unwrap()];
    let address = start(Settings { faults, ..quick() }).await;
    assert_eq!(Client::connect(address).await.get("/health").await.status, 200);
    let (text, end) = Client::connect(address).await.rest().await;
    assert_eq!((text.as_str(), end), ("", End::Reset));
    assert_eq!(Client::connect(address).await.get("/health").await.status, 200);
}

#[tokio::test]
async fn status_answers_with_retry_after_and_keeps_the_connection() {
    let mut client = faulty("status=429;retry_after=30").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (429, &json!(429)));
    assert!(answer.head.contains("retry-after: 30\r\n"), "{}", answer.head);
    client.stream("").await;
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn faults_can_be_set_and_healed_while_it_runs() {
    let mut client = Client::connect(start(quick()).await).await;
    for (faults, health, work) in [("status=503, health=500", 500, 503), ("", 200, 200)] {
        client.post("/sim/faults", "", faults).await;
        assert_eq!(client.answer().await.status, 200);
        assert_eq!(client.get("/health").await.status, health);
        client.unary("").await;
        assert_eq!(client.answer().await.status, work);
    }
    client.post("/sim/faults", "", "nope").await;
    assert_eq!(client.answer().await.status, 400);
}

#[tokio::test]
async fn nothing_comes_instead_of_a_head() {
    assert_eq!(faulty("reset_before_head").await.rest().await, (String::new(), End::Reset));
    assert_eq!(faulty("fin_before_head").await.rest().await, (String::new(), End::Fin));
    assert!(faulty("stall_before_head").await.is_silent().await);
}

#[tokio::test]
async fn only_a_head_comes() {
    for (fault, expected) in [("reset_after_head", End::Reset), ("fin_after_head", End::Fin)] {
        let (text, end) = faulty(fault).await.rest().await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert_eq!(end, expected, "{fault}");
    }
    let mut client = faulty("stall_after_head").await;
    client.until("\r\n\r\n").await;
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn a_stream_is_cut_after_its_tokens() {
    for (fault, expected) in
        [("reset_at=3", End::Reset), ("fin_at=3", End::Fin), ("truncated_chunk_at=3", End::Fin)]
    {
        let (text, end) = faulty(fault).await.rest().await;
        let (body, whole) = dechunk(&text);
        assert!(body.contains("tok2 ") && !body.contains("tok3 ") && !whole, "{fault}: {text}");
        assert_eq!(text.ends_with("40\r\ndata: {\"id"), fault.starts_with("truncated"), "{text}");
        assert_eq!(end, expected, "{fault}");
    }
    let mut client = faulty("stall_at=3").await;
    client.until("tok2 ").await;
    client.until("\r\n").await;
    assert!(client.is_silent().await);
    let (text, end) = faulty("fin_at=0").await.rest().await;
    assert_eq!((events(&dechunk(&text).0).len(), end), (1, End::Fin), "only the role comes");
}

#[tokio::test]
async fn an_error_event_ends_a_stream_cleanly() {
    let error = |event: &Value| event["error"]["code"].clone();
    for fault in ["error_at=2", "error_then_done=2"] {
        let answer = faulty(fault).await;
        let (text, end) = answer.rest().await;
        let (body, whole) = dechunk(&text);
        let events = events(&body);
        assert!(whole && end == End::Fin, "{text}");
        assert_eq!(error(&events[3]), 500, "{text}");
        assert_eq!(events.get(4), (fault == "error_then_done=2").then(|| json!("[DONE]")).as_ref(), "{text}");
    }
}

#[tokio::test]
async fn streams_can_lack_done_or_use_crlf() {
    let events = faulty("no_done").await.answer().await.events();
    assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "stop");
    let text = faulty("crlf").await.answer().await.text().to_owned();
    assert!(text.ends_with("data: [DONE]\r\n\r\n"), "{text}");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
}

#[tokio::test]
async fn comments_come_and_no_event() {
    let mut client = faulty("comments_only\r\nx-sim-inter-token: 2ms").await;
    client.until("\r\n\r\n").await;
    for _ in 0..3 {
        assert_eq!(client.until("\r\n").await, "e\r\n");
        assert_eq!(client.until("\n\n\r\n").await, ": keep-alive\n\n\r\n");
    }
}

#[tokio::test]
async fn blank_lines_come_before_the_json() {
    let mut client = Client::connect(start(quick()).await).await;
    client.unary("x-sim-fault: blank_lines\r\nx-sim-inter-token: 2ms\r\n").await;
    let answer = client.answer().await;
    assert!(answer.text().starts_with("\n\n\n{"), "{}", answer.text());
    assert_eq!(answer.json()["usage"]["completion_tokens"], 5);
    assert_eq!(client.get("/health").await.status, 200);
}

#[tokio::test]
async fn lengths_lie_and_bytes_follow() {
    let mut client = Client::connect(start(quick()).await).await;
    client.unary("x-sim-fault: short_content_length\r\n").await;
    let half = client.answer().await;
    assert!(serde_json::from_slice::<Value>(&half.body).is_err());
    client.until("}}").await;
    let mut client = Client::connect(start(quick()).await).await;
    client.unary("x-sim-fault: extra_bytes\r\n").await;
    assert!(client.answer().await.json()["choices"].is_array());
    assert_eq!(client.answer().await.text(), "polluted");
}

#[tokio::test]
async fn a_body_of_known_length_is_cut_at_a_byte() {
    let mut client = Client::connect(start(quick()).await).await;
    client.unary("x-sim-fault: fin_at=10\r\n").await;
    let (text, end) = client.rest().await;
    assert_eq!((text.split_once("\r\n\r\n").unwrap().1.len(), end), (10, End::Fin));
}

#[tokio::test]
async fn what_is_not_http_ends_with_fin() {
    let (text, end) = faulty("garbage").await.rest().await;
    assert!(text.contains("this is not HTTP") && end == End::Fin, "{text}");
}

#[tokio::test]
async fn a_413_comes_before_the_body() {
    let mut client = Client::connect(start(quick()).await).await;
    let head = "POST /v1/completions HTTP/1.1\r\nx-sim-fault: early_413\r\ncontent-length: 99999\r\n\r\n{";
    client.send(head).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 413);
    assert!(answer.head.contains("connection: close\r\n"), "{}", answer.head);
    client.send("more").await;
    client.rest().await;
}

#[tokio::test]
async fn heads_can_be_odd() {
    let mut client = faulty("interim=9").await;
    for _ in 0..9 {
        assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 103"));
    }
    assert_eq!(client.answer().await.events().len(), 8);
    let answer = faulty("big_head").await.answer().await;
    assert!(answer.head.len() > 10_000_000, "{}", answer.head.len());
    assert_eq!(
        (answer.head.lines().filter(|it| it.starts_with("x-filler-")).count(), answer.status),
        (10_000, 200)
    );
    let mut client = faulty("unsolicited_101").await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 101"));
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn a_head_can_trickle() {
    let began = Instant::now();
    assert_eq!(faulty("head_trickle").await.take(4).await, b"HTTP");
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_engines_faults_strike_every_nth_request() {
    let faults = vec!["status=500;p=2".parse::<Fault>().unwrap()];
    let address = start(Settings { faults, ..quick() }).await;
    let mut client = Client::connect(address).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        client.unary("").await;
        statuses.push(client.answer().await.status);
    }
    assert_eq!(statuses, [200, 500, 200, 500]);
    let stats = stats_when(address, |stats| stats["running"] == 0).await;
    assert_eq!((&stats["completed"], &stats["failed"]), (&json!(2), &json!(2)));
}
