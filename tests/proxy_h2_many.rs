//! Very many streams over few connections: what they cost, and that they all go at once.

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::framing::Head;
use support::gateway::BINARY;
use support::protocol::{Protocol, speak};
use support::wait::{SOON, wait_until_async, within};
use support::wire::Request;
use support::{Answer, Client, Engine, Gateway, Row, Settings, Told, checks, times};
use tokio::process::Command;

/// Streams of one connection at a time.
const SHARE: usize = 100;

/// Memory of a stream, both its connections' halves included, in KiB. An optimised build needs 40.
const STREAM_KB_MAX: u64 = 64;

/// Resident memory of a gateway with ten thousand streams, in KiB.
const RESIDENT_KB_MAX: u64 = 640 * 1024;

/// Streams that are measured at a time: few, so that the figure is not theirs.
const MEASURED_AT_ONCE: usize = 20;

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

/// Streams that are open, each of which has had its first event.
struct Open {
    /// The connections, which live no longer than these.
    _connections: Vec<Client>,
    streams: Vec<(Head, Client)>,
}

/// Opens `SHARE` streams on each of that many connections.
async fn open(gateway: &Gateway, connections: usize, request: &Request) -> Open {
    let mut open = Open { _connections: Vec::new(), streams: Vec::new() };
    for _ in 0..connections {
        let mut first = gateway.client().await;
        let mut streams: Vec<Client> = (0..SHARE).map(|_| first.sibling()).collect();
        for client in &mut streams {
            client.send(request.bytes()).await;
        }
        for mut client in streams {
            let head = client.head_within(4 * SOON).await;
            assert_eq!(head.status(), 200);
            client.until_len(1).await;
            open.streams.push((head, client));
        }
        open._connections.push(first);
    }
    open
}

/// No timer of the gateway's ends a stream that goes on for minutes.
fn patient(settings: Settings) -> Settings {
    settings.set("timeouts", json!({ "idle": "10m", "first_event": "1m", "total": "20m" }))
}

/// Opens them, weighs them, and lets all of them go. Gives KiB a stream.
async fn weighed(connections: usize) -> u64 {
    speak(Protocol::H2c);
    let engine = Engine::with(&["--fault", "stall_at=1"]).await;
    let gateway = Gateway::start(patient(Settings::new(&[engine.addr]))).await;
    // What the first ones cost once is not theirs.
    drop(open(&gateway, 1, &Request::chat()).await);
    engine.wait_count("running", 0).await;
    let before = gateway.rss_kb();
    let streams = connections * SHARE;
    let clients = open(&gateway, connections, &Request::chat()).await;
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

/// What `bench` says of so many streams of its own: how many microseconds later than sent their tokens have come.
async fn added(gateway: &Gateway, streams: usize) -> Value {
    let folder = tempfile::tempdir().expect("temporary directory");
    let (file, url) =
        (folder.path().join("run.json"), format!("http://{}/v1/chat/completions", gateway.addr));
    let mut command = Command::new(&*BINARY);
    command.args(["bench", &url, "--model", "m", "--h2", "--header", "x-sim-inter-token: 100ms"]);
    command.args(["-n", &streams.to_string(), "-c", &MEASURED_AT_ONCE.to_string(), "--json"]).arg(&file);
    let ran = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = within("the measurement ends", 16 * SOON, ran).await.expect("run the binary");
    assert!(output.status.success(), "every answer is right: {}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&std::fs::read(file).expect("figures")).expect("JSON");
    report["microseconds"]["added"].clone()
}

/// G17: ten thousand streams at once, token by token, in bounded memory; each is whole.
///
/// The first hundred tell how quickly they can be opened here, and so at what pace all of them are still flowing when the
/// last one has begun: it takes a stream more than twice as long to flow as it takes to open all.
#[tokio::test]
async fn g17_ten_thousand_streams_flow_at_once() {
    speak(Protocol::H2c);
    let (connections, measured) = (times(2, 100), times(20, 200));
    let row = Row::start(1, patient).await;
    let opening = Instant::now();
    let first = open(&row.gateway, 1, &Request::chat()).await;
    told(first).await;
    let pace = (opening.elapsed() * connections as u32 / 4).max(Duration::from_millis(500));

    let paced = Request::chat().marked().header(&format!("x-sim-inter-token: {}ms", pace.as_millis()));
    let all = open(&row.gateway, connections, &paced).await;
    let streams = all.streams.len();
    row.gateway.wait_metric("streams_active", &[], streams as f64).await;
    row.struck(streams, "a stream flows beside all others");
    let (added, resident_kb) = (added(&row.gateway, measured).await, row.gateway.rss_kb());
    let still = row.gateway.metric("streams_active", &[]).await;
    println!(
        "{streams} streams, a token each {pace:?}: {} MiB; {measured} streams beside them had their tokens so many \
         microseconds late: {added}; behind that {still} still flowed",
        resident_kb / 1024
    );
    assert!(resident_kb <= RESIDENT_KB_MAX, "{resident_kb} KiB");

    told(all).await;
    let exchanges = SHARE + streams + measured;
    row.told("completed", exchanges, json!({ "status": 200, "attempts": 1 })).await;
    row.never_moved().await;
    row.settled(exchanges).await;
}

/// Reads them to their ends: all are whole.
async fn told(open: Open) {
    for (head, mut client) in open.streams {
        let end = client.end_within(Duration::from_secs(600)).await;
        assert_eq!(Told::of(&Answer { head, body: client.take_body(), end }), Told::whole());
    }
}
