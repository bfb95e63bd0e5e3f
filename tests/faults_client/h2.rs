//! Clients that abuse HTTP/2, row C15: each is closed or held back, memory stays bounded, the engine is not
//! asked without end, and who behaves is served all the while.

use crate::support;
use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS, PING, PROTOCOL_ERROR,
    RST_STREAM, Raw, SETTINGS, WINDOW_UPDATE, frame, literal, request, setting, text,
};
use crate::support::protocol::{Protocol, speak};
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{CHAT, CHAT_PATH, Request};
use crate::support::{Row, Settings, Told};

/// What an attack may cost, in KiB.
const GROWTH_KB: u64 = 16 * 1024;

const CANCEL: [u8; 4] = 8u32.to_be_bytes();

/// A row under attack. Its own clients speak HTTP/2.
async fn row(adjust: impl FnOnce(Settings) -> Settings) -> Row {
    speak(Protocol::H2c);
    let row = Row::start(1, adjust).await;
    // What a first stream costs once is not what is measured.
    assert_eq!(row.streams(4).await, vec![Told::whole(); 4]);
    row
}

/// Who behaves is served, and no more memory is used than may be.
async fn unharmed(row: &Row, before: u64) {
    assert_eq!(row.streams(4).await, vec![Told::whole(); 4]);
    let grown = row.gateway.rss_kb().saturating_sub(before);
    assert!(grown < GROWTH_KB, "{grown} KiB more");
}

/// A request for a stream, as frames.
fn asked(stream: u32) -> Vec<u8> {
    let head = [request("POST", CHAT_PATH), literal("content-type", "application/json")].concat();
    [frame(HEADERS, END_HEADERS, stream, &head), frame(DATA, END_STREAM, stream, CHAT.as_bytes())].concat()
}

/// Requests that are reset in the same flight end the connection.
#[tokio::test]
async fn c15_a_burst_of_resets_is_goaway() {
    let row = row(support::as_is).await;
    let (before, asked_before) = (row.gateway.rss_kb(), row.engines[0].count("requests").await);
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    let flight: Vec<u8> = (0..1000)
        .flat_map(|n| [asked(2 * n + 1), frame(RST_STREAM, 0, 2 * n + 1, &CANCEL)].concat())
        .collect();
    // The gateway may close before it has taken all.
    drop(raw.send(&flight).await);
    assert!(matches!(raw.ended().await, Some(ENHANCE_YOUR_CALM) | None));
    let reached = row.engines[0].count("requests").await - asked_before;
    assert!(reached < 250, "{reached} requests reached the engine");
    unharmed(&row, before).await;
    row.engines[0].wait_count("running", 0).await;
}

/// Requests that are reset a little later end it, too, when there is little else.
#[tokio::test]
async fn c15_a_run_of_early_resets_is_goaway() {
    let row = row(support::as_is).await;
    let (before, asked_before) = (row.gateway.rss_kb(), row.engines[0].count("requests").await);
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    for n in 0..400 {
        if raw.send(&asked(2 * n + 1)).await.is_err() {
            break;
        }
        silence(ms(5)).await;
        if raw.send(&frame(RST_STREAM, 0, 2 * n + 1, &CANCEL)).await.is_err() {
            break;
        }
    }
    assert!(matches!(raw.ended().await, Some(ENHANCE_YOUR_CALM) | None));
    let reached = row.engines[0].count("requests").await - asked_before;
    assert!(reached <= 210, "{reached} requests reached the engine");
    unharmed(&row, before).await;
    row.engines[0].wait_count("running", 0).await;
}

/// A head that never ends.
#[tokio::test]
async fn c15_a_head_without_end_is_closed() {
    let row = row(support::as_is).await;
    let before = row.gateway.rss_kb();
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    raw.send(&frame(HEADERS, END_STREAM, 1, &request("POST", CHAT_PATH))).await.unwrap();
    let more = frame(CONTINUATION, 0, 1, &literal("x-more", &"y".repeat(8000)));
    let mut sent = 0;
    while sent < 64 << 20 && raw.send(&more).await.is_ok() {
        sent += more.len();
    }
    assert!(sent < 64 << 20, "the gateway takes it without end");
    raw.ended().await;
    unharmed(&row, before).await;
}

/// Heads that are small on the wire and large when unpacked.
#[tokio::test]
async fn c15_a_head_that_unpacks_to_much_is_refused() {
    let row = row(support::as_is).await;
    let before = row.gateway.rss_kb();
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    // A header of 4,000 bytes goes into the table once; each byte after that stands for all of it.
    let stored = [&[0x40][..], &text("x-bomb"), &text("z".repeat(3900))].concat();
    for n in 0..20 {
        let first = if n == 0 { stored.clone() } else { Vec::new() };
        let head = [request("GET", "/"), first, vec![0x80 | 62; 10_000]].concat();
        let stream = 2 * n + 1;
        if raw.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &head)).await.is_err() {
            break;
        }
    }
    // Refused one by one, or the whole connection; nothing of it is a request.
    drop(raw.send(&frame(HEADERS, END_HEADERS, 2, &[])).await);
    raw.ended().await;
    unharmed(&row, before).await;
}

