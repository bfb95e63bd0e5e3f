//! The queue for a backend whose slots are all taken: who is served when, and every way that a wait ends.

use crate::support;
use crate::support::upstream::either;
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{ANSWER, CHAT_PATH, Request, chat_of, event, json_answer, stream_answer};
use crate::support::{
    Call, Client, Engine, Gateway, Leave, Settings, Upstream, checks, one_engine, two_engines,
};

/// One slot a backend, and no timer that could end a wait.
fn one_slot(settings: Settings) -> Settings {
    let settings = ["connect", "first_event", "unary", "idle", "queue"]
        .into_iter()
        .fold(settings, |settings, timeout| settings.set(&format!("timeouts.{timeout}"), "25s"));
    settings.set("clusters.c.backends.0.max_inflight", 1)
}

fn one_slot_each(settings: Settings) -> Settings {
    one_slot(settings).set("clusters.c.backends.1.max_inflight", 1)
}

/// A request that can be told from others by the length of its body.
fn numbered(n: usize) -> Request {
    Request::post(CHAT_PATH, chat_of(200 + n))
}

fn number(call: &Call) -> usize {
    call.request.body.len() - 200
}

/// The exchange that has the only slot.
async fn running(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    let client = gateway.send(&numbered(0)).await;
    let call = upstream.call().await;
    assert_eq!(number(&call), 0);
    (client, call)
}

/// One more who waits; how many wait with it is known.
async fn joins(gateway: &Gateway, request: &Request, depth: usize) -> Client {
    let client = gateway.send(request).await;
    gateway.wait_metric("queue_depth", &[("cluster", "c")], depth as f64).await;
    client
}

/// B28: the engine never has two at once, who came first is served first, and the line tells the wait.
#[tokio::test]
async fn who_waits_is_served_in_order_and_never_too_many_at_once() {
    let (gateway, mut upstream) = one_engine(one_slot).await;
    let (first, mut call) = running(&gateway, &mut upstream).await;
    let mut clients = vec![first];
    for n in 1..=4 {
        clients.push(joins(&gateway, &numbered(n), n).await);
    }
    for n in 1..=4 {
        upstream.assert_not_asked();
        assert_eq!(gateway.metric("in_flight", &[("backend", "u1")]).await, 1.0);
        call.stream("done").await;
        call = upstream.call().await;
        assert_eq!(number(&call), n, "in the order of arrival");
    }
    call.stream("done").await;
    for client in &mut clients {
        checks::streamed(client, "done").await;
    }
    for line in gateway.all_access(5).await {
        assert_eq!((&line["outcome"], &line["attempts"]), (&"completed".into(), &1.into()), "{line}");
    }
    let waited = gateway.access_lines().iter().filter(|line| line["queued_ms"].is_number()).count();
    assert_eq!(waited, 4);
    gateway.wait_metric("queue_seconds_count", &[("cluster", "c")], 4.0).await;
    checks::at_rest(&gateway).await;
}

/// A limit that a reload raises is one for those who wait already.
#[tokio::test]
async fn a_raised_limit_is_for_those_who_wait() {
    let (gateway, mut upstream) = one_engine(one_slot).await;
    let (mut first, call) = running(&gateway, &mut upstream).await;
    let mut clients = vec![joins(&gateway, &numbered(1), 1).await, joins(&gateway, &numbered(2), 2).await];
    let raised = one_slot(Settings::new(&[upstream.addr])).set("clusters.c.backends.0.max_inflight", 3);
    gateway.reload(raised).await;
    let calls = [upstream.call().await, upstream.call().await];
    let mut numbers = calls.each_ref().map(number);
    // Each on a connection of its own, so that the engine may hear either first.
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2], "both at once");
    for call in [call].into_iter().chain(calls) {
        call.stream("done").await;
    }
    clients.insert(0, std::mem::replace(&mut first, gateway.client().await));
    for client in &mut clients {
        checks::streamed(client, "done").await;
    }
    first.close();
    checks::at_rest(&gateway).await;
}

