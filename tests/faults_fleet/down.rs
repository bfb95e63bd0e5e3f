//! A node that is gone, rows B1 to B3, B21 and H21: it is left alone after three attempts, missed by nobody, and
//! taken back when it is there again.

use std::time::Instant;

use crate::support::fleet::{checks as checked, ejects, with};
use crate::support::sockets::Blackhole;
use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::Request;
use crate::support::{End, Engine, Row, Told, checks};
use serde_json::json;

const EXCHANGES: usize = 15;

/// B1: one of three has crashed. Three requests meet it, and each is moved; then none does.
#[tokio::test]
async fn b1_a_crashed_node_is_ejected_after_three_attempts() {
    let mut row = Row::start(3, with(ejects())).await;
    row.engines.remove(0).kill();
    row.whole_one_by_one(EXCHANGES).await;
    row.told("completed", EXCHANGES, json!({ "status": 200 })).await;
    assert_eq!(row.moved("connect").await, 3);
    assert_eq!(row.gateway.ejected("u1", "connect").await, 1.0);
    assert!(!row.gateway.is_up("u1").await);
    row.gateway.wait_log("backend c/u1").await;
    row.gateway.wait_log("(time 1): the backend could not be reached").await;
    row.settled(EXCHANGES).await;
}

/// B1: checks find a node gone that nobody has asked for anything, and find it again.
#[tokio::test]
async fn b1_checks_notice_what_no_request_has() {
    let mut row = Row::start(2, with(checked())).await;
    row.gateway.checked().await;
    let gone = row.engines.remove(0);
    let addr = gone.addr;
    gone.kill();
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_log("down: its health checks fail (the backend could not be reached").await;
    row.whole_one_by_one(4).await;
    row.never_moved().await;
    row.engines.insert(0, Engine::again(addr).await);
    row.gateway.wait_up("u1", true).await;
    row.gateway.wait_log("up: its health checks pass").await;
    row.whole_one_by_one(4).await;
    assert!(row.served_by("u1") > 0, "it gets work again");
    row.gateway.nobody_ejected().await;
    row.settled(8).await;
}

/// B1: a node that is well again comes back without a request, as its checks pass and a probe of ours is answered.
#[tokio::test]
async fn b1_an_ejected_node_that_nobody_asks_comes_back() {
    let row = Row::ill(2, "status=502", with(checked())).await;
    row.gateway.checked().await;
    row.whole_one_by_one(8).await;
    let moved = row.moved("status_502").await;
    assert!(moved >= 3 && row.gateway.ejected("u1", "status_502").await >= 1.0, "{moved}");
    assert!(!row.gateway.is_up("u1").await);
    row.engines[0].faults("").await;
    let up = [("backend", "u1")];
    let up = || async { row.gateway.metric("backend_up", &up).await == 1.0 };
    wait_until_async("it is back", 3 * SOON, up).await;
    row.gateway.wait_log("back: it answered a request (a probe for one token)").await;
    assert_eq!(row.served_by("u1"), 0);
    row.settled(8).await;
}

/// B2: one of three swallows connects. Three requests pay the connect timeout, then none does.
#[tokio::test]
async fn b2_a_blackhole_is_ejected_after_three_attempts() {
    let blackhole = Blackhole::start().await;
    let adjust = |settings| with(ejects())(settings).set("timeouts.connect", "300ms");
    let row = Row::behind(&[blackhole.addr()], 2, adjust).await;
    row.whole_one_by_one(EXCHANGES).await;
    assert_eq!(row.moved("connect_timeout").await, 3);
    let lines = row.lines(EXCHANGES).await;
    assert_eq!(lines.iter().filter(|line| line["attempts"] == 2).count(), 3, "{lines:?}");
    assert_eq!(row.gateway.ejected("u1", "connect_timeout").await, 1.0);
    row.gateway.wait_log("(time 1): connecting to the backend timed out").await;
    row.settled(EXCHANGES).await;
}

/// B2: a node that swallows connects fails its checks, too: nobody pays anything.
#[tokio::test]
async fn b2_checks_of_a_blackhole_time_out() {
    let blackhole = Blackhole::start().await;
    let adjust = |settings| with(checked())(settings).set("clusters.c.health.active.timeout", "200ms");
    let row = Row::behind(&[blackhole.addr()], 2, adjust).await;
    row.gateway.checked().await;
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_log("does not answer in 200ms").await;
    row.whole_one_by_one(6).await;
    row.never_moved().await;
    row.settled(6).await;
}

/// B3: one of three resets each request before an answer.
#[tokio::test]
async fn b3_a_node_that_resets_is_ejected_after_three_attempts() {
    for fault in ["reset_before_head", "fin_before_head", "reset_after_head"] {
        let row = Row::ill(3, fault, with(ejects())).await;
        row.whole_one_by_one(EXCHANGES).await;
        assert_eq!(row.moved("disconnected").await, 3, "{fault}");
        assert_eq!(row.engines[0].count("failed").await, 3, "{fault}");
        assert_eq!(row.gateway.ejected("u1", "disconnected").await, 1.0);
        row.gateway.wait_log("ejected for").await;
        row.settled(EXCHANGES).await;
    }
}

