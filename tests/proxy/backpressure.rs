//! A slow client slows its engine, costs a bounded amount of memory, and nobody else anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::score;
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{DONE, Request, chunk, event};
use crate::support::{
    Call, Client, End, Gateway, Settings, Upstream, checks, one_engine, one_engine_over_tls,
};
use tokio::task::JoinHandle;

/// What an engine may have got rid of when nobody reads: what the gateway and its two sockets hold
/// (512 KiB), and about as much again for the engine's own socket and the kernel's book-keeping.
const HELD_BYTES_MAX: usize = 1024 * 1024;

/// Memory of the process for one stalled stream: its window (64 KiB) and 192 KiB, in KiB.
const RSS_KB_MAX: u64 = 256;

/// An event of 64 KiB.
fn big_event() -> String {
    event(&"x".repeat(64 * 1024))
}

/// A client, the bytes its engine got rid of, and the flood.
type Flooded = (Client, Arc<AtomicUsize>, JoinHandle<Option<Call>>);

/// A stream that the engine floods with `total` bytes, to a client that has read only the head.
async fn flooded(gateway: &Gateway, upstream: &mut Upstream, total: usize) -> Flooded {
    let mut client = gateway.narrow_client().await;
    client.send(Request::chat().bytes()).await;
    let mut call = upstream.call().await;
    call.narrow();
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    let (taken, flood) = call.flood(chunk(big_event()), total);
    score::struck(1, "a client that does not read");
    (client, taken, tokio::spawn(flood))
}

/// Waits until the engine cannot get rid of more; gives what it got rid of.
async fn blocked(taken: &AtomicUsize) -> usize {
    let start = Instant::now();
    let mut before = usize::MAX;
    loop {
        silence(ms(250)).await;
        let now = taken.load(Ordering::SeqCst);
        if now == before && now > 0 {
            return now;
        }
        assert!(start.elapsed() < 2 * SOON, "the engine is never blocked: {now} bytes taken");
        before = now;
    }
}

/// Reads to the end without keeping it all; the body must be `piece` over and over, then `tail`.
async fn drained(client: &mut Client, piece: &str, repeats: usize, tail: &str) {
    let (expected, mut rest) = (piece.repeat(2).into_bytes(), Vec::new());
    let flood = piece.len() * repeats;
    let mut read = 0;
    while client.read_body().await {
        let body = client.take_body();
        let (flooding, after) = body.split_at(body.len().min(flood - read));
        for part in flooding.chunks(piece.len()) {
            let at = read % piece.len();
            checks::same(part, &expected[at..at + part.len()]);
            read += part.len();
        }
        rest.extend_from_slice(after);
    }
    assert_eq!(read, flood, "the flood is whole");
    checks::same(&rest, tail.as_bytes());
}

/// Only the idle timer could cut.
fn patient_but_idle(settings: Settings) -> Settings {
    settings.set("timeouts.idle", "1s").set("timeouts.total", "2m").set("stream.write_stall", "60s")
}

/// H12: the engine blocks early, memory stays small, the idle timer keeps still, and all of it arrives.
#[tokio::test]
async fn a_firehose_blocks_until_the_client_reads() {
    firehose(one_engine(patient_but_idle).await).await;
}

/// The same where the engine is reached over TLS.
#[tokio::test]
async fn a_firehose_over_tls_blocks_until_the_client_reads() {
    firehose(one_engine_over_tls(patient_but_idle).await).await;
}

async fn firehose((gateway, mut upstream): (Gateway, Upstream)) {
    let repeats = 3_200;
    let total = repeats * chunk(big_event()).len();
    checks::alive(&gateway, &mut upstream, usize::MAX / 2).await;
    let before = gateway.rss_kb();
    let (client, taken, flood) = flooded(&gateway, &mut upstream, total).await;
    let held = blocked(&taken).await;
    assert!(held <= HELD_BYTES_MAX, "{held} bytes are held for a client that does not read");
    silence(ms(1500)).await;
    assert_eq!(taken.load(Ordering::SeqCst), held, "blocked means blocked");
    let grown = gateway.rss_kb().saturating_sub(before);
    assert!(grown <= RSS_KB_MAX + 1024, "{grown} KiB for one stalled stream");

    let mut client = client.reading(256 * 1024);
    let ending = tokio::spawn(async move {
        let mut call = flood.await.expect("the flood does not panic").expect("the engine is not left");
        call.chunk(DONE).await;
        call.finish().await;
    });
    within("the flood is read", Duration::from_secs(60), drained(&mut client, &big_event(), repeats, DONE))
        .await;
    ending.await.expect("the ending does not panic");
    assert_eq!(client.end().await, End::Clean);
    assert_eq!(gateway.wait_access("flood", |line| line["events"] == 3_201).await["outcome"], "completed");
    checks::at_rest(&gateway).await;
}

/// H12: many at once cost many times one, and a client that reads is served as ever.
#[tokio::test]
async fn many_stalled_streams_are_bounded_and_hurt_nobody() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.write_stall", "60s")).await;
    let mut streams = Vec::new();
    stalled(&gateway, &mut upstream, 20, &mut streams).await;
    // What a first stalled stream costs once, such as code that is read in, is not what is measured.
    let before = gateway.rss_kb();
    stalled(&gateway, &mut upstream, 40, &mut streams).await;
    let grown = gateway.rss_kb().saturating_sub(before);
    assert!(grown <= 40 * RSS_KB_MAX, "{grown} KiB for forty stalled streams");
    checks::alive(&gateway, &mut upstream, usize::MAX / 2).await;
    drop(streams);
    gateway.wait_metric("cancels_total", &[("phase", "stream")], 60.0).await;
    checks::at_rest(&gateway).await;
}