/// As many clients as there are slots: each request finds one, also where it is freed while another looks.
#[tokio::test]
async fn a_slot_that_is_freed_while_another_looks_is_no_shortage() {
    let engine = Engine::start().await;
    let four = |settings: Settings| settings.set("clusters.c.backends.0.max_inflight", 4);
    let gateway = Gateway::start(four(Settings::new(&[engine.addr]))).await;
    let short = Request::post(CHAT_PATH, "{\"model\":\"m\",\"messages\":[],\"max_tokens\":1}");
    let each = support::times(300, 5_000);
    let clients = (0..4).map(|_| async {
        let mut client = gateway.client().await;
        for _ in 0..each {
            client.send(short.bytes()).await;
            let answer = client.answer().await;
            assert_eq!(answer.status(), 200, "{}", answer.text());
        }
    });
    futures::future::join_all(clients).await;
    gateway.wait_metric("requests_total", &[("outcome", "completed")], (4 * each) as f64).await;
    checks::at_rest(&gateway).await;
}

/// A limit that a reload lowers holds for those who wait already: the engine gets no more until it has fewer.
#[tokio::test]
async fn a_lowered_limit_holds_for_those_who_wait() {
    let two = |settings: Settings| one_slot(settings).set("clusters.c.backends.0.max_inflight", 2);
    let (gateway, mut upstream) = one_engine(two).await;
    let mut clients = vec![gateway.send(&numbered(1)).await];
    let one = upstream.call().await;
    clients.push(gateway.send(&numbered(2)).await);
    let other = upstream.call().await;
    clients.push(joins(&gateway, &numbered(3), 1).await);
    gateway.reload(one_slot(Settings::new(&[upstream.addr]))).await;
    one.stream("done").await;
    checks::streamed(&mut clients[0], "done").await;
    gateway.wait_metric("in_flight", &[("backend", "u1")], 1.0).await;
    assert_eq!(gateway.metric("queue_depth", &[("cluster", "c")]).await, 1.0, "it goes on waiting");
    upstream.assert_not_asked();
    other.stream("done").await;
    upstream.call().await.stream("done").await;
    for client in &mut clients[1..] {
        checks::streamed(client, "done").await;
    }
    checks::at_rest(&gateway).await;
}

/// Who waits is given a node whose ejection is over, though no slot was freed.
#[tokio::test]
async fn who_waits_tries_a_node_whose_ejection_is_over() {
    let ejects = serde_json::json!({
        "active": null, "slow_start": "0s", "wedged": { "after": "1h" },
        "passive": { "consecutive": 1, "ejection": "2s", "max_ejected": "50%" },
    });
    let (gateway, mut ill, mut well) =
        two_engines(|settings| one_slot_each(settings).set("clusters.c.health", ejects.clone())).await;
    let mut first = gateway.send(&numbered(0)).await;
    ill.call().await.reset();
    let other = well.call().await;
    gateway.wait_metric("ejections_total", &[], 1.0).await;
    let mut waiting = joins(&gateway, &numbered(1), 1).await;
    let tried = ill.call().await;
    assert_eq!(number(&tried), 1, "before the other one is free");
    tried.stream("done").await;
    checks::streamed(&mut waiting, "done").await;
    other.stream("done").await;
    checks::streamed(&mut first, "done").await;
    checks::at_rest(&gateway).await;
}

/// C1: gone while it waits. Its place is free at once, no engine is asked for it, and who is behind it moves up.
#[tokio::test]
async fn leaving_the_queue_frees_the_place_at_once() {
    for how in Leave::ways() {
        let tight = |settings: Settings| one_slot(settings).set("clusters.c.queue.max", 2);
        let (gateway, mut upstream) = one_engine(tight).await;
        let (mut first, call) = running(&gateway, &mut upstream).await;
        let leaver = joins(&gateway, &numbered(1), 1).await;
        let mut behind = joins(&gateway, &numbered(2), 2).await;
        leaver.leave(how);
        gateway.wait_metric("queue_depth", &[("cluster", "c")], 1.0).await;
        let mut late = joins(&gateway, &numbered(3), 2).await;
        upstream.assert_not_asked();
        call.stream("done").await;
        for expected in [2, 3] {
            let call = upstream.call().await;
            assert_eq!(number(&call), expected);
            call.stream("done").await;
        }
        for client in [&mut first, &mut behind, &mut late] {
            checks::streamed(client, "done").await;
        }
        checks::cancelled(&gateway, "queue").await;
        let line = gateway.wait_access("the one that left", |line| line["phase"] == "queue").await;
        assert_eq!(
            (&line["status"], &line["attempts"], &line["backend"]),
            (&0.into(), &0.into(), &().into())
        );
        assert!(line["queued_ms"].is_number(), "{line}");
        upstream.assert_not_asked();
    }
}

