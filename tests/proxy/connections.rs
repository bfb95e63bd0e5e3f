//! The bound on client connections: who is one too many is told so, and nobody else notices.

use crate::support;
use crate::support::wire::{DONE, Request, event};
use crate::support::{Client, Gateway, Settings, Upstream, as_is, checks, one_engine, streaming};

fn at_most(max: usize) -> impl FnOnce(Settings) -> Settings {
    move |settings| settings.set("server.connections", serde_json::json!({ "max": max }))
}

async fn connections(gateway: &Gateway, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(gateway.client().await);
    }
    clients
}

/// Beyond the bound a connection gets 503 before it says anything; a stream goes on, and a place that
/// is given back is taken again.
#[tokio::test]
async fn one_too_many_is_told_and_the_others_go_on() {
    let (gateway, mut upstream) = one_engine(at_most(3)).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["a"]).await;
    let mut others = connections(&gateway, 2).await;
    gateway.wait_metric("connections_active", &[], 3.0).await;
    for refused in 1..=5 {
        let mut one_too_many = gateway.client().await;
        let answer = one_too_many.answer().await;
        checks::rejected(&answer, 503, "overloaded");
        assert_eq!(
            (answer.head.get("connection"), answer.head.get("retry-after")),
            (Some("close"), Some("1"))
        );
        one_too_many.closed().await;
        gateway.wait_metric("connections_refused_total", &[], f64::from(refused)).await;
    }
    // Somebody who has sent his request already is told as well.
    let answer = gateway.ask(&Request::chat()).await;
    checks::rejected(&answer, 503, "overloaded");
    gateway.wait_metric("requests_total", &[("outcome", "rejected")], 6.0).await;
    gateway.wait_log("connections refused: server.connections.max = 3 are open").await;
    assert_eq!(gateway.metric("connections_active", &[]).await, 3.0);

    call.chunk([&event("b"), DONE].concat()).await;
    checks::ends_same(client, call, [&event("a"), &event("b"), DONE].concat().as_bytes()).await;
    others.pop().expect("there are two").close();
    gateway.wait_metric("connections_active", &[], 1.0).await;
    client = gateway.send(&Request::chat()).await;
    upstream.call().await.stream("next").await;
    checks::streamed(&mut client, "next").await;
}

/// A flood of connections beyond the bound costs neither descriptors nor the stream that runs.
#[tokio::test]
async fn a_flood_of_connections_is_harmless() {
    let (gateway, mut upstream) = one_engine(at_most(2)).await;
    let (client, mut call) = streaming(&gateway, &mut upstream, &["a"]).await;
    let fds = gateway.fd_count();
    let _second = gateway.client().await;
    gateway.wait_metric("connections_active", &[], 2.0).await;
    let flood = connections(&gateway, 500).await;
    gateway.wait_metric("connections_refused_total", &[], 500.0).await;
    assert_eq!(gateway.metric("connections_active", &[]).await, 2.0);
    gateway.wait_log("connections refused").await;
    let told = gateway.log().matches("connections refused").count();
    assert!((1..50).contains(&told), "{told} lines for 500 connections");
    call.chunk(DONE).await;
    checks::ends_same(client, call, [&event("a"), DONE].concat().as_bytes()).await;
    drop(flood);
    support::wait::wait_until("descriptors are given back", support::wait::SOON, || {
        gateway.fd_count() <= fds + 2
    })
    .await;
}

/// Each way a connection can end gives its place back.
#[tokio::test]
async fn places_come_back_however_a_connection_ends() {
    let settings = |settings: Settings| {
        at_most(20)(settings)
            .set("server.request", serde_json::json!({ "header_timeout": "1s", "keepalive": "1s" }))
    };
    let (gateway, mut upstream) = one_engine(settings).await;
    for _ in 0..5 {
        let silent = gateway.client().await;
        let mut garbage = gateway.client().await;
        garbage.send("\u{16}\u{3}\u{1}").await;
        let (stream, _call) = streaming(&gateway, &mut upstream, &["a"]).await;
        stream.reset();
        let mut idle = gateway.send(&Request::chat()).await;
        upstream.call().await.stream("x").await;
        checks::streamed(&mut idle, "x").await;
        gateway.wait_metric("connections_active", &[], 0.0).await;
        drop((silent, garbage, idle));
    }
    assert_eq!(gateway.metric("connections_refused_total", &[]).await, 0.0);
}

/// The soft limit of descriptors is raised as far as it goes; one that is too low for the bound is told.
#[tokio::test]
async fn the_limit_of_descriptors_is_raised_and_a_low_one_told() {
    let engine = Upstream::start().await;
    let roomy = Gateway::start_limited("-Sn 256", at_most(20)(Settings::new(&[engine.addr]))).await;
    let (soft, hard) = roomy.fd_limits();
    assert!(soft == hard && hard > 256, "{soft} of {hard}");
    assert!(!roomy.log().contains("file descriptors"), "{}", roomy.log());

    let narrow = Gateway::start_limited("-n 256", as_is(Settings::new(&[engine.addr]))).await;
    assert_eq!(narrow.fd_limits(), (256, 256));
    narrow.wait_log("only 256 file descriptors are allowed, and server.connections.max may need 40144").await;
}
