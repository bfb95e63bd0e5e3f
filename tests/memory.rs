//! The memory ladder, step by step, in a process that may have little: short timeouts, nothing new, and the largest
//! cut. Each test fills the memory with a body that is being sent, and looks at everybody else.

mod support;

use support::wait::{SOON, wait_until, wait_until_async, within};
use support::wire::{ANSWER, CHAT_PATH, DONE, MIB, Request, chat_of, chunk, event, json_answer};
use support::{Client, End, Gateway, Settings, Upstream, checks, h2_engine, one_engine, sibling, streaming};
use tokio::task::JoinHandle;

/// What the process may have.
const LIMIT: &str = "192MiB";

/// Bodies may have all of it, and nothing ends but by the ladder: a tenth of these is far away.
fn small(settings: Settings) -> Settings {
    settings
        .set("server.memory", LIMIT)
        .set("server.request.body_bytes", "512MiB")
        .set("server.request.buffered_bytes", "512MiB")
        .set("server.request.body_timeout", "10m")
        .set("server.request.header_timeout", "60s")
        .set("server.request.keepalive", "60s")
        .set("timeouts.first_event", "60s")
        .set("timeouts.idle", "60s")
        .set("timeouts.total", "5m")
        .set("stream.write_stall", "5m")
}

async fn level(gateway: &Gateway) -> u8 {
    gateway.metric("memory_level", &[]).await as u8
}

async fn wait_level(gateway: &Gateway, wanted: u8) {
    gateway.wait_metric("memory_level", &[], f64::from(wanted)).await;
}

/// Streams whose clients take nothing: together a few hundredths of the memory.
const STALLED: usize = 60;

/// Uploads that bring the memory from the first step to the last, an eighth of a MiB each.
const SMALL: usize = 300;

/// Bytes that are sent at a time: so few that no level is skipped between two looks at the memory.
const PIECE: usize = MIB / 4;

