//! Faults of a fleet under load that its circuit has to bear, rows B16, B17, B28, C1 and G16: engines with too much
//! to do, engines that are full, clients that leave while they wait, more requests than can be served.

use crate::support::told::whole_json;
use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::Request;
use crate::support::{Client, Leave, Row, Settings, Told, as_is, checks};
use serde_json::json;

const EXCHANGES: usize = 30;

/// Retries are no matter of this row.
fn free_retries(settings: Settings) -> Settings {
    settings.set("clusters.c.retry", json!({ "budget": "100%" }))
}

/// B16: where every node fails, second attempts stay within the budget: here none of the share, and three of the
/// floor. The others pass the answer on as it is. Only the first is tried twice for nothing, while most of the nodes
/// are not known to fail.
#[tokio::test]
async fn b16_an_outage_costs_no_more_than_the_retry_budget() {
    let tight =
        |settings: Settings| settings.set("clusters.c.retry", json!({ "budget": "0%", "floor": "3/h" }));
    let row = Row::start(3, tight).await;
    for engine in &row.engines {
        engine.faults("status=504").await;
    }
    let mut answers = row.ask(1, &Request::chat()).await;
    row.told("upstream_error", 1, json!({ "status": 504, "attempts": 2 })).await;
    answers.extend(row.ask(EXCHANGES - 1, &Request::chat()).await);
    for answer in answers {
        assert_eq!(
            (answer.status(), &answer.json()["error"]["code"]),
            (504, &json!(504)),
            "{}",
            answer.text()
        );
    }
    row.told("upstream_error", EXCHANGES, json!({ "status": 504 })).await;
    assert_eq!(row.moved("status_504").await, 1 + 3);
    let exhausted = (EXCHANGES - 1 - 3) as f64;
    row.gateway.wait_metric("retry_budget_exhausted_total", &[("cluster", "c")], exhausted).await;
    row.gateway.wait_log("the retry budget is used up").await;
    row.settled(EXCHANGES).await;
}

/// B16: the share is of what lives now: with all of it to spend, nobody goes without a second attempt.
#[tokio::test]
async fn b16_a_budget_that_is_large_enough_is_never_used_up() {
    let row = Row::ill(3, "status=502", free_retries).await;
    assert_eq!(row.streams(EXCHANGES).await, vec![Told::whole(); EXCHANGES]);
    row.told("completed", EXCHANGES, json!({ "status": 200 })).await;
    assert!(row.moved("status_502").await > 0, "the fault struck nobody");
    assert_eq!(row.gateway.metric("retry_budget_exhausted_total", &[]).await, 0.0);
    row.settled(EXCHANGES).await;
}

/// B17: a node that said when to come back is left alone until then, and used again after.
#[tokio::test]
async fn b17_a_node_that_said_when_is_left_alone_until_then() {
    for status in [429, 503] {
        let row = Row::ill(3, &format!("status={status};retry_after=300"), free_retries).await;
        assert_eq!(row.streams(EXCHANGES).await, vec![Told::whole(); EXCHANGES]);
        let struck = row.engines[0].count("failed").await;
        assert!(struck > 0, "{status} struck nobody");
        assert_eq!(row.moved(&format!("status_{status}")).await as u64, struck);
        // Known by now: an attempt is judged before the next one begins.
        assert_eq!(row.streams(EXCHANGES).await, vec![Told::whole(); EXCHANGES]);
        assert_eq!(row.engines[0].count("failed").await, struck, "asked while it rested");
        row.told("completed", 2 * EXCHANGES, json!({ "status": 200, "error": null })).await;
        row.gateway.wait_log(&format!("answered with status {status}; trying another node")).await;
        row.settled(2 * EXCHANGES).await;
    }
}

/// B17: a rest ends.
#[tokio::test]
async fn b17_a_node_that_has_rested_is_used_again() {
    let row = Row::ill(2, "status=503;retry_after=1", free_retries).await;
    let mut exchanges = 0;
    while row.engines[0].count("failed").await == 0 {
        assert_eq!(row.streams(1).await, [Told::whole()]);
        exchanges += 1;
    }
    row.engines[0].faults("").await;
    let asked = row.engines[0].count("requests").await;
    let more = std::sync::atomic::AtomicUsize::new(0);
    wait_until_async("the rested node is asked", SOON, || async {
        assert_eq!(row.streams(1).await, [Told::whole()]);
        more.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        row.engines[0].count("requests").await > asked
    })
    .await;
    row.settled(exchanges + more.into_inner()).await;
}

