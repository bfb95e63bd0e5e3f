//! Where an answer may end: an end that a cut could have left as well is none unless the answer has said so, and an
//! answer without any event is no answer.

use crate::support::upstream::either;
use crate::support::wait::{ms, silence};
use crate::support::wire::{CHAT_PATH, DONE, FINISH, Request, SSE_HEAD, USAGE, chunk, event};
use crate::support::{
    Call, Client, End, Gateway, Settings, Upstream, as_is, checks, one_engine, two_engines,
};

/// Head of a stream that ends with its connection.
const OPEN_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// A stream that ends with its connection, and has brought one event to the client.
async fn open_ended(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send(OPEN_HEAD).await;
    assert_eq!(client.head().await.status(), 200);
    call.send(event("1")).await;
    client.until_body(event("1").as_bytes()).await;
    (client, call)
}

/// A stream that only its connection ends is whole where it has said that it is over, be it without a last blank line.
#[tokio::test]
async fn an_answer_that_says_that_it_is_over_may_end_with_its_connection() {
    let error = "data: {\"error\": {\"code\": 500}}\n\n";
    for (last, outcome) in [
        (DONE, "completed"),
        (DONE.trim_end(), "completed"),
        (FINISH, "completed"),
        (FINISH.trim_end(), "completed"),
        (error, "upstream_error"),
    ] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let (mut client, mut call) = open_ended(&gateway, &mut upstream).await;
        call.send(last).await;
        call.close();
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), [&event("1"), last].concat().as_bytes());
        let line = gateway.only_access().await;
        assert_eq!((&line["outcome"], &line["error"]), (&outcome.into(), &serde_json::Value::Null), "{last}");
    }
}

/// Where it has not, that end cannot be told from a cut, wherever it is. What is whole has been delivered.
#[tokio::test]
async fn an_answer_that_does_not_say_so_is_cut() {
    for (whole, rest) in [
        (String::new(), ""),
        (event("2"), ": comment\n\n"),
        (String::new(), "data: {\"choices\": []}\n"),
        (event("2"), "data: {\"choices\": [{\"delta\": {"),
    ] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let fds = gateway.fd_count();
        let (mut client, mut call) = open_ended(&gateway, &mut upstream).await;
        let comment = if rest.starts_with(':') { rest } else { "" };
        call.send([&whole, rest].concat()).await;
        call.close();
        let delivered = [&event("1"), &whole, comment].concat();
        checks::broken(&mut client, &delivered, "upstream_disconnected").await;
        gateway.wait_log("the backend ended its answer in the middle").await;
        gateway.wait_metric("requests_total", &[("outcome", "upstream_error")], 1.0).await;
        let line = gateway.only_access().await;
        assert_eq!((&line["outcome"], &line["attempts"]), (&"upstream_error".into(), &1.into()), "{line}");
        checks::at_rest(&gateway).await;
        checks::alive(&gateway, &mut upstream, fds).await;
    }
}

/// Of several choices each that has begun must have ended: one finish reason is not enough.
#[tokio::test]
async fn an_answer_with_several_choices_is_over_when_each_of_them_is() {
    let of = |index: u8, rest: &str| format!("data: {{\"choices\":[{{\"index\":{index},{rest}}}]}}\n\n");
    let words: String = [0, 1, 1, 0].map(|index| of(index, "\"delta\":{\"content\":\"x\"}")).concat();
    let stop = |index| of(index, "\"delta\":{},\"finish_reason\":\"stop\"");
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_ended(&gateway, &mut upstream).await;
    call.send([&words[..], &stop(1)].concat()).await;
    call.close();
    checks::broken(&mut client, &[&event("1"), &words[..], &stop(1)].concat(), "upstream_disconnected").await;
    let (mut client, mut call) = open_ended(&gateway, &mut upstream).await;
    call.send([&words[..], &stop(1), &stop(0)].concat()).await;
    call.close();
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("1"), &words[..], &stop(1), &stop(0)].concat().as_bytes());
    let lines = gateway.all_access(2).await;
    assert_eq!((&lines[0]["outcome"], &lines[1]["outcome"]), (&"upstream_error".into(), &"completed".into()));
    checks::at_rest(&gateway).await;
}

/// `failure_end: abort` breaks the framing behind all that came, the last of it included.
#[tokio::test]
async fn such_a_cut_breaks_the_framing_where_it_is_to() {
    let abort = |settings: Settings| settings.set("stream.failure_end", "abort");
    let (gateway, mut upstream) = one_engine(abort).await;
    let (mut client, mut call) = open_ended(&gateway, &mut upstream).await;
    call.send(event("2")).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
    let body = String::from_utf8_lossy(client.body()).into_owned();
    let error = body.strip_prefix(&[event("1"), event("2")].concat()).expect("what came is delivered");
    assert!(error.contains("upstream_disconnected"), "{error}");
}

/// A client that reads nothing for a while has all of it before the error, too.
#[tokio::test]
async fn such_a_cut_waits_for_a_slow_client() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.write_stall", "20s")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send(OPEN_HEAD).await;
    assert_eq!(client.head().await.status(), 200);
    let sent = event(&"x".repeat(1000)).repeat(2000);
    let (_, flood) = call.flood(sent.clone().into_bytes(), sent.len());
    let flood = tokio::spawn(flood);
    silence(ms(300)).await;
    let reading = tokio::spawn(async move {
        checks::broken(&mut client, &sent, "upstream_disconnected").await;
    });
    flood.await.expect("the flood ends").expect("all of it was taken").close();
    reading.await.expect("all of it came");
}

