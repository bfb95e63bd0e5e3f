//! Backends that leave the configuration, come into it or change in it, under what they have to do. Case H22,
//! rows R4 to R6.

use crate::support;
use crate::support::wait::silence;
use crate::support::wire::{ANSWER, Request, event, json_answer};
use crate::support::{Call, Client, Gateway, Settings, Upstream, checks, streaming};
use serde_json::json;

/// Two engines and the settings that name them.
async fn fleet(adjust: impl Fn(Settings) -> Settings) -> (Gateway, [Upstream; 2], Settings, Settings) {
    let engines = [Upstream::start().await, Upstream::start().await];
    let both = adjust(Settings::new(&[engines[0].addr, engines[1].addr]));
    let first = adjust(Settings::new(&[engines[0].addr]));
    let gateway = Gateway::start(both.clone()).await;
    (gateway, engines, both, first)
}

/// A stream on the second engine of two: the first takes its turn before.
async fn on_second(gateway: &Gateway, engines: &mut [Upstream; 2], content: &str) -> (Client, Call) {
    served_by(gateway, &mut engines[0]).await;
    streaming(gateway, &mut engines[1], &[content]).await
}

/// A request that this engine is asked, and answers.
async fn served_by(gateway: &Gateway, engine: &mut Upstream) {
    let mut client = gateway.send(&Request::unary()).await;
    engine.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// H22 ii, R4: a backend that is removed gets nothing new, and its stream comes to its end.
#[tokio::test]
async fn r4_a_removed_backend_gets_nothing_new_and_ends_what_it_has() {
    let (gateway, mut engines, _, first) = fleet(|settings| settings).await;
    let (client, mut call) = on_second(&gateway, &mut engines, "1").await;
    gateway.reload(first).await;
    let asked = engines[1].connections();
    for _ in 0..4 {
        served_by(&gateway, &mut engines[0]).await;
    }
    assert_eq!(engines[1].connections(), asked, "the removed engine was asked");
    assert_eq!(gateway.metric("in_flight", &[("backend", "u2")]).await, 1.0, "still shown while at work");
    let status = gateway.status().await;
    assert_eq!(status["removed"][0]["name"], "u2", "{status}");
    assert_eq!(status["removed"][0]["state"], "removed", "{status}");
    call.chunk(event("2")).await;
    checks::ends_same(client, call, [event("1"), event("2")].concat().as_bytes()).await;
    checks::at_rest(&gateway).await;
    let text = gateway.admin_get("/metrics").await.text();
    assert!(!text.contains("backend=\"u2\""), "no series of what is gone: {text}");
}

/// R4: when its time to drain is over, the stream of a removed backend ends with an error event.
#[tokio::test]
async fn r4_the_drain_of_a_removed_backend_ends_with_an_error_event() {
    let drain = |settings: Settings| settings.set("server.shutdown.drain", "1s").set("timeouts.idle", "25s");
    let (gateway, mut engines, _, first) = fleet(drain).await;
    let (mut client, mut call) = on_second(&gateway, &mut engines, "1").await;
    let (other, mut other_call) = streaming(&gateway, &mut engines[0], &["a"]).await;
    gateway.reload(first).await;
    checks::broken(&mut client, &event("1"), "backend_removed").await;
    call.gone().await;
    let line = gateway.wait_access("cut", |line| line["error"] == "backend_removed").await;
    assert_eq!((&line["outcome"], &line["backend"]), (&"shutdown".into(), &"u2".into()), "{line}");
    gateway.wait_log("c/u2 was removed and its time to drain is over: 1 exchanges end with an error").await;
    gateway.wait_metric("requests_total", &[("outcome", "shutdown")], 1.0).await;
    // The streams of others were told to look, and look no further.
    other_call.chunk(event("b")).await;
    checks::ends_same(other, other_call, [event("a"), event("b")].concat().as_bytes()).await;
    checks::at_rest(&gateway).await;
}

/// A request that the removed backend has not answered is told by a status.
#[tokio::test]
async fn a_waiting_request_of_a_removed_backend_is_told_by_status() {
    let drain =
        |settings: Settings| settings.set("server.shutdown.drain", "500ms").set("timeouts.unary", "25s");
    let (gateway, mut engines, _, first) = fleet(drain).await;
    served_by(&gateway, &mut engines[0]).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = engines[1].call().await;
    gateway.reload(first).await;
    let answer = client.answer().await;
    checks::rejected(&answer, 503, "backend_removed");
    assert_eq!(answer.head.get("retry-after"), Some("1"));
    call.gone().await;
}

/// R4: an exchange that began before the reload, and fails over behind it, does not go to what was removed.
#[tokio::test]
async fn r4_no_retry_goes_to_a_removed_backend() {
    let (gateway, mut engines, _, first) = fleet(|settings| settings).await;
    let mut client = gateway.send(&Request::unary()).await;
    let call = engines[0].call().await;
    gateway.reload(first).await;
    call.reset();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    assert_eq!(engines[1].connections(), 0);
    let line = gateway.only_access().await;
    assert_eq!((&line["attempts"], &line["generation"]), (&1.into(), &1.into()), "{line}");
}

/// R5: a backend that is added takes its turns.
#[tokio::test]
async fn r5_an_added_backend_gets_work() {
    let mut engines = [Upstream::start().await, Upstream::start().await];
    let gateway = Gateway::start(Settings::new(&[engines[0].addr])).await;
    served_by(&gateway, &mut engines[0]).await;
    gateway.reload(Settings::new(&[engines[0].addr, engines[1].addr])).await;
    let clients = [gateway.send(&Request::unary()).await, gateway.send(&Request::unary()).await];
    for engine in &mut engines {
        engine.call().await.answer(json_answer(ANSWER)).await;
    }
    for mut client in clients {
        assert_eq!(client.answer().await.status(), 200);
    }
    assert_eq!(gateway.status().await["clusters"][0]["backends"][1]["state"], "serving");
}

/// One slot on each engine, and no timer that could end a wait.
fn one_slot(engines: &[&Upstream]) -> Settings {
    let addrs: Vec<_> = engines.iter().map(|engine| engine.addr).collect();
    let slots = (0..engines.len()).fold(Settings::new(&addrs), |settings, n| {
        settings.set(&format!("clusters.c.backends.{n}.max_inflight"), 1)
    });
    slots.set("timeouts", json!({ "connect": "5s", "unary": "25s", "queue": "25s", "total": "60s" }))
}

/// A gateway whose only slot is taken, and one who waits for it.
async fn crowded(settings: Settings, engine: &mut Upstream) -> (Gateway, (Client, Call), Client) {
    let gateway = Gateway::start(settings).await;
    let running = gateway.send(&Request::unary()).await;
    let call = engine.call().await;
    let waiting = gateway.send(&Request::unary()).await;
    gateway.wait_metric("queue_depth", &[("cluster", "c")], 1.0).await;
    (gateway, (running, call), waiting)
}

/// Who waits is served by this engine, while the one before it in the slot still runs.
async fn relieved(gateway: &Gateway, engine: &mut Upstream, running: (Client, Call), waiting: &mut Client) {
    let (mut client, call) = running;
    engine.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(waiting.answer().await.status(), 200);
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    checks::at_rest(gateway).await;
}

/// A node is added because the queue is long: who waits is served by it.
#[tokio::test]
async fn r5_an_added_backend_serves_those_who_wait() {
    let (mut one, mut two) = (Upstream::start().await, Upstream::start().await);
    let (gateway, running, mut waiting) = crowded(one_slot(&[&one]), &mut one).await;
    gateway.reload(one_slot(&[&one, &two])).await;
    relieved(&gateway, &mut two, running, &mut waiting).await;
}

/// All nodes are replaced, as a rolling update does it: who waited for the old ones is served by the new ones.
#[tokio::test]
async fn a_set_that_is_replaced_takes_over_those_who_wait() {
    let (mut old, mut new) = (Upstream::start().await, Upstream::start().await);
    let (gateway, running, mut waiting) = crowded(one_slot(&[&old]), &mut old).await;
    let renamed = one_slot(&[&new]).set("clusters.c.backends.0.name", "n1");
    gateway.reload(renamed).await;
    relieved(&gateway, &mut new, running, &mut waiting).await;
}

/// What the old nodes had not answered when they went goes to the new ones.
#[tokio::test]
async fn what_an_old_node_leaves_unanswered_goes_to_a_new_one() {
    let (mut old, mut new) = (Upstream::start().await, Upstream::start().await);
    let gateway = Gateway::start(one_slot(&[&old])).await;
    let mut client = gateway.send(&Request::unary()).await;
    let call = old.call().await;
    gateway.reload(one_slot(&[&new]).set("clusters.c.backends.0.name", "n1")).await;
    drop(call);
    new.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    let line = gateway.only_access().await;
    assert_eq!((&line["backend"], &line["attempts"]), (&"n1".into(), &2.into()), "{line}");
    checks::at_rest(&gateway).await;
}

/// Where engines are asked with other credentials by now, a request that began before is not mixed of both.
#[tokio::test]
async fn what_is_asked_in_another_way_by_now_is_asked_as_it_began() {
    let (mut old, mut new) = (Upstream::start().await, Upstream::start().await);
    let (gateway, (mut running, call), mut waiting) = crowded(one_slot(&[&old]), &mut old).await;
    let headers = json!({ "set": { "x-team": "b" } });
    gateway.reload(one_slot(&[&old, &new]).set("clusters.c.headers", headers)).await;
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(running.answer().await.status(), 200);
    let call = old.call().await;
    assert_eq!(call.request.head.get("x-team"), None);
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(waiting.answer().await.status(), 200);
    new.assert_not_asked();
    checks::at_rest(&gateway).await;
}

/// A cluster that is gone has nobody to wait for.
#[tokio::test]
async fn who_waits_for_a_cluster_that_is_gone_is_told_at_once() {
    let mut engine = Upstream::start().await;
    let (gateway, (mut running, call), mut waiting) = crowded(one_slot(&[&engine]), &mut engine).await;
    gateway.reload(one_slot(&[&engine]).rename_cluster("c", "d")).await;
    checks::rejected(&waiting.answer().await, 503, "no_backend");
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(running.answer().await.status(), 200);
    checks::at_rest(&gateway).await;
}

/// R6: what is known of a backend outlives its settings; one that comes back finds what it has open.
#[tokio::test]
async fn r6_a_backend_keeps_its_count_through_changes_and_absence() {
    let (gateway, mut engines, both, first) = fleet(|settings| settings).await;
    let (client, call) = on_second(&gateway, &mut engines, "1").await;
    let in_flight = || gateway.metric("in_flight", &[("backend", "u2")]);
    let changed = both.clone().set("clusters.c.keepalive", "3s");
    for settings in [changed, first, both] {
        gateway.reload(settings).await;
        assert_eq!(in_flight().await, 1.0);
    }
    assert_eq!(gateway.status().await["removed"], json!([]));
    // It is not to be cut for the time that it was away.
    checks::ends_same(client, call, event("1").as_bytes()).await;
    checks::at_rest(&gateway).await;
    let clients = [gateway.send(&Request::unary()).await, gateway.send(&Request::unary()).await];
    for engine in &mut engines {
        engine.call().await.answer(json_answer(ANSWER)).await;
    }
    drop(clients);
}

/// `drain: true` in the file: no new work, and what runs has no deadline.
#[tokio::test]
async fn a_backend_that_the_file_drains_ends_in_peace() {
    let drain =
        |settings: Settings| settings.set("server.shutdown.drain", "500ms").set("timeouts.idle", "25s");
    let (gateway, mut engines, both, _) = fleet(drain).await;
    let (client, mut call) = on_second(&gateway, &mut engines, "1").await;
    gateway.reload(both.clone().set("clusters.c.backends.1.drain", true)).await;
    for _ in 0..3 {
        served_by(&gateway, &mut engines[0]).await;
    }
    assert_eq!(gateway.status().await["clusters"][0]["backends"][1]["state"], "drain_in_file");
    // Longer than a removed one would have.
    silence(support::wait::ms(900)).await;
    call.chunk(event("2")).await;
    checks::ends_same(client, call, [event("1"), event("2")].concat().as_bytes()).await;
    gateway.reload(both).await;
    assert_eq!(gateway.status().await["clusters"][0]["backends"][1]["state"], "serving");
}

crate::over_h2! {
    r4_a_removed_backend_gets_nothing_new_and_ends_what_it_has,
    r4_the_drain_of_a_removed_backend_ends_with_an_error_event,
    a_waiting_request_of_a_removed_backend_is_told_by_status,
}
