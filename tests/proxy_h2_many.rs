//! Very many streams over few connections: what they cost, and that they all go at once.

mod support;

use std::time::{Duration, Instant};

use support::protocol::{Protocol, speak};
use support::wait::{SOON, wait_until_async};
use support::wire::Request;
use support::{Client, Engine, Gateway, Settings, checks};

/// Streams of one connection at a time.
const SHARE: usize = 100;

/// Memory of a stream, both its connections' halves included, in KiB. An optimised build needs 40.
const STREAM_KB_MAX: u64 = 64;

/// A scrape, with a connection of its own, however many streams there are.
const SCRAPE_MAX: Duration = Duration::from_millis(10);

/// Time of a scrape, the quickest of ten: what it costs, and not who else wants the machine.
async fn scrape(gateway: &Gateway) -> Duration {
    let mut quickest = Duration::MAX;
    for _ in 0..10 {
        let asked = Instant::now();
        assert!(gateway.admin_get("/metrics").await.text().contains("streamgate_streams_active{"));
        quickest = quickest.min(asked.elapsed());
    }
    quickest
}

/// Opens that many streams, each of which has had its first event and waits for the next.
async fn open(gateway: &Gateway, connections: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut first = gateway.client().await;
        let mut streams: Vec<Client> = (0..SHARE).map(|_| first.sibling()).collect();
        for client in &mut streams {
            client.send(Request::chat().bytes()).await;
        }
        for client in &mut streams {
            assert_eq!(client.head_within(4 * SOON).await.status(), 200);
            client.until_len(1).await;
        }
        clients.push(first);
        clients.extend(streams);
    }
    clients
}

/// Opens them, weighs them, and lets all of them go. Gives KiB a stream.
async fn weighed(connections: usize) -> u64 {
    speak(Protocol::H2c);
    let engine = Engine::with(&["--fault", "stall_at=1"]).await;
    let long = Settings::new(&[engine.addr])
        .set("timeouts", serde_json::json!({ "idle": "10m", "first_event": "1m", "total": "20m" }));
    let gateway = Gateway::start(long).await;
    // What the first ones cost once is not theirs.
    drop(open(&gateway, 1).await);
    engine.wait_count("running", 0).await;
    let before = gateway.rss_kb();
    let streams = connections * SHARE;
    let clients = open(&gateway, connections).await;
    gateway.wait_metric("streams_active", &[], streams as f64).await;
    let each = gateway.rss_kb().saturating_sub(before) / streams as u64;
    let scrape = scrape(&gateway).await;
    assert!(scrape < SCRAPE_MAX, "a scrape takes {scrape:?}");

    let leaving = Instant::now();
    drop(clients);
    wait_until_async("every engine request is gone", 4 * SOON, || async {
        engine.count("running").await == 0
    })
    .await;
    eprintln!("{streams} streams: {each} KiB each, a scrape {scrape:?}, gone after {:?}", leaving.elapsed());
    gateway.wait_metric("cancels_total", &[("phase", "stream")], (streams + SHARE) as f64).await;
    checks::at_rest(&gateway).await;
    each
}

#[tokio::test]
async fn a_thousand_streams_cost_little_and_leave_at_once() {
    let each = weighed(10).await;
    assert!(each <= STREAM_KB_MAX, "{each} KiB a stream");
}

#[tokio::test]
#[ignore = "takes a machine of its own: run it by hand"]
async fn ten_thousand_streams_cost_little_and_leave_at_once() {
    let each = weighed(100).await;
    assert!(each <= STREAM_KB_MAX, "{each} KiB a stream");
}