/// B17: when all rest, the one whose rest ends first is asked, once, and its answer passes as it is.
#[tokio::test]
async fn b17_when_all_rest_the_first_to_end_is_asked_and_its_answer_passes() {
    let row = Row::start(2, free_retries).await;
    row.engines[0].faults("status=503;retry_after=200").await;
    row.engines[1].faults("status=503;retry_after=100").await;
    // The first one meets both.
    let answer = row.ask(1, &Request::chat()).await.remove(0);
    assert_eq!(answer.status(), 503);
    let line = row.lines(1).await.remove(0);
    assert_eq!(line["attempts"], 2, "{line}");
    let before = row.engines[0].count("failed").await;
    for answer in row.ask(EXCHANGES, &Request::unary()).await {
        assert_eq!(
            (answer.status(), &answer.json()["error"]["code"]),
            (503, &json!(503)),
            "{}",
            answer.text()
        );
        assert_eq!(answer.head.get("retry-after"), Some("100"));
    }
    assert_eq!(row.engines[0].count("failed").await, before, "its rest ends later");
    row.told("upstream_error", EXCHANGES + 1, json!({ "status": 503 })).await;
    assert_eq!(row.moved("status_503").await, 1, "none but the first had another to try");
    row.gateway.wait_log("cluster c: every backend rests").await;
    row.settled(EXCHANGES + 1).await;
}

/// B28: never more at an engine than its limit, by its own count, and everybody is served.
#[tokio::test]
async fn b28_no_engine_has_more_than_its_limit() {
    const LIMIT: usize = 3;
    let limited = |settings: Settings| {
        settings
            .set("clusters.c.backends.0.max_inflight", LIMIT)
            .set("clusters.c.backends.1.max_inflight", LIMIT)
    };
    let row = Row::start(2, limited).await;
    assert_eq!(row.streams(2 * EXCHANGES).await, vec![Told::whole(); 2 * EXCHANGES]);
    row.ask(EXCHANGES, &Request::unary()).await.iter().for_each(whole_json);
    for engine in &row.engines {
        let peak = engine.count("peak_running").await;
        assert_eq!(peak, LIMIT as u64, "its slots are all used, and no more");
    }
    row.told("completed", 3 * EXCHANGES, json!({ "status": 200, "attempts": 1 })).await;
    let lines = row.lines(3 * EXCHANGES).await;
    let waited = lines.iter().filter(|line| line["queued_ms"].is_number()).count();
    assert!(waited >= EXCHANGES, "{waited} waited");
    row.struck(waited, "no slot is free");
    row.gateway.wait_metric("queue_seconds_count", &[("cluster", "c")], waited as f64).await;
    row.never_moved().await;
    row.settled(3 * EXCHANGES).await;
}

/// B28: a full engine that crashes under load. Who had not been answered moves to the other, and waits there.
#[tokio::test]
async fn b28_a_crash_with_a_queue_costs_nobody_who_was_not_answered() {
    let limited = |settings: Settings| {
        free_retries(settings)
            .set("clusters.c.backends.0.max_inflight", 3)
            .set("clusters.c.backends.1.max_inflight", 3)
            .set("clusters.c.health", json!({}))
    };
    let row = Row::ill(2, "reset_before_head", limited).await;
    assert_eq!(row.streams(EXCHANGES).await, vec![Told::whole(); EXCHANGES]);
    row.told("completed", EXCHANGES, json!({ "status": 200 })).await;
    assert!(row.moved("disconnected").await > 0, "the fault struck nobody");
    assert!(row.engines[1].count("peak_running").await <= 3);
    row.settled(EXCHANGES).await;
}