/// A slot that its client gives back by leaving goes to who waits.
#[tokio::test]
async fn a_slot_freed_by_a_client_that_leaves_is_used_at_once() {
    for how in Leave::ways() {
        let (gateway, mut upstream) = one_engine(one_slot).await;
        let (first, mut call) = running(&gateway, &mut upstream).await;
        let mut second = joins(&gateway, &numbered(1), 1).await;
        first.leave(how);
        call.gone().await;
        let call = upstream.call().await;
        assert_eq!(number(&call), 1);
        call.stream("done").await;
        checks::streamed(&mut second, "done").await;
        checks::cancelled(&gateway, "first_event").await;
    }
}

/// B28, G16: one more than may wait is told so at once.
#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    for max in [0_usize, 1] {
        let tight = |settings: Settings| one_slot(settings).set("clusters.c.queue.max", max);
        let (gateway, mut upstream) = one_engine(tight).await;
        let (mut first, mut call) = running(&gateway, &mut upstream).await;
        let mut waiting = Vec::new();
        for n in 1..=max {
            waiting.push(joins(&gateway, &numbered(n), n).await);
        }
        let answer = gateway.ask(&numbered(9)).await;
        checks::rejected(&answer, 503, "overloaded");
        assert_eq!(answer.head.get("retry-after"), Some("1"));
        let line = gateway.wait_access("the refused one", |line| line["status"] == 503).await;
        assert_eq!((&line["outcome"], &line["attempts"]), (&"rejected".into(), &0.into()), "{line}");
        gateway.wait_log("cluster c: request").await;
        gateway.wait_log("the queue for them is full").await;
        for client in &mut waiting {
            call.stream("done").await;
            call = upstream.call().await;
            checks::streamed(&mut first, "done").await;
            std::mem::swap(&mut first, client);
        }
        call.stream("done").await;
        checks::streamed(&mut first, "done").await;
        checks::at_rest(&gateway).await;
    }
}

/// Too late: told as a status even where `early_headers` would long have sent a 200.
#[tokio::test]
async fn a_wait_ends_with_its_timeout_and_no_early_head() {
    let short = |settings: Settings| {
        one_slot(settings).set("timeouts.queue", "600ms").set("stream.early_headers", "100ms")
    };
    let (gateway, mut upstream) = one_engine(short).await;
    let (mut first, call) = running(&gateway, &mut upstream).await;
    let answer = gateway.ask(&numbered(1)).await;
    checks::rejected(&answer, 503, "queue_timeout");
    assert_eq!(answer.head.get("retry-after"), Some("1"));
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["phase"]), (&"timeout".into(), &"queue".into()), "{line}");
    assert!(line["queued_ms"].as_f64().is_some_and(|queued| queued >= 600.0), "{line}");
    gateway.wait_log("every backend was busy for as long as a request may wait").await;
    call.stream("done").await;
    checks::streamed(&mut first, "done").await;
    upstream.assert_not_asked();
    checks::at_rest(&gateway).await;
}

/// `early_headers` counts from the slot on.
#[tokio::test]
async fn early_headers_begin_with_the_slot() {
    let early = |settings: Settings| {
        one_slot(settings).set("stream.early_headers", "300ms").set("stream.heartbeat", "100ms")
    };
    let (gateway, mut upstream) = one_engine(early).await;
    let (_first, call) = running(&gateway, &mut upstream).await;
    let mut second = joins(&gateway, &numbered(1), 1).await;
    silence(ms(500)).await;
    call.close();
    // A failure in the first 300 ms of the slot is a status still.
    upstream.call().await.close();
    checks::rejected(&second.answer().await, 502, "upstream_disconnected");
}

