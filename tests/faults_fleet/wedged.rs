//! A wedged engine, row B18: it says that it is well, holds its requests and generates nothing.

use crate::support;
use crate::support::fleet::{checks as checked, with};
use crate::support::wire::Request;
use crate::support::{Row, Settings, Told, checks};
use serde_json::{Value, json};

/// Noticed after a second; half-open after half a second.
fn wedged(scrape: Value) -> impl Fn(Settings) -> Settings {
    move |settings| {
        with(checked())(settings)
            .set("clusters.c.health.wedged.after", "1s")
            .set("clusters.c.scrape", scrape.clone())
            .set("timeouts.first_event", "4s")
    }
}

fn scraped() -> Value {
    json!({ "path": "/metrics", "every": "100ms" })
}

/// B18: two streams are silent, `/health` says 200 all the time. The node is ejected and stays out until a
/// probe gets a token; nobody is sent there in between.
#[tokio::test]
async fn b18_a_wedged_engine_is_out_until_it_generates() {
    let row = Row::ill(2, "stall_after_head", wedged(Value::Null)).await;
    row.gateway.checked().await;
    let dialer = row.gateway.dialer();
    let mut held = Vec::new();
    for _ in 0..6 {
        let mut client = dialer.client().await;
        client.send(Request::chat().bytes()).await;
        held.push(client);
    }
    row.gateway.wait_metric("ejections_total", &[("backend", "u1"), ("reason", "wedged")], 1.0).await;
    row.gateway.wait_log("wedged, it holds requests and sends no event").await;
    row.whole_one_by_one(10).await;
    assert!(!row.gateway.is_up("u1").await);
    let victims = row.engines[0].count("requests").await;
    let mut failed = 0;
    for mut client in held {
        let answer = client.answer().await;
        match answer.status() {
            200 => assert_eq!(Told::of(&answer), Told::whole()),
            _ => {
                checks::rejected(&answer, 504, "first_event_timeout");
                failed += 1;
            }
        }
    }
    assert_eq!(failed, 3, "those that it held when it was noticed, and no other");
    assert!(victims >= 3, "the rest are probes of ours");
    row.gateway.wait_checks("u1", 3).await;
    assert!(!row.gateway.is_up("u1").await, "passing checks do not bring it back");
    row.engines[0].faults("").await;
    row.gateway.wait_up("u1", true).await;
    row.gateway.wait_log("back: it answered a request (a probe for one token)").await;
    let token = [("backend", "u1"), ("kind", "probe"), ("result", "ok")];
    assert_eq!(row.gateway.metric("health_checks_total", &token).await, 1.0);
    row.settled(16).await;
}

/// B18: where the step counter is read and stands still, one silent stream is enough.
#[tokio::test]
async fn b18_one_stream_is_enough_where_the_counter_stands_still() {
    let row = Row::ill(2, "stall_after_head", wedged(scraped())).await;
    row.gateway.checked().await;
    let mut held = vec![row.gateway.send(&Request::chat()).await, row.gateway.send(&Request::chat()).await];
    row.gateway.wait_metric("ejections_total", &[("reason", "wedged")], 1.0).await;
    assert_eq!(row.gateway.ejected("u1", "wedged").await, 1.0);
    row.gateway.wait_log("wedged").await;
    row.whole_one_by_one(4).await;
    let mut statuses = Vec::new();
    for client in &mut held {
        statuses.push(client.answer().await.status());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 504]);
    row.engines[0].faults("").await;
    row.gateway.wait_up("u1", true).await;
    row.settled(6).await;
}

/// Busy is not wedged: an engine that is silent for longer than a wedged one may be, with its steps going on.
#[tokio::test]
async fn b18_a_busy_engine_is_never_ejected() {
    let slow = Request::chat().header("x-sim-first-event: 2500ms");
    let row = Row::start(1, wedged(scraped())).await;
    row.gateway.checked().await;
    assert!(row.ask(4, &slow).await.iter().all(|answer| Told::of(answer) == Told::whole()));
    row.gateway.nobody_ejected().await;
    assert!(row.gateway.metric("health_checks_total", &[("kind", "scrape"), ("result", "ok")]).await > 5.0);
    row.struck(4, "a prefill that takes longer than a wedge");
    row.settled(4).await;
    // The same engine, unread: then nothing tells the two apart.
    let row = Row::start(1, wedged(Value::Null)).await;
    row.gateway.checked().await;
    assert!(row.ask(4, &slow).await.iter().all(|answer| Told::of(answer) == Told::whole()));
    assert_eq!(row.gateway.ejected("u1", "wedged").await, 1.0);
    row.gateway.wait_up("u1", true).await;
    row.gateway.wait_log("back: it answered a request").await;
}

/// Clients that read nothing are no silence of the engine.
#[tokio::test]
async fn b18_slow_clients_do_not_make_an_engine_wedged() {
    let adjust = |settings: Settings| wedged(Value::Null)(settings).set("stream.write_stall", "1m");
    let row = Row::start(1, adjust).await;
    let large =
        Request::chat().lines(&["x-sim-event-bytes: 64KiB", "x-sim-inter-token: 0ms", "x-sim-tokens: 400"]);
    row.gateway.checked().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = row.gateway.narrow_client().await;
        client.send(large.bytes()).await;
        assert_eq!(client.head().await.status(), 200);
        held.push(client);
    }
    row.engines[0].wait_count("running", 3).await;
    // Longer than a wedge takes to be noticed.
    support::wait::silence(support::wait::ms(2_500)).await;
    row.engines[0].wait_count("running", 3).await;
    row.gateway.nobody_ejected().await;
    assert!(row.gateway.is_up("u1").await);
    held.into_iter().for_each(|client| client.close());
    row.gateway.wait_metric("in_flight", &[], 0.0).await;
}

/// B18, a node that cannot be asked for one token by us: a client's request decides.
#[tokio::test]
async fn b18_a_refused_probe_leaves_it_to_a_request() {
    let row = Row::ill(1, "stall_after_head", wedged(Value::Null)).await;
    row.gateway.checked().await;
    let mut held = vec![row.gateway.send(&Request::chat()).await, row.gateway.send(&Request::chat()).await];
    row.gateway.wait_metric("ejections_total", &[("backend", "u1"), ("reason", "wedged")], 1.0).await;
    row.engines[0].faults("status=401").await;
    let refused = [("kind", "probe"), ("result", "failed")];
    row.gateway.wait_metric_where("a probe", "health_checks_total", &refused, |count| count >= 1.0).await;
    row.engines[0].faults("").await;
    let served = || async { row.gateway.ask(&Request::chat()).await.status() == 200 };
    support::wait::wait_until_async("a request decides", support::wait::SOON, served).await;
    row.gateway.wait_up("u1", true).await;
    row.gateway.wait_log("back: it answered a request").await;
    for client in &mut held {
        assert_eq!(client.answer().await.status(), 504);
    }
}