/// Usage without its blank line behind an answer that is over is read, and not for those who did not ask for it.
#[tokio::test]
async fn usage_without_its_blank_line_is_usage() {
    for (last, head) in
        [(USAGE.trim_end(), SSE_HEAD), (&USAGE[..USAGE.len() - 1], SSE_HEAD), (USAGE.trim_end(), OPEN_HEAD)]
    {
        for (asked, gets) in [(",\"stream_options\":{\"include_usage\":true}", last), ("", "")] {
            let asking = |settings: Settings| settings.set("routes.0.include_usage", true);
            let (gateway, mut upstream) = one_engine(asking).await;
            let body = format!("{{\"model\":\"m\",\"stream\":true,\"messages\":[]{asked}}}");
            let mut client = gateway.send(&Request::post(CHAT_PATH, body)).await;
            let mut call = upstream.call().await;
            let sent = [&event("a"), FINISH, last].concat();
            call.send(head).await;
            if head == SSE_HEAD {
                call.chunk(&sent).await;
                call.finish().await;
            } else {
                call.send(&sent).await;
                call.close();
            }
            assert_eq!(client.head().await.status(), 200);
            assert_eq!(client.end().await, End::Clean);
            checks::same(client.body(), [&event("a"), FINISH, gets].concat().as_bytes());
            checks::usage(&gateway).await;
        }
    }
}

/// Where nothing says that the answer is over, the figures count and the answer is cut.
#[tokio::test]
async fn usage_at_a_cut_counts() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_ended(&gateway, &mut upstream).await;
    call.send(USAGE.trim_end()).await;
    call.close();
    checks::broken(&mut client, &event("1"), "upstream_disconnected").await;
    let line = gateway.only_access().await;
    let figures = (&line["usage"]["prompt"], &line["usage"]["completion"], &line["usage"]["source"]);
    assert_eq!(figures, (&7.into(), &3.into(), &"reported".into()), "{line}");
    assert_eq!((&line["outcome"], &line["events"]), (&"upstream_error".into(), &1.into()), "{line}");
}

/// A stream without an event is no answer: while its head is held another engine is asked.
#[tokio::test]
async fn a_stream_without_an_event_is_tried_again() {
    let hold = |settings: Settings| settings.set("stream.hold_headers", "20s");
    for (comment, rest) in [("", "0\r\n\r\n"), (": prefill\n\n", "0\r\n\r\n"), ("", "")] {
        let (gateway, mut one, mut two) = two_engines(hold).await;
        let mut client = gateway.send(&Request::chat()).await;
        let (mut call, other) = either(&mut one, &mut two).await;
        let head = if rest.is_empty() { OPEN_HEAD } else { SSE_HEAD };
        let comment = if comment.is_empty() { Vec::new() } else { chunk(comment) };
        call.send([head.as_bytes(), &comment, rest.as_bytes()].concat()).await;
        call.close();
        other.call().await.stream("whole").await;
        checks::streamed(&mut client, "whole").await;
        gateway.wait_metric("retries_total", &[("reason", "empty")], 1.0).await;
        gateway.wait_log("the backend ended its answer without an event").await;
    }
}

/// Where there is no other, that is a 502; and behind a head that has gone out, an error event.
#[tokio::test]
async fn a_stream_without_an_event_is_an_error() {
    for held in [true, false] {
        let hold = |settings: Settings| settings.set("stream.hold_headers", if held { "20s" } else { "0s" });
        let (gateway, mut upstream) = one_engine(hold).await;
        let mut client = gateway.send(&Request::chat()).await;
        let mut call = upstream.call().await;
        call.open().await;
        if !held {
            assert_eq!(client.head().await.status(), 200);
        }
        call.finish().await;
        if held {
            checks::rejected(&client.answer().await, 502, "upstream_error");
        } else {
            checks::broken(&mut client, "", "upstream_error").await;
        }
        let line = gateway.only_access().await;
        assert_eq!(
            (&line["outcome"], &line["error"]),
            (&"upstream_error".into(), &"upstream_error".into()),
            "{line}"
        );
        checks::at_rest(&gateway).await;
    }
}

/// Of a path that is no endpoint of ours nothing is known: what it sends is what was asked for.
#[tokio::test]
async fn streams_of_other_paths_end_as_they_like() {
    for sent in ["", "data: 1\n\n", ": nothing yet\n\n"] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let mut client = gateway.send(&Request::post("/v1/embeddings", "{\"model\":\"m\"}")).await;
        let mut call = upstream.call().await;
        call.send([OPEN_HEAD, sent].concat()).await;
        call.close();
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), sent.as_bytes());
        assert_eq!(gateway.only_access().await["outcome"], "completed");
    }
}

crate::over_h2! {
    an_answer_that_says_that_it_is_over_may_end_with_its_connection,
    an_answer_that_does_not_say_so_is_cut,
    such_a_cut_breaks_the_framing_where_it_is_to,
    such_a_cut_waits_for_a_slow_client,
    usage_without_its_blank_line_is_usage,
    usage_at_a_cut_counts,
    a_stream_without_an_event_is_tried_again,
    a_stream_without_an_event_is_an_error,
    streams_of_other_paths_end_as_they_like,
}
