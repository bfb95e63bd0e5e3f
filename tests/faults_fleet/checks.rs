//! Health checks and readings: rows B19 and B22, readiness, TLS, and that a reading that fails means nothing.

use crate::support::certificates::Authority;
use crate::support::fleet::{checks as checked, ejects, with};
use crate::support::wait::{SOON, wait_until, wait_until_async};
use crate::support::{Gateway, Row, Settings, Told, Upstream};
use serde_json::json;

/// B19: a node generates while its `/health` says 503. What it answers outvotes that.
#[tokio::test]
async fn b19_a_node_that_generates_outvotes_its_checks() {
    let row = Row::start(2, with(checked())).await;
    row.gateway.checked().await;
    row.engines[0].faults("health=503").await;
    let mut exchanges = 0;
    while !row.gateway.log().contains("degraded: its health checks fail, and it goes on answering") {
        row.whole_one_by_one(1).await;
        exchanges += 1;
        assert!(exchanges < 2_000, "{}", row.gateway.log());
    }
    row.lines(exchanges).await;
    let before = row.served_by("u1");
    row.whole_one_by_one(10).await;
    row.lines(exchanges + 10).await;
    assert!(row.served_by("u1") - before >= 4, "it goes on getting its part");
    assert!(row.gateway.is_up("u1").await);
    assert!(
        row.gateway.metric("health_checks_total", &[("backend", "u1"), ("result", "failed")]).await >= 2.0
    );
    row.never_moved().await;
    // When nothing is heard of it any more the checks have it.
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_log("down: its health checks fail").await;
    row.gateway.nobody_ejected().await;
    row.settled(exchanges + 10).await;
}

/// B22: all checks fail, and the data path is fine: nobody notices, whether or not there was traffic before.
#[tokio::test]
async fn b22_failing_checks_of_all_nodes_stop_nobody() {
    let row = Row::start(2, with(checked())).await;
    row.gateway.checked().await;
    for engine in &row.engines {
        engine.faults("health=503").await;
    }
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_up("u2", false).await;
    assert_eq!(row.streams(10).await, vec![Told::whole(); 10], "after a silence, all at once");
    row.whole_one_by_one(10).await;
    row.told("completed", 20, json!({ "status": 200, "attempts": 1 })).await;
    row.gateway.wait_log("down: its health checks fail (/health answers with status 503)").await;
    assert!(row.served_by("u1") >= 5 && row.served_by("u2") >= 5, "both go on");
    row.gateway.nobody_ejected().await;
    row.settled(20).await;
}

/// B22: where all checks fail and all slots are taken, who comes waits as ever; and the work goes to all.
#[tokio::test]
async fn b22_failing_checks_of_full_nodes_make_nobody_leave() {
    let full = |settings: Settings| {
        let settings = with(checked())(settings).set("clusters.c.backends.0.max_inflight", 2);
        settings.set("clusters.c.backends.1.max_inflight", 2)
    };
    let row = Row::start(2, full).await;
    row.gateway.checked().await;
    for engine in &row.engines {
        engine.faults("health=503").await;
    }
    row.gateway.wait_up("u1", false).await;
    row.gateway.wait_up("u2", false).await;
    assert_eq!(row.streams(20).await, vec![Told::whole(); 20]);
    row.told("completed", 20, json!({ "status": 200, "attempts": 1 })).await;
    assert!(
        row.served_by("u1") >= 6 && row.served_by("u2") >= 6,
        "both go on, also when one has shown that it can"
    );
    row.gateway.nobody_ejected().await;
    row.settled(20).await;
}

/// A node whose metrics cannot be read is no worse for it.
#[tokio::test]
async fn a_failed_scrape_is_no_verdict() {
    let mut upstream = Upstream::start().await;
    let settings = Settings::new(&[upstream.addr])
        .set("clusters.c.health", ejects())
        .set("clusters.c.scrape", json!({ "path": "/metrics", "every": "100ms" }));
    let gateway = Gateway::start(settings).await;
    upstream.call().await.answer("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n").await;
    upstream.call().await.reset();
    let call = upstream.call().await;
    assert!(call.request.head.line.starts_with("GET /metrics "), "{:?}", call.request.head);
    let failed = [("kind", "scrape"), ("result", "failed")];
    gateway.wait_metric("health_checks_total", &failed, 2.0).await;
    assert!(gateway.is_up("u1").await);
    gateway.nobody_ejected().await;
}

/// The first check has to be in before the gateway says that it is ready; it goes to the backend's own name and
/// prefix with the cluster's headers and credentials.
#[tokio::test]
async fn readiness_waits_for_the_first_check() {
    let mut upstream = Upstream::start().await;
    let mut settings = Settings::new(&[upstream.addr])
        .set("clusters.c.health", checked())
        .set("clusters.c.headers", json!({ "set": { "x-team": "a" } }))
        .set("clusters.c.auth", json!({ "bearer_env": "ENGINE_KEY" }));
    settings = settings.set("clusters.c.backends.0.url", format!("http://{}/base", upstream.addr));
    let gateway = Gateway::start_in(settings, &[("ENGINE_KEY", "s3cret")]).await;
    let call = upstream.call().await;
    let answer = gateway.admin_get("/readyz").await;
    assert_eq!((answer.status(), answer.text().as_str()), (503, "checking\n"));
    let head = &call.request.head;
    assert!(head.line.starts_with("GET /base/health "), "{head:?}");
    assert_eq!(head.get("host"), Some(upstream.addr.to_string().as_str()));
    assert_eq!((head.get("authorization"), head.get("x-team")), (Some("Bearer s3cret"), Some("a")));
    call.answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    gateway.checked().await;
    assert!(gateway.is_up("u1").await);
    let next = upstream.call().await;
    wait_until("one check at a time", SOON, || upstream.connections() >= 2).await;
    next.answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    assert!(!gateway.log().contains("s3cret"));
    wait_until_async("checks are counted", SOON, || async {
        gateway.metric("health_checks_total", &[("kind", "check"), ("result", "ok")]).await >= 2.0
    })
    .await;
}

/// Checks go the way of work over TLS: whoever work would not believe is down.
#[tokio::test]
async fn checks_believe_whom_work_believes() {
    let authority = Authority::new();
    let (known, stranger) =
        (authority.vouches_for(&["127.0.0.1"]), Authority::new().vouches_for(&["127.0.0.1"]));
    let mut addresses = Vec::new();
    for identity in [known, stranger] {
        let upstream = Upstream::with_tls(&identity).await;
        addresses.push(upstream.addr);
        upstream.each(|call| call.answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    }
    let settings = Settings::new(&addresses).https(json!({ "ca": authority.file() }));
    let gateway = Gateway::start(with(checked())(settings)).await;
    gateway.checked().await;
    gateway.wait_up("u2", false).await;
    gateway.wait_log("no authority that is trusted here has signed it").await;
    assert!(gateway.is_up("u1").await);
    let passed = [("backend", "u1"), ("kind", "check"), ("result", "ok")];
    assert!(gateway.metric("health_checks_total", &passed).await >= 1.0);
}
