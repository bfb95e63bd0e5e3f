//! The cases of HTTP/1.1.

use serde_json::json;
use tokio::task::JoinSet;

use crate::corpus::{self, Case};
use crate::origin::Origin;
use crate::support::protocol::Dialer;
use crate::support::wait::{SOON, wait_until};
use crate::support::wire::Request;
use crate::support::{Client, Gateway, Settings, not_run, score};

pub(crate) const FILES: [&str; 5] = ["framing.txt", "chunks.txt", "heads.txt", "targets.txt", "requests.txt"];

/// Cases that run at the same time.
const AT_ONCE: usize = 64;

/// Status of the fixed answer that a connection is asked for once more, and of another.
const PROBE: u16 = 299;
const FIXED: u16 = 298;

pub(crate) async fn gateway(origin: &Origin) -> Gateway {
    let responses = json!({ "match": { "path": "/v1/responses/*" }, "cluster": "c", "include_usage": false });
    let fixed = |path: &str, status: u16| json!({ "match": { "path": path }, "respond": { "status": status, "body": "x" } });
    let settings = Settings::new(&[origin.addr])
        .route(responses)
        .route(fixed("/probe", PROBE))
        .route(fixed("/fixed", FIXED));
    Gateway::start(settings).await
}

/// Sends a case and gives what its client saw, in the words of the corpus.
async fn seen(dialer: Dialer, case: &Case) -> Vec<String> {
    let mut client = dialer.client().await;
    // The gateway may answer and close before it has taken all.
    drop(client.try_send(case.bytes()).await);
    let count = if case.wanted[0] == "-" { 0 } else { case.wanted[0].split(' ').count() };
    let mut statuses = Vec::new();
    for _ in 0..count {
        match answer(&mut client).await {
            Some(status) => statuses.push(status.to_string()),
            None => break,
        }
    }
    let statuses = if statuses.is_empty() { "-".to_owned() } else { statuses.join(" ") };
    vec![statuses, state(&mut client, &case.wanted[1]).await]
}

/// The status of the next answer; `None` where the connection ends instead.
async fn answer(client: &mut Client) -> Option<u16> {
    let head = client.head_if_any().await?;
    let status = head.status();
    if status >= 200 {
        client.end().await;
    }
    Some(status)
}

/// What has become of the connection. One that should wait for more must say nothing when no more comes.
async fn state(client: &mut Client, wanted: &str) -> String {
    match wanted {
        "open" => {
            drop(client.try_send(Request::bare("GET", "/probe").bytes()).await);
            match answer(client).await {
                Some(PROBE) => "open".to_owned(),
                other => format!("{other:?} instead of the probe's answer"),
            }
        }
        "closed" | "waits" => {
            if wanted == "waits" {
                client.half_close().await;
            }
            match client.closes().await {
                true if client.raw().is_empty() => wanted.to_owned(),
                true => format!("{:?} behind the answers", String::from_utf8_lossy(client.raw())),
                false => "open".to_owned(),
            }
        }
        other => panic!("no state: {other}"),
    }
}

/// Every case of every file against one origin.
async fn run(origin: Origin) {
    let gateway = gateway(&origin).await;
    let cases: Vec<Case> = FILES.iter().flat_map(|file| corpus::read(file)).collect();
    assert!(cases.len() >= 300, "only {} cases", cases.len());
    let mut differing = Vec::new();
    for some in cases.chunks(AT_ONCE) {
        let mut running = JoinSet::new();
        for case in some.iter().cloned() {
            let dialer = gateway.dialer();
            running.spawn(async move {
                let seen = seen(dialer, &case).await;
                (seen != case.wanted).then(|| format!("{}: {seen:?} instead of {:?}", case.name, case.wanted))
            });
        }
        while let Some(told) = running.join_next().await {
            differing.extend(told.expect("a case does not panic"));
        }
    }
    score::struck(cases.len(), "a request that can be read in two ways");
    differing.sort();
    assert!(differing.is_empty(), "{} cases differ:\n{}", differing.len(), differing.join("\n"));

    let wanted: usize =
        cases.iter().map(|case| case.wanted[0].split(' ').filter(|one| *one == "200").count()).sum();
    only_routed(&gateway, &origin, wanted).await;
}

/// The origin has seen so many requests, and each is one that a client of a case sent whole.
pub(crate) async fn only_routed(gateway: &Gateway, origin: &Origin, wanted: usize) {
    // What was smuggled would come before the last.
    assert_eq!(gateway.ask(&Request::bare("GET", "/v1/chat/completions?last")).await.status(), 200);
    wait_until("the origin has told the last", SOON, || {
        origin.seen().iter().any(|line| line.contains("?last"))
    })
    .await;
    let seen = origin.seen();
    for line in &seen {
        let target = line.split(' ').nth(1).unwrap_or_default();
        let is_routed = target.starts_with("/v1/chat/completions") || target.starts_with("/v1/responses/");
        assert!(is_routed && !line.contains("smuggled"), "the origin saw {line:?}");
    }
    assert_eq!(seen.len(), wanted + 1, "requests at the origin");
}

/// S1: against the engine of these tests, whose parser trusts nobody.
#[tokio::test]
async fn s1_no_request_is_smuggled_to_our_engine() {
    run(Origin::ours().await).await;
}

/// S1: against Python's `http.server`.
#[tokio::test]
async fn s1_no_request_is_smuggled_to_python() {
    match Origin::python() {
        Some(origin) => run(origin).await,
        None => not_run("s1_no_request_is_smuggled_to_python", "no python3"),
    }
}

/// S1: against nginx.
#[tokio::test]
async fn s1_no_request_is_smuggled_to_nginx() {
    match Origin::nginx().await {
        Some(origin) => run(origin).await,
        None => not_run("s1_no_request_is_smuggled_to_nginx", "no nginx"),
    }
}

/// S1: against h11.
#[tokio::test]
async fn s1_no_request_is_smuggled_to_h11() {
    match Origin::h11() {
        Some(origin) => run(origin).await,
        None => not_run("s1_no_request_is_smuggled_to_h11", "no python3-h11"),
    }
}