/// B21: all are down. Who comes is told at once, and a node is tried by one request a second.
#[tokio::test]
async fn b21_when_all_are_down_everybody_is_told_at_once() {
    let mut row = Row::start(2, with(checked())).await;
    row.gateway.checked().await;
    let addr = row.engines[0].addr;
    row.engines.drain(..).for_each(Engine::kill);
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_up("u2", false).await;
    let (began, count) = (Instant::now(), 100);
    let mut tried = 0;
    for _ in 0..count {
        let answer = row.gateway.ask(&Request::chat()).await;
        if answer.status() == 502 {
            tried += 1;
            continue;
        }
        checks::rejected(&answer, 503, "no_backend");
        assert_eq!(answer.head.get("retry-after"), Some("1"));
    }
    let most = 2 * (began.elapsed().as_secs() + 2);
    assert!(tried <= most, "{tried} of {count} were sent to a dead node");
    row.gateway.wait_log("cluster c: no backend is healthy").await;
    row.gateway.wait_metric("requests_total", &[("outcome", "rejected")], (count - tried) as f64).await;
    row.engines.push(Engine::again(addr).await);
    let served = || async { row.gateway.ask(&Request::chat()).await.status() == 200 };
    wait_until_async("the node is back", SOON, served).await;
    row.gateway.wait_up("u1", true).await;
    row.whole_one_by_one(4).await;
    checks::at_rest(&row.gateway).await;
}

/// H21: answers of 400 take no node out; what is down is missed by nobody while another is there; with none
/// there the answer is an error that can be read; and a node that returns is used.
#[tokio::test]
async fn h21_bad_requests_and_dead_nodes() {
    let mut row = Row::ill(2, "status=400", with(checked())).await;
    row.gateway.checked().await;
    let answers = row.ask(20, &Request::chat()).await;
    assert!(answers.iter().any(|answer| answer.status() == 400), "the fault struck");
    row.engines[0].faults("").await;
    row.gateway.nobody_ejected().await;
    assert!(row.gateway.is_up("u1").await);
    let addr = row.engines[0].addr;
    row.engines.remove(0).kill();
    row.whole_one_by_one(2).await;
    row.engines.remove(0).kill();
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_up("u2", false).await;
    let told = || async {
        let answer = row.gateway.ask(&Request::chat()).await;
        assert!(matches!(answer.status(), 502 | 503), "{}", answer.text());
        answer.status() == 503 && answer.head.get("retry-after").is_some()
    };
    wait_until_async("503", SOON, told).await;
    row.engines.push(Engine::again(addr).await);
    let served = || async { row.gateway.ask(&Request::chat()).await.status() == 200 };
    wait_until_async("the node is back", SOON, served).await;
    row.whole_one_by_one(4).await;
}

/// B23: one of three is killed with streams on each. Those it had begun are told; no other request notices,
/// and when it is started again it gets work again.
#[tokio::test]
async fn b23_a_killed_node_fails_nothing_but_what_it_had_begun() {
    let mut row = Row::start(3, |settings| with(checked())(settings)).await;
    row.gateway.checked().await;
    let long = Request::chat().header("x-sim-tokens: 1500");
    let mut clients = Vec::new();
    for _ in 0..15 {
        let mut client = row.gateway.send(&long).await;
        let head = client.until_body_holds(b"tok3#").await;
        clients.push((client, head.get("x-request-id").expect("an id").to_owned()));
    }
    let killed = row.engines.remove(0);
    let (addr, running) = (killed.addr, killed.count("running").await as usize);
    assert!(running > 0, "the fault strikes somebody");
    killed.kill();
    row.whole_one_by_one(10).await;
    let mut cut = 0;
    for (mut client, id) in clients {
        assert_eq!(client.end_within(3 * SOON).await, End::Clean);
        let told = Told::read(client.body(), &id);
        match told.error.as_deref() {
            None => assert_eq!((told.tokens, told.done), (1500, true)),
            Some("upstream_disconnected") => cut += 1,
            Some(other) => panic!("{other}"),
        }
    }
    assert_eq!(cut, running, "exactly those that it had begun");
    row.told("upstream_error", running, json!({ "backend": "u1" })).await;
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_log("backend c/u1").await;
    row.engines.insert(0, Engine::again(addr).await);
    row.gateway.wait_checks("u1", 3).await;
    // A request brings it back, and it stays.
    row.whole_one_by_one(6).await;
    assert!(row.gateway.is_up("u1").await);
    row.lines(31).await;
    assert!(row.served_by("u1") - running >= 2, "it gets work again");
    row.settled(31).await;
}

/// B24: a node that returns gets little at first, and its part in the end.
#[tokio::test]
async fn b24_a_node_that_returns_starts_slowly() {
    let slow = |settings| with(checked())(settings).set("clusters.c.health.slow_start", "6s");
    let mut row = Row::start(2, slow).await;
    row.gateway.checked().await;
    let gone = row.engines.remove(0);
    let addr = gone.addr;
    gone.kill();
    row.gateway.wait_up("u1", false).await;
    row.engines.insert(0, Engine::again(addr).await);
    row.gateway.wait_up("u1", true).await;
    let (began, mut early) = (Instant::now(), 0);
    while began.elapsed().as_secs() < 2 {
        row.whole_one_by_one(1).await;
        early += 1;
    }
    let first = row.served_by("u1");
    // A third of the time has a sixth of the share on average, and that of one half.
    assert!(first * 4 <= early, "{first} of the first {early}");
    while began.elapsed().as_secs() < 7 {
        row.whole_one_by_one(1).await;
        early += 1;
    }
    let before = row.lines(early).await.iter().filter(|line| line["backend"] == "u1").count();
    row.whole_one_by_one(20).await;
    row.lines(early + 20).await;
    let then = row.served_by("u1") - before;
    assert!((9..=11).contains(&then), "{then} of 20 when it is warm");
    row.gateway.wait_log("up: its health checks pass").await;
    row.settled(early + 20).await;
}

crate::over_h2! {
    b1_a_crashed_node_is_ejected_after_three_attempts,
    b3_a_node_that_resets_is_ejected_after_three_attempts,
}