/// Frames that must be answered, from a client that reads no answer: it is read no more either.
#[tokio::test]
async fn c15_floods_of_pings_and_settings_are_held_back() {
    let row = row(support::as_is).await;
    let before = row.gateway.rss_kb();
    for one in [frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0, &setting(3, 100))] {
        let mut raw = Raw::connect(row.gateway.addr, &[]).await;
        let many = one.repeat(1000);
        let flood = async {
            for _ in 0..10_000 {
                if raw.send(&many).await.is_err() {
                    return;
                }
            }
            panic!("the gateway takes it without end");
        };
        // Blocked or closed, either is well.
        drop(tokio::time::timeout(ms(1500), flood).await);
        unharmed(&row, before).await;
    }
}

/// DATA frames without data, in a body that never ends.
#[tokio::test]
async fn c15_a_flood_of_empty_frames_is_closed() {
    let row = row(|settings| settings.set("server.request.body_timeout", "2s")).await;
    let before = row.gateway.rss_kb();
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    raw.send(&frame(HEADERS, END_HEADERS, 1, &request("POST", CHAT_PATH))).await.unwrap();
    let many = frame(DATA, 0, 1, b"").repeat(1000);
    let flood = async { while raw.send(&many).await.is_ok() {} };
    within("the gateway ends it", 2 * SOON, flood).await;
    unharmed(&row, before).await;
}

/// A window that is opened byte by byte lets the answer through, and slows nobody.
#[tokio::test]
async fn c15_windows_of_one_byte_slow_nobody() {
    let row = row(support::as_is).await;
    let before = row.gateway.rss_kb();
    // Streams begin with no window at all.
    let mut raw = Raw::connect(row.gateway.addr, &setting(4, 0)).await;
    raw.send(&asked(1)).await.unwrap();
    raw.until(HEADERS, 1).await;
    let one = frame(WINDOW_UPDATE, 0, 1, &1u32.to_be_bytes());
    let mut read = Vec::new();
    for _ in 0..200 {
        raw.send(&one).await.unwrap();
        read.extend(raw.until(DATA, 1).await.payload);
    }
    assert_eq!(read.len(), 200, "byte by byte");
    assert!(read.starts_with(b"data: {"), "{}", String::from_utf8_lossy(&read));
    unharmed(&row, before).await;
    drop(raw);
    row.engines[0].wait_count("running", 0).await;
}

/// What is no HTTP/2 ends in GOAWAY, again and again.
#[tokio::test]
async fn c15_malformed_frames_end_the_connection() {
    let row = row(support::as_is).await;
    let before = row.gateway.rss_kb();
    let malformed = [
        frame(DATA, 0, 0, b"x"),
        frame(HEADERS, END_HEADERS, 0, &request("GET", "/")),
        frame(HEADERS, END_HEADERS, 2, &request("GET", "/")),
        frame(DATA, 0, 5, b"x"),
        frame(RST_STREAM, 0, 9, &CANCEL),
        frame(CONTINUATION, 0, 1, b""),
        frame(WINDOW_UPDATE, 0, 0, &0u32.to_be_bytes()),
        frame(SETTINGS, 0, 1, b""),
        frame(PING, 0, 3, b"12345678"),
    ];
    for frame in malformed {
        let mut raw = Raw::connect(row.gateway.addr, &[]).await;
        raw.send(&frame).await.unwrap();
        assert_eq!(raw.ended().await, Some(PROTOCOL_ERROR), "{frame:?}");
    }
    // Wrong sizes and a broken compression have codes of their own.
    let others = [
        frame(PING, 0, 0, b"1"),
        frame(SETTINGS, 0, 0, b"12345"),
        frame(WINDOW_UPDATE, 0, 0, b"1"),
        frame(HEADERS, END_HEADERS, 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        frame(HEADERS, END_HEADERS, 1, &vec![0; 20_000]),
    ];
    for frame in others {
        let mut raw = Raw::connect(row.gateway.addr, &[]).await;
        raw.send(&frame).await.unwrap();
        assert!(raw.ended().await.is_some_and(|code| code != 0), "{:?}", &frame[..9]);
    }
    row.struck(14, "a malformed frame");
    unharmed(&row, before).await;
    row.settled(8).await;
}

/// Requests that are malformed one after the other are refused, and then the connection is.
#[tokio::test]
async fn c15_a_run_of_malformed_requests_is_goaway() {
    let row = row(support::as_is).await;
    let before = row.gateway.rss_kb();
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    let bad = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a@b")];
    let bad = bad.map(|(name, value)| literal(name, value)).concat();
    let mut end = None;
    for n in 0..1000 {
        if raw.send(&frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &bad)).await.is_err() {
            break;
        }
        // One at a time: what is beyond the streams that are allowed at once is not even looked at.
        end = within("an answer", SOON, raw.frame()).await;
        while end.as_ref().is_some_and(|frame| !matches!(frame.kind, DATA | GOAWAY)) {
            end = within("an answer", SOON, raw.frame()).await;
        }
        if end.as_ref().is_none_or(|frame| frame.kind == GOAWAY) {
            break;
        }
    }
    assert!(end.is_none_or(|frame| frame.payload[4..8] == ENHANCE_YOUR_CALM.to_be_bytes()));
    unharmed(&row, before).await;
    let refused = row.gateway.access_lines().iter().filter(|line| line["status"] == 400).count();
    assert!((1..=201).contains(&refused), "{refused} were refused one by one");
    assert_eq!(row.ask(1, &Request::bare("GET", "/v1/models")).await[0].status(), 200);
}