/// C1: clients that leave while they wait. Their places are free at once, and no engine hears of them.
#[tokio::test]
async fn c1_leaving_the_queue() {
    const WAITING: usize = 10;
    for how in Leave::ways() {
        let full = |settings: Settings| {
            settings
                .set("clusters.c.backends.0.max_inflight", 1)
                .set("clusters.c.queue", json!({ "max": WAITING }))
                .set("timeouts.first_event", "25s")
                .set("timeouts.queue", "25s")
        };
        let row = Row::start(1, full).await;
        let mut running = row.gateway.client().await;
        running.send(Request::chat().header("x-sim-first-event: 20s").bytes()).await;
        row.engines[0].wait_count("requests", 1).await;
        for _ in 0..2 {
            let mut clients: Vec<Client> = Vec::new();
            for _ in 0..WAITING {
                clients.push(row.gateway.send(&Request::chat()).await);
            }
            row.gateway.wait_metric("queue_depth", &[("cluster", "c")], WAITING as f64).await;
            clients.into_iter().for_each(|client| client.leave(how));
            row.gateway.wait_metric("queue_depth", &[("cluster", "c")], 0.0).await;
        }
        let phase = [("phase", "queue")];
        row.gateway.wait_metric("cancels_total", &phase, 2.0 * WAITING as f64).await;
        running.leave(how);
        row.engines[0].wait_count("aborted", 1).await;
        assert_eq!(row.engines[0].count("requests").await, 1, "only the one that ran");
        row.told("client_closed", 2 * WAITING + 1, json!({ "status": 0, "error": null })).await;
        let lines = row.lines(2 * WAITING + 1).await;
        let queued = lines.iter().filter(|line| line["phase"] == "queue" && line["attempts"] == 0).count();
        assert_eq!(queued, 2 * WAITING);
        row.never_moved().await;
        row.settled(2 * WAITING + 1).await;
    }
}

/// G16: a crowd that comes again at once whatever it is told, five times what slots and places can hold. What is
/// served is served whole, its slots are never idle, and the rest is told early and costs the engine nothing.
#[tokio::test]
async fn g16_overload_is_shed_early_and_goodput_stays() {
    const SLOTS: usize = 4;
    const CLIENTS: usize = 10 * SLOTS;
    const ROUNDS: usize = 5;
    let small = |settings: Settings| {
        settings
            .set("clusters.c.backends.0.max_inflight", SLOTS)
            .set("clusters.c.queue", json!({ "max": SLOTS }))
    };
    let row = Row::start(1, small).await;
    let asking: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let dialer = row.gateway.dialer();
            tokio::spawn(async move {
                let (mut whole, mut shed) = (0, 0);
                for _ in 0..ROUNDS {
                    let mut client = dialer.client().await;
                    client.send(Request::chat().bytes()).await;
                    let answer = client.answer_within(3 * SOON).await;
                    if answer.status() == 200 {
                        assert_eq!(Told::of(&answer), Told::whole());
                        whole += 1;
                    } else {
                        checks::rejected(&answer, 503, "overloaded");
                        assert_eq!(answer.head.get("retry-after"), Some("1"));
                        shed += 1;
                    }
                }
                (whole, shed)
            })
        })
        .collect();
    let (mut whole, mut shed) = (0, 0);
    for client in asking {
        let (more_whole, more_shed) = client.await.expect("a client");
        whole += more_whole;
        shed += more_shed;
    }
    assert!(shed > 0, "the load was too little");
    assert!(whole >= 2 * SLOTS, "{whole} served");
    let stats = row.engines[0].stats().await;
    assert_eq!(stats["requests"], whole, "who was shed never reached the engine");
    assert_eq!(stats["peak_running"], SLOTS);
    row.told("completed", whole, json!({ "status": 200, "attempts": 1 })).await;
    row.told("rejected", shed, json!({ "status": 503, "attempts": 0, "error": "overloaded" })).await;
    row.gateway.wait_log("the queue for them is full").await;
    row.never_moved().await;
    row.settled(CLIENTS * ROUNDS).await;
}

/// Without limits and faults nothing of all this is to be seen.
#[tokio::test]
async fn a_healthy_fleet_without_limits_never_queues() {
    let row = Row::start(3, as_is).await;
    assert_eq!(row.streams(EXCHANGES).await, vec![Told::whole(); EXCHANGES]);
    assert_eq!(row.gateway.metric("queue_seconds_count", &[]).await, 0.0);
    assert_eq!(row.gateway.metric("retry_budget_exhausted_total", &[]).await, 0.0);
    row.never_moved().await;
    row.settled(EXCHANGES).await;
}

crate::over_h2! {
    b16_an_outage_costs_no_more_than_the_retry_budget,
    b17_a_node_that_said_when_is_left_alone_until_then,
    b17_when_all_rest_the_first_to_end_is_asked_and_its_answer_passes,
    b28_no_engine_has_more_than_its_limit,
    c1_leaving_the_queue,
    g16_overload_is_shed_early_and_goodput_stays,
}