/// Begins to send a body that is larger than the memory, on a connection of its own.
async fn uploading(gateway: &Gateway) -> Client {
    let mut client = Client::connect(gateway.addr).await;
    client.send(format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 500000000\r\n\r\n{{")).await;
    client
}

/// Sends on until the memory is at this level.
async fn fill(gateway: &Gateway, filler: &mut Client, wanted: u8) {
    within("the memory is filled", 3 * SOON, async {
        while level(gateway).await < wanted {
            filler.send(vec![b'x'; PIECE]).await;
        }
    })
    .await;
}

async fn cuts(gateway: &Gateway, kind: &str) -> f64 {
    gateway.metric("memory_cuts_total", &[("kind", kind)]).await
}

/// Step 1: heads, bodies and idle connections have a tenth of their time, also those that wait already; streams and
/// new requests are served as ever; and it is told in the log, once.
#[tokio::test]
async fn at_80_percent_who_lets_us_wait_has_less_time() {
    let (gateway, mut upstream) = one_engine(|settings| {
        small(settings)
            .set("server.request.header_timeout", "20s")
            .set("server.request.keepalive", "20s")
            .set("server.request.body_timeout", "50s")
    })
    .await;
    let (mut stream, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let mut idle = gateway.send(&Request::bare("GET", "/nowhere")).await;
    assert_eq!(idle.answer().await.status(), 404);
    let mut slow = gateway.client().await;
    slow.send("GET / HTTP/1.1\r\nHost: ").await;
    let mut silent = gateway.client().await;
    gateway.wait_metric("held_bytes", &[("kind", "head")], 22.0).await;
    let mut filler = uploading(&gateway).await;
    fill(&gateway, &mut filler, 1).await;
    // They would have had 20 s; now it is 2.
    let answer = slow.answer().await;
    checks::rejected(&answer, 408, "request_timeout");
    idle.closed().await;
    silent.closed().await;
    call.chunk(event("2")).await;
    stream.until_body([event("1"), event("2")].concat().as_bytes()).await;
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200, "new requests are served");
    // A body has five seconds where it had fifty.
    checks::rejected(&filler.answer_within(3 * SOON).await, 408, "request_timeout");
    drop(filler);
    wait_level(&gateway, 0).await;
    let lines = gateway.log();
    assert_eq!(lines.matches("timeouts of clients and windows of answers are short").count(), 1, "{lines}");
    assert!(lines.contains("of 192 MiB ("), "{lines}");
    gateway.wait_log("all is as usual").await;
    checks::ends_same(stream, call, [event("1"), event("2")].concat().as_bytes()).await;
    checks::at_rest(&gateway).await;
}

/// Step 2: no new connection and no new request, both told when to come back; idle connections are closed; streams
/// and operators are served; and all is well again when there is memory.
#[tokio::test]
async fn at_90_percent_nothing_new_is_let_in() {
    let (gateway, mut upstream) = one_engine(small).await;
    let (mut stream, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let mut idle = gateway.send(&Request::bare("GET", "/nowhere")).await;
    assert_eq!(idle.answer().await.status(), 404);
    let mut slow = gateway.client().await;
    slow.send("GET / HTTP/1.1\r\nHost: ").await;
    gateway.wait_metric("held_bytes", &[("kind", "head")], 22.0).await;
    let mut filler = uploading(&gateway).await;
    fill(&gateway, &mut filler, 2).await;
    let answer = slow.answer().await;
    checks::rejected(&answer, 503, "overloaded");
    assert_eq!(answer.head.get("retry-after"), Some("1"));
    idle.closed().await;
    let answer = gateway.client().await.answer().await;
    checks::rejected(&answer, 503, "overloaded");
    assert_eq!(answer.head.get("retry-after"), Some("1"));
    gateway.wait_metric("connections_refused_total", &[("reason", "memory")], 1.0).await;
    upstream.assert_not_asked();
    call.chunk(event("2")).await;
    stream.until_body([event("1"), event("2")].concat().as_bytes()).await;
    assert_eq!(gateway.admin_get("/livez").await.status(), 200);
    gateway.wait_log("new requests are refused").await;
    filler.reset();
    wait_level(&gateway, 0).await;
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    checks::ends_same(stream, call, [event("1"), event("2")].concat().as_bytes()).await;
    checks::at_rest(&gateway).await;
}

/// Step 2 on a connection that is there already: its running stream goes on, a new one is told.
#[tokio::test]
async fn at_90_percent_a_new_stream_of_an_old_connection_is_refused() {
    let (gateway, mut upstream) = h2_engine(small).await;
    let (mut stream, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let mut filler = uploading(&gateway).await;
    fill(&gateway, &mut filler, 2).await;
    let mut new = stream.sibling();
    new.send(Request::chat().bytes()).await;
    let answer = new.answer().await;
    checks::rejected(&answer, 503, "overloaded");
    assert_eq!(answer.head.get("retry-after"), Some("1"));
    upstream.assert_not_asked();
    filler.reset();
    wait_level(&gateway, 0).await;
    let (next, next_call) = sibling(&mut stream, &mut upstream).await;
    next_call.finish().await;
    drop(next);
    call.chunk(event("2")).await;
    stream.until_body([event("1"), event("2")].concat().as_bytes()).await;
    call.finish().await;
    assert_eq!(stream.end().await, End::Clean);
}

/// Step 3: the largest upload is cut and told; a smaller one and a stream that flows are not.
#[tokio::test]
async fn at_95_percent_the_largest_upload_is_cut() {
    let (gateway, mut upstream) = one_engine(small).await;
    let (mut stream, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let (mut large, mut small) = (uploading(&gateway).await, gateway.client().await);
    let request = Request::post(CHAT_PATH, chat_of(4 * MIB));
    let (head, body) = (request.head(), request.framed_body());
    small.send([&head, &body[..3 * MIB]].concat()).await;
    within("it is cut", 3 * SOON, async {
        // It is told while it still sends.
        while cuts(&gateway, "upload").await == 0.0 {
            large.try_send(vec![b'x'; PIECE]).await.ok();
        }
    })
    .await;
    checks::rejected(&large.answer().await, 503, "overloaded");
    gateway.wait_log("1 uploads and 0 stalled streams were cut").await;
    let line = gateway.wait_access("cut", |line| line["error"] == "overloaded").await;
    assert_eq!((&line["status"], &line["phase"]), (&503.into(), &"upload".into()), "{line}");
    drop(large);
    wait_level(&gateway, 0).await;
    small.send(&body[3 * MIB..]).await;
    let mut other = upstream.call().await;
    assert_eq!(other.request.body.len(), 4 * MIB);
    other.open().await;
    other.chunk(DONE).await;
    other.finish().await;
    assert_eq!(small.answer().await.status(), 200, "the smaller one is served");
    call.chunk(event("2")).await;
    stream.until_body([event("1"), event("2")].concat().as_bytes()).await;
    assert_eq!(gateway.metric("memory_cuts_total", &[]).await, 1.0);
    checks::ends_same(stream, call, [event("1"), event("2")].concat().as_bytes()).await;
}

/// Step 3: of streams those are cut that are not taken, and their engines are free at once; one that is behind but
/// reads, and one that only waits for its engine, go on.
#[tokio::test]
async fn at_95_percent_stalled_streams_are_cut_and_flowing_ones_are_not() {
    stalled(one_engine(|settings| small(settings).set("stream.window", "8MiB")).await).await;
}

/// The same where a stream of HTTP/2 does not open its window.
#[tokio::test]
async fn at_95_percent_stalled_streams_of_http2_are_cut() {
    stalled(h2_engine(|settings| small(settings).set("stream.window", "8MiB")).await).await;
}

async fn stalled((gateway, mut upstream): (Gateway, Upstream)) {
    let (mut quiet, mut quiet_call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let big = event(&"x".repeat(64 * 1024));
    let (mut floods, mut stalled) = (Vec::new(), Vec::new());
    for number in 1..=STALLED {
        let mut client = gateway.narrow_client().await;
        client.send(Request::chat().bytes()).await;
        let mut call = upstream.call().await;
        call.open().await;
        let (_, flood) = call.flood(chunk(&big), 64 * MIB);
        floods.push(tokio::spawn(flood));
        stalled.push(client);
        let enough = |held: f64| held >= (number * 48 * 1024) as f64;
        gateway.wait_metric_where("held", "held_bytes", &[("kind", "stream")], enough).await;
    }
    // Many small uploads that are under way, each of them less than a stalled stream costs.
    let mut small = Vec::new();
    for _ in 0..SMALL {
        small.push(uploading(&gateway).await);
    }
    gateway.wait_metric("memory_bytes", &[("kind", "promised")], 0.0).await;
    // Bodies that have come and whose engine is silent fill the memory to the first step: they are none to be cut.
    let large = Request::post(CHAT_PATH, chat_of(4 * MIB)).bytes();
    let (mut held, mut silent) = (Vec::new(), Vec::new());
    within("the memory is filled", 3 * SOON, async {
        while gateway.metric("memory_bytes", &[("kind", "used")]).await < 150.0 * MIB as f64 {
            let mut client = Client::connect(gateway.addr).await;
            client.send(&large).await;
            silent.push(upstream.call().await);
            held.push(client);
        }
    })
    .await;
    within("streams are cut", 4 * SOON, async {
        for client in &mut small {
            client.try_send(vec![b'x'; MIB / 8]).await.ok();
            if cuts(&gateway, "stream").await > 0.0 {
                return;
            }
        }
        wait_until_async("streams are cut", SOON, || async { cuts(&gateway, "stream").await > 0.0 }).await;
    })
    .await;
    let line = gateway.wait_access("cut", |line| line["outcome"] == "client_stalled").await;
    let memory = [("reason", "memory")];
    gateway.wait_metric_where("counted", "client_stalls_cut_total", &memory, |cut| cut >= 1.0).await;
    assert_eq!((&line["error"], &line["phase"]), (&"overloaded".into(), &"stream".into()), "{line}");
    gateway.wait_log("stalled streams were cut").await;
    wait_until("an engine is left", SOON, || floods.iter().any(JoinHandle::is_finished)).await;
    stalled.into_iter().chain(held).chain(small).for_each(Client::reset);
    wait_level(&gateway, 0).await;
    quiet_call.chunk(event("2")).await;
    quiet_call.finish().await;
    assert_eq!(quiet.end().await, End::Clean);
    checks::same(quiet.body(), [event("1"), event("2")].concat().as_bytes());
    checks::at_rest(&gateway).await;
}