/// Resets that are hidden among requests that are served, at whatever rate: each connection has a budget of
/// streams that it gives up unanswered, and is closed beyond it.
#[tokio::test]
async fn c15_hidden_resets_are_bounded() {
    let row = row(support::as_is).await;
    let before = row.gateway.rss_kb();
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    let wait_for_long = literal("x-sim-first-event", "60s");
    let head =
        [request("POST", CHAT_PATH), literal("content-type", "application/json"), wait_for_long].concat();
    let ask_in_vain = |stream| {
        let body = frame(DATA, END_STREAM, stream, CHAT.as_bytes());
        [frame(HEADERS, END_HEADERS, stream, &head), body].concat()
    };
    let served = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &request("GET", "/v1/models"));
    let mut given_up = 0;
    'flood: while given_up < 600 {
        let stream = 4 * given_up + 1;
        if raw.send(&[ask_in_vain(stream), served(stream + 2)].concat()).await.is_err() {
            break;
        }
        // The one is answered, so the other has been taken before it.
        loop {
            match within("an answer", SOON, raw.frame()).await {
                Some(frame) if frame.stream == stream + 2 && frame.flags & END_STREAM != 0 => break,
                Some(frame) if frame.kind == GOAWAY => {
                    assert_eq!(frame.payload[4..8], ENHANCE_YOUR_CALM.to_be_bytes());
                    break 'flood;
                }
                Some(_) => {}
                None => break 'flood,
            }
        }
        if raw.send(&frame(RST_STREAM, 0, stream, &CANCEL)).await.is_err() {
            break;
        }
        given_up += 1;
    }
    assert!((200..600).contains(&given_up), "{given_up} streams were given up");
    row.gateway.wait_metric("h2_goaways_total", &[("reason", "enhance_your_calm")], 1.0).await;
    row.gateway.wait_log("too many of its streams were given up before they were answered").await;
    unharmed(&row, before).await;
    row.engines[0].wait_count("running", 0).await;
}

/// Streams that the client makes the gateway reset are as good as streams that it resets itself.
#[tokio::test]
async fn c15_provoked_resets_are_goaway() {
    let row = row(support::as_is).await;
    let (before, asked_before) = (row.gateway.rss_kb(), row.engines[0].count("requests").await);
    let mut raw = Raw::connect(row.gateway.addr, &[]).await;
    let mut end = None;
    for n in 0..400 {
        let stream = 2 * n + 1;
        // A window that is opened too far is an error of the stream (RFC 9113, 6.9.1).
        let provoke = frame(WINDOW_UPDATE, 0, stream, &(i32::MAX as u32).to_be_bytes());
        if raw.send(&[asked(stream), provoke].concat()).await.is_err() {
            break;
        }
        loop {
            end = within("a reset", SOON, raw.frame()).await;
            match &end {
                Some(frame) if frame.kind == RST_STREAM && frame.stream == stream => break,
                Some(frame) if frame.kind != GOAWAY => {}
                _ => break,
            }
        }
        if end.as_ref().is_none_or(|frame| frame.kind == GOAWAY) {
            break;
        }
    }
    assert!(end.is_none_or(|frame| frame.payload[4..8] == ENHANCE_YOUR_CALM.to_be_bytes()), "it went on");
    row.gateway.wait_metric("h2_goaways_total", &[("reason", "enhance_your_calm")], 1.0).await;
    row.gateway.wait_log("HTTP/2 connections closed with GOAWAY; the last, from 127.0.0.1").await;
    let reached = row.engines[0].count("requests").await - asked_before;
    assert!(reached < 210, "{reached} requests reached the engine");
    unharmed(&row, before).await;
    row.engines[0].wait_count("running", 0).await;
}
