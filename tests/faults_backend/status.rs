//! Backend faults that are answers, rows B15, B16, B25 and B27: an error status, a connection closed
//! while idle, an answer before the body is read.

use crate::support::told::whole_json;
use crate::support::wait::{ms, silence};
use crate::support::wire::{CHAT_PATH, MIB, Request, chat_of};
use crate::support::{Engine, Row, Settings, Told, as_is};
use serde_json::json;

const EXCHANGES: usize = 30;

/// B15: a 500 passes as it is and is not tried again.
#[tokio::test]
async fn b15_a_500_passes_and_does_not_move() {
    let row = Row::ill(3, "status=500", as_is).await;
    let answers = row.ask(EXCHANGES, &Request::chat()).await;
    let failed: Vec<_> = answers.iter().filter(|answer| answer.status() != 200).collect();
    for answer in &failed {
        assert_eq!(
            (answer.status(), &answer.json()["error"]["code"]),
            (500, &json!(500)),
            "{}",
            answer.text()
        );
        assert_eq!(answer.head.get("content-type"), Some("application/json"));
    }
    assert!(!failed.is_empty(), "the fault struck nobody");
    assert_eq!(row.engines[0].count("failed").await, failed.len() as u64);
    row.lines(EXCHANGES).await;
    let fields = json!({ "backend": "u1", "status": 500, "attempts": 1, "streaming": false });
    row.told("upstream_error", failed.len(), fields).await;
    row.told("completed", EXCHANGES - failed.len(), json!({ "attempts": 1 })).await;
    row.never_moved().await;
    row.settled(EXCHANGES).await;
}

/// B16: 502, 503 and 504 without a Retry-After move to another node, for streams and other calls.
#[tokio::test]
async fn b16_an_overloaded_node_costs_no_request() {
    for status in [502, 503, 504] {
        let row = Row::ill(3, &format!("status={status}"), as_is).await;
        assert_eq!(row.streams(EXCHANGES).await, vec![Told::whole(); EXCHANGES]);
        row.ask(EXCHANGES, &Request::unary()).await.iter().for_each(whole_json);
        row.told("completed", 2 * EXCHANGES, json!({ "status": 200, "error": null })).await;
        let moved = row.moved(&format!("status_{status}")).await;
        assert!(moved > 0, "{status} struck nobody");
        assert_eq!(row.engines[0].count("failed").await, moved as u64, "{status}");
        row.gateway.wait_log(&format!("answered with status {status}")).await;
        row.settled(2 * EXCHANGES).await;
    }
}

/// B16: when every node says 503, the last answer passes as it is, after two attempts; who comes when all rest
/// already has one (what B17 is about: see `faults_fleet/circuit`).
#[tokio::test]
async fn b16_when_all_are_overloaded_the_last_answer_passes() {
    let all = |settings: Settings| settings.set("clusters.c.retry", json!({ "budget": "100%" }));
    let row = Row::start(3, all).await;
    for engine in &row.engines {
        engine.faults("status=503").await;
    }
    for answer in row.ask(EXCHANGES, &Request::chat()).await {
        assert_eq!(
            (answer.status(), &answer.json()["error"]["code"]),
            (503, &json!(503)),
            "{}",
            answer.text()
        );
    }
    row.told("upstream_error", EXCHANGES, json!({ "status": 503 })).await;
    assert!(row.moved("status_503").await > 0, "nobody had another node to try");
    row.settled(EXCHANGES).await;
}

/// B25: the engine closes connections that idle for 300 ms, the pool would keep them for longer. No
/// request that meets such a close fails, and none of them counts as an attempt more.
#[tokio::test]
async fn b25_a_close_of_an_idle_connection_costs_no_request() {
    let engine = Engine::with(&["--keepalive", "300ms"]).await;
    let row = Row::with(&[], vec![engine], |settings| settings.set("clusters.c.keepalive", "1s")).await;
    let (rounds, at_once) = (10, 4);
    for round in 0..rounds {
        row.ask(at_once, &Request::unary()).await.iter().for_each(whole_json);
        // Just before, at and just after the engine's close.
        silence(ms(280 + 4 * round)).await;
    }
    let exchanges = rounds as usize * at_once;
    row.told("completed", exchanges, json!({ "status": 200, "attempts": 1 })).await;
    row.never_moved().await;
    let resent = row.lines(exchanges).await.iter().filter(|line| line["resent"] == true).count();
    row.gateway.wait_metric("resends_total", &[("cluster", "c")], resent as f64).await;
    let connections = row.engines[0].connections().await;
    assert!(connections > at_once as u64, "the engine closed no connection: {connections}");
    row.struck(connections as usize - at_once, "the engine closes an idle connection");
    assert!(connections < exchanges as u64, "no connection was ever used again: {connections}");
    row.settled(exchanges).await;
}

/// B27: the engine refuses by the head and closes, while the body is still under way.
#[tokio::test]
async fn b27_an_answer_before_the_body_is_read_passes() {
    let row = Row::ill(1, "early_413", as_is).await;
    for size in [1024, 8 * MIB] {
        for answer in row.ask(5, &Request::post(CHAT_PATH, chat_of(size))).await {
            assert_eq!((answer.status(), &answer.json()["error"]["code"]), (413, &json!(413)), "{size}");
        }
    }
    let fields = json!({ "status": 413, "attempts": 1, "error": null });
    row.told("completed", 10, fields).await;
    row.never_moved().await;
    assert!(row.engines[0].connections().await >= 10, "its connection is never used again");
    row.settled(10).await;
}

crate::over_h2! {
    b15_a_500_passes_and_does_not_move,
    b16_an_overloaded_node_costs_no_request,
    b16_when_all_are_overloaded_the_last_answer_passes,
    b25_a_close_of_an_idle_connection_costs_no_request,
    b27_an_answer_before_the_body_is_read_passes,
}