/// `total` counts from arrival, in the queue as well.
#[tokio::test]
async fn a_wait_is_never_longer_than_the_whole() {
    let short = |settings: Settings| {
        one_slot(settings).set("routes.1.timeouts", serde_json::json!({ "total": "500ms" }))
    };
    let (gateway, mut upstream) = one_engine(short).await;
    let (_first, _call) = running(&gateway, &mut upstream).await;
    let answer = gateway.ask(&Request::post("/v1/embeddings", r#"{"model":"m","input":"hi"}"#)).await;
    checks::rejected(&answer, 504, "total_timeout");
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["phase"]), (&"timeout".into(), &"queue".into()), "{line}");
    gateway.wait_metric("queue_depth", &[("cluster", "c")], 0.0).await;
}

/// A drain that is over ends a wait like anything else.
#[tokio::test]
async fn the_end_of_a_drain_ends_a_wait() {
    let brief = |settings: Settings| one_slot(settings).set("server.shutdown.drain", "500ms");
    let (gateway, mut upstream) = one_engine(brief).await;
    let (_first, _call) = running(&gateway, &mut upstream).await;
    let mut second = joins(&gateway, &numbered(1), 1).await;
    gateway.terminate();
    checks::rejected(&second.answer().await, 503, "shutting_down");
    let line = gateway.wait_access("the one that waited", |line| line["attempts"] == 0).await;
    assert_eq!((&line["outcome"], &line["phase"]), (&"shutdown".into(), &"queue".into()), "{line}");
}

/// A second attempt waits like a first one, and for the other backend.
#[tokio::test]
async fn a_second_attempt_waits_for_the_other_backend() {
    let (gateway, mut one, mut two) = two_engines(one_slot_each).await;
    let mut first = gateway.send(&numbered(0)).await;
    let (call, other) = either(&mut one, &mut two).await;
    let mut second = gateway.send(&numbered(1)).await;
    other.call().await.reset();
    gateway.wait_metric("queue_depth", &[("cluster", "c")], 1.0).await;
    call.stream("done").await;
    checks::streamed(&mut first, "done").await;
    let (call, _) = either(&mut one, &mut two).await;
    assert_eq!(number(&call), 1);
    call.stream("moved").await;
    checks::streamed(&mut second, "moved").await;
    let line = gateway.wait_access("the second", |line| line["attempts"] == 2).await;
    assert!(line["queued_ms"].is_number() && line["outcome"] == "completed", "{line}");
    gateway.wait_metric("retries_total", &[("cluster", "c"), ("reason", "disconnected")], 1.0).await;
    checks::at_rest(&gateway).await;
}

/// Who waits for the backend that it has not tried holds up nobody who can use the other.
#[tokio::test]
async fn who_waits_for_one_backend_holds_nobody_up_at_the_other() {
    let (gateway, mut one, mut two) = two_engines(one_slot_each).await;
    let _first = gateway.send(&numbered(0)).await;
    let (_call, other) = either(&mut one, &mut two).await;
    let _second = gateway.send(&numbered(1)).await;
    other.call().await.reset();
    gateway.wait_metric("queue_depth", &[("cluster", "c")], 1.0).await;
    let mut third = gateway.send(&numbered(2)).await;
    let call = other.call().await;
    assert_eq!(number(&call), 2);
    call.stream("done").await;
    checks::streamed(&mut third, "done").await;
    assert_eq!(gateway.metric("queue_depth", &[("cluster", "c")]).await, 1.0);
}

/// A request behind one that waits is no reason to end it.
#[tokio::test]
async fn a_request_behind_one_that_waits_has_its_turn() {
    let (gateway, mut upstream) = one_engine(one_slot).await;
    let (_first, call) = running(&gateway, &mut upstream).await;
    let mut second = joins(&gateway, &Request::unary(), 1).await;
    second.send(Request::unary().bytes()).await;
    silence(ms(50)).await;
    call.stream("done").await;
    for _ in 0..2 {
        upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(second.answer().await.status(), 200);
    }
    assert_eq!(gateway.metric("cancels_total", &[]).await, 0.0);
}

