//! Events arrive as the engine wrote them, whatever their line ends, characters, fields, sizes and splits.

use crate::support::wait::{ms, silence};
use crate::support::wire::{DONE, USAGE, event, whole_stream};
use crate::support::{as_is, checks, one_engine, open_stream, sse};

/// H01: CRLF line ends, cut once at every position. Events before the cut arrive before the rest is written.
#[tokio::test]
async fn crlf_events_survive_every_cut() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let stream = whole_stream().replace('\n', "\r\n").into_bytes();
    let cuts = stream.len() - 1;
    for cut in 1..=cuts {
        let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
        let (first, second) = stream.split_at(cut);
        let whole = first.windows(4).rposition(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
        call.chunk(first).await;
        client.until_len(whole).await;
        call.chunk(second).await;
        checks::ends_same(client, call, &stream).await;
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], cuts as f64).await;
    for line in gateway.all_access(cuts).await {
        assert_eq!(
            (line["usage"]["prompt"].as_u64(), line["usage"]["completion"].as_u64()),
            (Some(7), Some(3))
        );
        assert_eq!(line["events"], 5, "never an extra or missing event: {line}");
    }
}

/// H01: the same for every line end, one byte a write.
#[tokio::test]
async fn every_line_end_survives_single_bytes() {
    for line_end in ["\n", "\r\n", "\r"] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let stream = whole_stream().replace('\n', line_end);
        let (client, mut call) = open_stream(&gateway, &mut upstream).await;
        call.trickle(&stream).await;
        checks::ends_same(client, call, stream.as_bytes()).await;
        checks::usage(&gateway).await;
        assert_eq!(gateway.only_access().await["events"], 5);
    }
}

/// H01: a CR that ends a write ends the blank line; its LF may come a second later or never.
#[tokio::test]
async fn an_event_is_whole_at_the_cr_of_its_blank_line() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let stream = whole_stream().replace('\n', "\r\n");
    let cut = event("a").replace('\n', "\r\n").len() - 1;
    call.chunk(&stream[..cut]).await;
    client.until_len(cut).await;
    assert_eq!(sse::parse(client.body()).len(), 1);
    silence(ms(1000)).await;
    call.chunk(&stream[cut..]).await;
    checks::ends_same(client, call, stream.as_bytes()).await;
    assert_eq!(gateway.only_access().await["events"], 5);
}

/// H02: characters cut in two stay whole, and nothing is replaced.
#[tokio::test]
async fn a_cut_inside_a_character_changes_nothing() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let text = event("你好😀é");
    let bytes = text.as_bytes();
    for cut in (1..bytes.len()).filter(|cut| !text.is_char_boundary(*cut)) {
        let (client, mut call) = open_stream(&gateway, &mut upstream).await;
        call.chunk(&bytes[..cut]).await;
        silence(ms(2)).await;
        call.chunk(&bytes[cut..]).await;
        checks::ends_same(client, call, bytes).await;
    }
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.trickle(bytes).await;
    checks::ends_same(client, call, bytes).await;
}

/// H02: a byte that is no UTF-8 passes, and the stream lives.
#[tokio::test]
async fn invalid_utf8_passes() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let mut sent = event("x").into_bytes();
    let at = sent.windows(3).position(|window| window == b"\"x\"").unwrap() + 1;
    sent[at] = 0xff;
    call.chunk(&sent).await;
    client.until_body(&sent).await;
    call.chunk(DONE).await;
    sent.extend_from_slice(DONE.as_bytes());
    checks::ends_same(client, call, &sent).await;
}

/// H03: comments and all fields pass unchanged and at once; the first token is the first content.
#[tokio::test]
async fn comments_and_fields_pass_at_once() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let many_fields = "event: delta\nid: 42\nretry: 1500\ndata: {\"a\":\ndata: 1}\n\n";
    let comments = [": keep-alive\n\n", ": keep-alive\n\n", ":\n", ": OPENROUTER PROCESSING\n\n"];
    let mut sent = String::new();
    for piece in comments.into_iter().chain([many_fields]) {
        call.chunk(piece).await;
        sent.push_str(piece);
        client.until_body(sent.as_bytes()).await;
    }
    silence(ms(200)).await;
    call.chunk(event("x")).await;
    call.chunk(DONE).await;
    sent.push_str(&event("x"));
    sent.push_str(DONE);
    checks::ends_same(client, call, sent.as_bytes()).await;
    let line = gateway.only_access().await;
    assert!(line["first_token_ms"].as_f64().unwrap() >= 200.0, "{line}");
    assert!(line["first_event_ms"].as_f64().unwrap() < line["first_token_ms"].as_f64().unwrap(), "{line}");
    assert_eq!(line["events"], 3, "data events only: {line}");
}

/// H03: several data lines are one event.
#[tokio::test]
async fn a_multi_line_event_is_one_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    let sent = "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"x\"}}]}\n\n";
    let (first, second) = sent.split_at(sent.find('\n').unwrap() + 1);
    call.chunk(first).await;
    silence(ms(20)).await;
    call.chunk(second).await;
    checks::ends_same(client, call, sent.as_bytes()).await;
    assert_eq!(gateway.only_access().await["events"], 1);
}

/// H04: no line or event is too long, and a long one flows while it is still being written.
#[tokio::test]
async fn big_events_flow_while_they_are_written() {
    for size in [65_535, 65_537, 300_000, 1_200_000] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
        let big = event(&"x".repeat(size));
        let (first, last) = big.as_bytes().split_at(big.len() - 100);
        for piece in first.chunks(16 * 1024) {
            call.chunk(piece).await;
        }
        client.until_len(1).await;
        call.chunk(last).await;
        client.until_body(big.as_bytes()).await;
        call.chunk(USAGE).await;
        call.chunk(DONE).await;
        checks::ends_same(client, call, [&big, USAGE, DONE].concat().as_bytes()).await;
        checks::usage(&gateway).await;
        assert_eq!(gateway.only_access().await["events"], 3);
    }
}

crate::over_h2! {
    crlf_events_survive_every_cut,
    every_line_end_survives_single_bytes,
    an_event_is_whole_at_the_cr_of_its_blank_line,
    a_cut_inside_a_character_changes_nothing,
    invalid_utf8_passes,
    comments_and_fields_pass_at_once,
    a_multi_line_event_is_one_event,
    big_events_flow_while_they_are_written,
}