/// Adds `count` streams whose clients read nothing, and waits until their engines are blocked.
async fn stalled(gateway: &Gateway, upstream: &mut Upstream, count: usize, streams: &mut Vec<Flooded>) {
    for _ in 0..count {
        streams.push(flooded(gateway, upstream, 16 * 1024 * 1024).await);
    }
    for (_, taken, _) in streams {
        let held = blocked_at_once(taken).await;
        assert!(held <= HELD_BYTES_MAX, "{held} bytes are held for a client that does not read");
    }
}

/// Like [`blocked`], for one of many that have been blocked for a while.
async fn blocked_at_once(taken: &AtomicUsize) -> usize {
    let start = Instant::now();
    loop {
        let before = taken.load(Ordering::SeqCst);
        silence(ms(20)).await;
        if taken.load(Ordering::SeqCst) == before && before > 0 {
            return before;
        }
        assert!(start.elapsed() < SOON, "the engine is never blocked");
    }
}

/// `write_stall`: a client that takes nothing is cut, and its engine freed.
#[tokio::test]
async fn a_client_that_takes_nothing_is_cut() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.write_stall", "700ms")).await;
    let fds = gateway.fd_count();
    let (mut client, _, flood) = flooded(&gateway, &mut upstream, usize::MAX / 2).await;
    let left = within("the engine is left", SOON, flood).await.unwrap();
    assert!(left.is_none(), "the engine is left by force");
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["phase"]), (&"client_stalled".into(), &"stream".into()), "{line}");
    gateway.wait_metric("requests_total", &[("outcome", "client_stalled")], 1.0).await;
    gateway.wait_metric("client_stalls_cut_total", &[("reason", "write_stall")], 1.0).await;
    checks::at_rest(&gateway).await;
    assert_eq!(client.end().await, End::Broken);
    client.close();
    checks::alive(&gateway, &mut upstream, fds).await;
}

/// `write_stall` is about progress: a slow but steady reader is not cut, though each write takes longer.
#[tokio::test]
async fn a_slow_but_steady_reader_is_not_cut() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.write_stall", "1s")).await;
    let repeats = 16;
    let (mut client, _, flood) = flooded(&gateway, &mut upstream, repeats * chunk(big_event()).len()).await;
    let start = Instant::now();
    let mut read = Vec::new();
    while start.elapsed() < ms(4000) {
        assert!(client.read_body().await, "cut after {:?} and {} bytes", start.elapsed(), read.len());
        read.extend(client.take_body());
        silence(ms(200)).await;
    }
    assert!(read.len() < 512 * 1024, "read too fast to prove anything: {} bytes", read.len());
    let mut client = client.reading(256 * 1024);
    let ending =
        tokio::spawn(async move { flood.await.unwrap().expect("the engine is not left").finish().await });
    assert_eq!(client.end_within(2 * SOON).await, End::Clean);
    ending.await.unwrap();
    read.extend(client.take_body());
    checks::same(&read, big_event().repeat(repeats).as_bytes());
    assert_eq!(gateway.only_access().await["outcome"], "completed");
}

/// The total timeout holds for a client that does not read, too.
#[tokio::test]
async fn the_total_timeout_holds_while_a_write_is_blocked() {
    let settings = |settings: Settings| settings.set("timeouts.total", "1s").set("stream.write_stall", "30s");
    let (gateway, mut upstream) = one_engine(settings).await;
    let (_client, _, flood) = flooded(&gateway, &mut upstream, usize::MAX / 2).await;
    assert!(within("the engine is left", SOON, flood).await.unwrap().is_none());
    assert_eq!(gateway.only_access().await["outcome"], "timeout");
    checks::at_rest(&gateway).await;
}

/// A client that is blocked and then resets frees its engine.
#[tokio::test]
async fn a_reset_while_a_write_is_blocked_frees_the_engine() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.write_stall", "30s")).await;
    let (client, taken, flood) = flooded(&gateway, &mut upstream, usize::MAX / 2).await;
    blocked(&taken).await;
    client.reset();
    assert!(within("the engine is left", SOON, flood).await.unwrap().is_none());
    checks::cancelled(&gateway, "stream").await;
}

/// A large whole answer is no stream, and is bounded all the same.
#[tokio::test]
async fn a_large_whole_answer_is_bounded_as_well() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("timeouts.unary", "60s").set("stream.write_stall", "60s")).await;
    let mut client = gateway.narrow_client().await;
    client.send(Request::unary().bytes()).await;
    let mut call = upstream.call().await;
    call.narrow();
    let total = 8 * 1024 * 1024;
    call.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {total}\r\n\r\n"
    ))
    .await;
    let (taken, flood) = call.flood(vec![b'x'; 64 * 1024], total);
    assert_eq!(client.head().await.status(), 200);
    let flood = tokio::spawn(flood);
    let held = blocked(&taken).await;
    assert!(held <= HELD_BYTES_MAX, "{held} bytes are held for a client that does not read");
    let mut client = client.reading(256 * 1024);
    assert_eq!(client.end_within(2 * SOON).await, End::Clean);
    assert_eq!(client.body().len(), total);
    flood.await.unwrap().expect("the engine is not left").keep();
}

crate::over_h2! {
    a_firehose_blocks_until_the_client_reads,
    many_stalled_streams_are_bounded_and_hurt_nobody,
    a_client_that_takes_nothing_is_cut,
    a_slow_but_steady_reader_is_not_cut,
    the_total_timeout_holds_while_a_write_is_blocked,
    a_reset_while_a_write_is_blocked_frees_the_engine,
    a_large_whole_answer_is_bounded_as_well,
}
