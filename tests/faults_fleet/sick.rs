//! A node that is there and not quite well, rows B15, B16, B20, B26, B29 and B30: what counts against it, and what
//! never does.

use crate::support::fleet::{ejects, with};
use crate::support::wire::{CHAT_PATH, Request};
use crate::support::{Gateway, Row, Settings, Upstream, as_is, checks};
use serde_json::json;

/// B15: a 500 passes as it is, is not tried again, and does not count.
#[tokio::test]
async fn b15_500_never_ejects() {
    let row = Row::ill(2, "status=500", with(ejects())).await;
    let answers = row.ask(30, &Request::chat()).await;
    let failed = answers.iter().filter(|answer| answer.status() == 500).count();
    assert!(failed >= 10, "it goes on getting its part: {failed}");
    row.told("upstream_error", failed, json!({ "status": 500, "attempts": 1, "backend": "u1" })).await;
    row.gateway.nobody_ejected().await;
    row.never_moved().await;
    row.settled(30).await;
}

/// B30, H21(a): refusals that clients cause do not count either.
#[tokio::test]
async fn b30_4xx_never_ejects() {
    for status in [400, 401, 404, 413, 422] {
        let row = Row::ill(2, &format!("status={status}"), with(ejects())).await;
        let answers = row.ask(100, &Request::chat()).await;
        let refused = answers.iter().filter(|answer| answer.status() == status).count();
        assert!(refused >= 40, "it goes on getting its part: {refused} of {status}");
        row.told("completed", 100, json!({ "attempts": 1 })).await;
        row.gateway.nobody_ejected().await;
        assert!(row.gateway.is_up("u1").await);
        row.settled(100).await;
    }
}

/// B30: clients that leave before an answer, in the middle of one, and with half a request sent.
#[tokio::test]
async fn b30_clients_that_leave_never_eject() {
    let row = Row::ill(1, "stall_at=2", with(ejects())).await;
    for _ in 0..10 {
        let mut client = row.gateway.send(&Request::chat()).await;
        client.until_body_holds(b"tok1#").await;
        client.reset();
    }
    row.gateway.wait_metric("cancels_total", &[("phase", "stream")], 10.0).await;
    row.engines[0].faults("stall_before_head").await;
    for n in 1..=10 {
        let client = row.gateway.send(&Request::chat()).await;
        row.engines[0].wait_count("requests", 10 + n).await;
        client.reset();
    }
    row.gateway.wait_metric("requests_total", &[("outcome", "client_closed")], 20.0).await;
    row.gateway.nobody_ejected().await;
    assert!(row.gateway.is_up("u1").await);
    row.settled(20).await;
}

/// 502, 503 and 504 count, whether or not they pass. A 503 asks for no rest here, or it would be seen less often.
#[tokio::test]
async fn b16_bad_gateways_are_ejected_after_three_attempts() {
    for status in [502, 503, 504] {
        let row = Row::ill(3, &format!("status={status};retry_after=0"), with(ejects())).await;
        row.whole_one_by_one(15).await;
        let reason = format!("status_{status}");
        assert_eq!(row.moved(&reason).await, 3);
        assert_eq!(row.gateway.ejected("u1", &reason).await, 1.0);
        row.gateway.wait_log("ejected for").await;
        row.settled(15).await;
    }
}

/// B20: a node that comes and goes is out for longer each time, and no request is lost to it.
#[tokio::test]
async fn b20_a_flapping_node_is_out_for_longer_each_time() {
    let health = json!({
        "active": null,
        "passive": { "consecutive": 1, "ejection": "400ms", "ejection_max": "1m", "max_ejected": "50%" },
        "slow_start": "0s",
    });
    let row = Row::ill(2, "fin_after_head;p=2", with(health)).await;
    let mut exchanges = 0;
    let mut ejections = 0.0;
    while ejections < 3.0 {
        row.whole_one_by_one(1).await;
        exchanges += 1;
        assert!(exchanges < 3_000, "{}", row.gateway.log());
        ejections = row.gateway.metric("ejections_total", &[("backend", "u1")]).await;
    }
    row.told("completed", exchanges, json!({ "status": 200 })).await;
    assert!(row.moved("disconnected").await >= 3);
    row.gateway.wait_log("(time 3)").await;
    row.settled(exchanges).await;
}

/// B26: a node that goes on generating for a client that has left: its place here is free at once, and it
/// does not count against it.
#[tokio::test]
async fn b26_a_node_that_ignores_the_end_keeps_no_place() {
    let row = Row::ill(1, "ignore_cancel", with(ejects())).await;
    let long = Request::chat().header("x-sim-tokens: 100000");
    for _ in 0..5 {
        let mut client = row.gateway.send(&long).await;
        client.until_body_holds(b"tok1#").await;
        client.reset();
    }
    row.gateway.wait_metric("cancels_total", &[("phase", "stream")], 5.0).await;
    row.gateway.wait_metric("in_flight", &[], 0.0).await;
    assert_eq!(row.engines[0].count("running").await, 5, "the fault struck: they go on over there");
    row.gateway.nobody_ejected().await;
    row.told("client_closed", 5, json!({ "backend": "u1" })).await;
    row.whole_one_by_one(2).await;
}

/// B29: a request that crashes whoever serves it meets two nodes at most, and takes no more nodes out than
/// may be out.
#[tokio::test]
async fn b29_a_poison_request_meets_two_nodes() {
    let mut addresses = Vec::new();
    for _ in 0..3 {
        let upstream = Upstream::start().await;
        addresses.push(upstream.addr);
        upstream.each(|call| async move {
            if call.request.body.windows(6).any(|bytes| bytes == b"poison") {
                call.reset();
            } else {
                call.stream("well").await;
            }
        });
    }
    let gateway = Gateway::start(with(ejects())(as_is(Settings::new(&addresses)))).await;
    let poison = Request::post(CHAT_PATH, r#"{"model":"poison","messages":[],"stream":true}"#);
    checks::rejected(&gateway.ask(&poison).await, 502, "upstream_disconnected");
    let line = gateway.only_access().await;
    assert_eq!(line["attempts"], 2, "{line}");
    gateway.nobody_ejected().await;
    for _ in 0..20 {
        assert_eq!(gateway.ask(&poison).await.status(), 502);
        assert_eq!(gateway.ask(&Request::chat()).await.status(), 200, "who is well is served");
    }
    let lines = gateway.all_access(41).await;
    assert!(lines.iter().all(|line| line["attempts"].as_u64() <= Some(2)), "{lines:?}");
    let ejected = gateway.metric("ejections_total", &[]).await;
    assert!(ejected <= 1.0, "half of three is one: {ejected}");
    gateway.wait_log("closed the connection before it answered").await;
    checks::at_rest(&gateway).await;
}

crate::over_h2! {
    b15_500_never_ejects,
    b30_clients_that_leave_never_eject,
}