/// `half_close: finish`: a client that only has no more to say is served when it is its turn.
#[tokio::test]
async fn a_half_close_while_it_waits_is_served_where_the_file_says_so() {
    let finish = |settings: Settings| one_slot(settings).set("stream.half_close", "finish");
    let (gateway, mut upstream) = one_engine(finish).await;
    let (_first, call) = running(&gateway, &mut upstream).await;
    let mut second = joins(&gateway, &numbered(1), 1).await;
    second.half_close().await;
    silence(ms(50)).await;
    assert_eq!(gateway.metric("queue_depth", &[("cluster", "c")]).await, 1.0);
    call.stream("done").await;
    upstream.call().await.stream("served").await;
    checks::streamed(&mut second, "served").await;
}

/// Overload: five times as many as there are slots and places. All that is taken in is served whole, the rest is
/// told at once and costs the engine nothing.
#[tokio::test]
async fn what_is_too_much_is_shed_and_the_rest_is_served() {
    const SLOTS: usize = 4;
    const PLACES: usize = 4;
    const CLIENTS: usize = 5 * (SLOTS + PLACES);
    let upstream = Upstream::start().await;
    let settings = Settings::new(&[upstream.addr])
        .set("clusters.c.backends.0.max_inflight", SLOTS)
        .set("clusters.c.queue", serde_json::json!({ "max": PLACES }));
    let gateway = Gateway::start(settings).await;
    let (gate, opened) = tokio::sync::watch::channel(false);
    upstream.each(move |mut call| {
        let mut opened = opened.clone();
        async move {
            call.open().await;
            call.chunk(event("a")).await;
            within("the gate opens", 3 * SOON, opened.wait_for(|open| *open)).await.expect("the test runs");
            call.chunk(support::wire::DONE).await;
            call.finish().await;
        }
    });
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        clients.push(gateway.send(&numbered(n)).await);
    }
    // Nothing ends before the gate opens, so it is known how many can be taken in.
    let shed = CLIENTS - SLOTS - PLACES;
    gateway.wait_metric("requests_total", &[("outcome", "rejected")], shed as f64).await;
    gateway.wait_metric("queue_depth", &[("cluster", "c")], PLACES as f64).await;
    assert_eq!(gateway.metric("in_flight", &[("backend", "u1")]).await, SLOTS as f64);
    gate.send_replace(true);
    let mut served = 0;
    for client in &mut clients {
        let answer = client.answer().await;
        match answer.status() {
            200 => served += usize::from(answer.text().ends_with(support::wire::DONE)),
            _ => {
                checks::rejected(&answer, 503, "overloaded");
                assert_eq!(answer.head.get("retry-after"), Some("1"));
            }
        }
    }
    assert_eq!(served, SLOTS + PLACES);
    gateway.wait_metric("requests_total", &[("outcome", "completed")], served as f64).await;
    gateway.all_access(CLIENTS).await;
    checks::at_rest(&gateway).await;
}

/// A backend without a limit is never waited for.
#[tokio::test]
async fn without_a_limit_nobody_waits() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("clusters.c.queue.max", 0)).await;
    let mut clients = Vec::new();
    let mut calls = Vec::new();
    for n in 0..20 {
        clients.push(gateway.send(&numbered(n)).await);
        calls.push(upstream.call().await);
    }
    for call in calls {
        call.answer(stream_answer("done")).await;
    }
    for client in &mut clients {
        checks::streamed(client, "done").await;
    }
    assert_eq!(gateway.metric("queue_seconds_count", &[]).await, 0.0);
}

crate::over_h2! {
    who_waits_is_served_in_order_and_never_too_many_at_once,
    leaving_the_queue_frees_the_place_at_once,
    a_slot_freed_by_a_client_that_leaves_is_used_at_once,
    a_full_queue_is_told_at_once,
    a_wait_ends_with_its_timeout_and_no_early_head,
    early_headers_begin_with_the_slot,
    a_wait_is_never_longer_than_the_whole,
    the_end_of_a_drain_ends_a_wait,
    a_second_attempt_waits_for_the_other_backend,
    what_is_too_much_is_shed_and_the_rest_is_served,
}
