//! The headline: under load, one of three nodes falls ill in each way that a node can, and no request fails
//! that had not been committed. Only streams that had begun on a node that dies are cut, and each is told.

use std::sync::Arc;

use crate::support::client::Answer;
use crate::support::fleet::{checks as checked, with};
use crate::support::sockets::Blackhole;
use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::Request;
use crate::support::{Row, Settings, Told, checks};
use serde_json::json;
use tokio::task::JoinSet;

const CLIENTS: usize = 12;
const EACH: usize = 12;
const ALL: usize = CLIENTS * EACH;
/// Exchanges before the fault strikes.
const BEFORE: usize = 24;

/// Checks and ejects quickly; a wedged node is noticed after a second and a half.
fn watchful(settings: Settings) -> Settings {
    let health = with(checked())(settings).set("clusters.c.health.wedged", json!({ "after": "1500ms" }));
    health.set("clusters.c.balance", "least_load").set("timeouts.connect", "300ms")
}

/// Clients that stream one answer after the other, each on a connection of its own.
fn load(row: &Row) -> JoinSet<Vec<Answer>> {
    let mut clients = JoinSet::new();
    let request: Arc<Vec<u8>> = Arc::new(Request::chat().bytes());
    for _ in 0..CLIENTS {
        let (dialer, request) = (row.gateway.dialer(), Arc::clone(&request));
        clients.spawn(async move {
            let mut answers = Vec::new();
            for _ in 0..EACH {
                let mut client = dialer.client().await;
                client.send(request.to_vec()).await;
                answers.push(client.answer_within(3 * SOON).await);
            }
            answers
        });
    }
    clients
}

/// Waits until the load is under way.
async fn under_way(row: &Row) {
    let enough = |count| count >= BEFORE as f64;
    row.gateway.wait_metric_where("the load", "requests_total", &[("outcome", "completed")], enough).await;
}

async fn answers(clients: JoinSet<Vec<Answer>>) -> Vec<Answer> {
    clients.join_all().await.into_iter().flatten().collect()
}

/// All were answered, none with an error that came before its first token; gives how many were cut.
fn none_failed_before_commitment(answers: &[Answer]) -> usize {
    assert_eq!(answers.len(), ALL);
    let told: Vec<Told> = answers.iter().map(Told::of).collect();
    let cut: Vec<&Told> = told.iter().filter(|told| **told != Told::whole()).collect();
    for told in &cut {
        assert_eq!(told.error.as_deref(), Some("upstream_disconnected"), "{told:?}");
        assert!(told.tokens > 0 && !told.done, "it had been committed: {told:?}");
    }
    cut.len()
}

/// `fault` of the first node, from the middle of the load on: it is asked ever less, and each time another node
/// takes over.
async fn falls_ill(fault: &str, reason: &str) {
    let row = Row::start(3, watchful).await;
    row.gateway.checked().await;
    let clients = load(&row);
    under_way(&row).await;
    row.engines[0].faults(fault).await;
    let cut = none_failed_before_commitment(&answers(clients).await);
    assert_eq!(cut, 0, "the fault strikes before the first event");
    row.told("completed", ALL, json!({ "status": 200 })).await;
    assert!(row.moved(reason).await > 0, "the fault struck");
    row.settled(ALL).await;
}

#[tokio::test]
async fn a_node_that_resets_under_load_fails_nobody() {
    falls_ill("reset_before_head", "disconnected").await;
}

#[tokio::test]
async fn a_node_that_closes_behind_its_head_under_load_fails_nobody() {
    falls_ill("fin_after_head", "disconnected").await;
}

#[tokio::test]
async fn a_node_that_answers_503_under_load_fails_nobody() {
    falls_ill("status=503", "status_503").await;
}

#[tokio::test]
async fn a_node_that_swallows_connects_under_load_fails_nobody() {
    let blackhole = Blackhole::start().await;
    let row = Row::behind(&[blackhole.addr()], 2, watchful).await;
    let cut = none_failed_before_commitment(&answers(load(&row)).await);
    assert_eq!(cut, 0);
    row.told("completed", ALL, json!({ "status": 200 })).await;
    row.moved("connect_timeout").await;
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_log("backend c/u1").await;
    row.settled(ALL).await;
}

#[tokio::test]
async fn a_node_that_is_killed_under_load_fails_only_what_it_had_begun() {
    let mut row = Row::start(3, watchful).await;
    row.gateway.checked().await;
    let clients = load(&row);
    under_way(&row).await;
    let killed = row.engines.remove(0);
    let running = killed.count("running").await as usize;
    killed.kill();
    let cut = none_failed_before_commitment(&answers(clients).await);
    assert!(cut <= running + CLIENTS, "only what was on that node: {cut} of {running}");
    row.told("upstream_error", cut, json!({ "backend": "u1", "status": 200 })).await;
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_log("backend c/u1").await;
    row.settled(ALL).await;
}

/// All that it held was in prefill, far more than the retry budget would allow: a minority that dies costs none.
#[tokio::test]
async fn a_node_that_is_killed_in_its_prefills_fails_nobody() {
    let tight = |settings| {
        with(checked())(settings).set("clusters.c.retry", json!({ "budget": "0%", "floor": "1/h" }))
    };
    let mut row = Row::start(3, tight).await;
    row.gateway.checked().await;
    let killed = row.engines.remove(0);
    let request = Request::chat().header("x-sim-first-event: 3s");
    let (answers, held) = tokio::join!(row.ask(ALL, &request), async {
        row.gateway.wait_metric("in_flight", &[], ALL as f64).await;
        // The gateway counts before the engine has them.
        let share = || async { killed.count("running").await as usize >= ALL / 4 };
        wait_until_async("it holds its share", SOON, share).await;
        let held = killed.count("running").await as usize;
        killed.kill();
        held
    });
    assert_eq!(none_failed_before_commitment(&answers), 0);
    assert!(row.moved("disconnected").await >= held);
    assert_eq!(row.gateway.metric("retry_budget_exhausted_total", &[]).await, 0.0);
    row.gateway.wait_up("u1", false).await;
    row.settled(ALL).await;
}

/// Victims are those in flight when it was noticed, and at most two more.
#[tokio::test]
async fn a_node_that_is_wedged_under_load_costs_only_what_it_held() {
    let row = Row::start(3, |settings| watchful(settings).set("timeouts.first_event", "4s")).await;
    row.gateway.checked().await;
    let clients = load(&row);
    under_way(&row).await;
    row.engines[0].faults("stall_after_head").await;
    let wedged = [("backend", "u1"), ("reason", "wedged")];
    row.gateway.wait_metric_where("ejected", "ejections_total", &wedged, |count| count >= 1.0).await;
    let held = row.gateway.metric("in_flight", &[("backend", "u1")]).await as usize;
    row.gateway.wait_log("wedged, it holds requests and sends no event").await;
    let answers = answers(clients).await;
    let (whole, victims): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status() == 200);
    whole.iter().for_each(|answer| assert_eq!(Told::of(answer), Told::whole()));
    victims.iter().for_each(|answer| checks::rejected(answer, 504, "first_event_timeout"));
    assert!(!victims.is_empty() && victims.len() <= held + 2, "{} of {held}", victims.len());
    row.told("timeout", victims.len(), json!({ "backend": "u1", "status": 504 })).await;
    row.settled(ALL).await;
}
