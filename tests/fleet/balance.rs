//! Which backend an attempt goes to: by weight, by load, by session and by prompt; and that what it
//! counts there goes back however it ends.

use std::collections::BTreeMap;

use crate::support::sockets::Blackhole;
use crate::support::upstream::either;
use crate::support::wire::{CHAT, CHAT_PATH, MIB, Request, answer, chat_of, stream_answer};
use crate::support::{Call, Client, Gateway, Leave, Settings, Upstream, checks, streaming};
use serde_json::{Value, json};

/// Engines that answer at once with their name, `e1`, `e2` ...
async fn named(count: usize) -> Vec<std::net::SocketAddr> {
    let mut engines = Vec::new();
    for n in 1..=count {
        engines.push(Upstream::answering(move |_| stream_answer(&format!("e{n}"))).await);
    }
    engines
}

/// A gateway over these engines, whose cluster says so.
async fn gateway(engines: &[std::net::SocketAddr], cluster: Value) -> Gateway {
    let settings = Settings::new(engines).set("clusters.c.balance", Value::Null);
    let cluster = cluster.as_object().expect("an object").clone();
    let set = |settings: Settings, (key, value)| settings.set(&format!("clusters.c.{key}"), value);
    Gateway::start(cluster.into_iter().fold(settings, set)).await
}

/// The name of the engine that answers this request.
async fn asked(gateway: &Gateway, request: &Request) -> String {
    let answer = gateway.ask(request).await;
    let text = answer.text();
    let (_, rest) = text.split_once("\"content\":\"").unwrap_or_else(|| panic!("{text}"));
    rest.split('"').next().unwrap_or_default().to_owned()
}

fn of_session(id: &str) -> Request {
    Request::chat().header(&format!("X-Session-Id: {id}"))
}

async fn kept(gateway: &Gateway, result: &str) -> f64 {
    gateway.metric("affinity_total", &[("cluster", "c"), ("result", result)]).await
}

#[tokio::test]
async fn turns_go_by_weight() {
    let engines = named(3).await;
    let gateway = gateway(&engines, json!({ "balance": "round_robin", "backends.0.weight": 5 })).await;
    let mut turns = Vec::new();
    for _ in 0..7 {
        turns.push(asked(&gateway, &Request::chat()).await);
    }
    assert_eq!(turns, ["e1", "e1", "e2", "e1", "e3", "e1", "e1"]);
}

/// 200 draws: each of two has its share, give or take six standard deviations.
#[tokio::test]
async fn chance_goes_by_weight() {
    let engines = named(2).await;
    let gateway = gateway(&engines, json!({ "balance": "random", "backends.1.weight": 3 })).await;
    let mut counts = BTreeMap::new();
    for _ in 0..200 {
        *counts.entry(asked(&gateway, &Request::chat()).await).or_insert(0) += 1;
    }
    assert!((113..=187).contains(&counts["e2"]), "{counts:?}");
}

/// Of eight requests that are open at the same time a backend of weight 3 has six, whatever was drawn.
#[tokio::test]
async fn open_work_goes_by_weight() {
    let (one, two) = (Upstream::start().await, Upstream::start().await);
    let gateway = gateway(&[one.addr, two.addr], json!({ "backends.1.weight": 3 })).await;
    let mut open = Vec::new();
    for count in 1..=8 {
        open.push(gateway.send(&Request::chat()).await);
        gateway.wait_metric("in_flight", &[], f64::from(count)).await;
    }
    assert_eq!(gateway.metric("in_flight", &[("backend", "u1")]).await, 2.0);
    assert_eq!(gateway.metric("in_flight", &[("backend", "u2")]).await, 6.0);
}

/// The default: a node with a long stream gets nothing while the other one is idle, then both do.
#[tokio::test]
async fn the_node_without_a_long_stream_is_preferred() {
    let (mut one, mut two) = (Upstream::start().await, Upstream::start().await);
    let gateway = gateway(&[one.addr, two.addr], json!({})).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (mut long, other) = either(&mut one, &mut two).await;
    long.open().await;
    assert_eq!(client.head().await.status(), 200);
    for n in 0..10 {
        let content = format!("short {n}");
        let mut client = gateway.send(&Request::chat()).await;
        other.call().await.stream(&content).await;
        checks::streamed(&mut client, &content).await;
        gateway.wait_metric("in_flight", &[], 1.0).await;
    }
    // Nor does the next long one join it.
    let (_second, _held) = (gateway.send(&Request::chat()).await, other.call().await);
    gateway.wait_metric("in_flight", &[("backend", "u1")], 1.0).await;
    gateway.wait_metric("in_flight", &[("backend", "u2")], 1.0).await;
    long.finish().await;
    client.end().await;
}

/// What a request costs is known before it is sent, and is more than a count of one.
#[tokio::test]
async fn a_long_answer_weighs_more_than_a_short_one() {
    let (mut one, mut two) = (Upstream::start().await, Upstream::start().await);
    let gateway = gateway(&[one.addr, two.addr], json!({})).await;
    let of = |fields: &str| Request::post(CHAT_PATH, CHAT.replacen('{', &format!("{{{fields},"), 1));
    let _large = gateway.send(&of("\"max_tokens\":4000")).await;
    let (_call, other) = either(&mut one, &mut two).await;
    let load = gateway.metric("load", &[]).await;
    assert!((4_000.0..4_010.0).contains(&load), "{load}");
    let mut small = Vec::new();
    for _ in 0..8 {
        let client = gateway.send(&of("\"max_completion_tokens\":100")).await;
        small.push((client, other.call().await));
    }
    assert_eq!(gateway.metric("in_flight", &[]).await, 9.0);
}

/// A session stays where it is, whatever the others do, and another one is elsewhere.
#[tokio::test]
async fn a_session_sticks() {
    let engines = named(3).await;
    let gateway = gateway(&engines, json!({ "affinity": { "by": ["session"] } })).await;
    let mut homes = BTreeMap::new();
    for round in 0..4 {
        for session in 0..16 {
            let id = format!("s-{session}");
            let name = asked(&gateway, &of_session(&id)).await;
            asked(&gateway, &Request::chat()).await;
            let home = homes.entry(id).or_insert_with(|| name.clone());
            assert_eq!(*home, name, "round {round}");
        }
    }
    let used: std::collections::BTreeSet<_> = homes.values().collect();
    assert!(used.len() > 1, "16 sessions on one of three nodes");
    assert_eq!((kept(&gateway, "new").await, kept(&gateway, "hit").await), (16.0, 48.0));
    assert_eq!((kept(&gateway, "spill").await, kept(&gateway, "moved").await), (0.0, 0.0));
    let model = CHAT.replace("\"model\":\"m\"", "\"model\":\"n\"");
    asked(&gateway, &Request::post(CHAT_PATH, model).header("X-Session-Id: s-0")).await;
    assert_eq!(kept(&gateway, "new").await, 17.0, "another model shares no cache");
}

/// A conversation that grows stays where its beginning is; another one with the same beginning joins it.
#[tokio::test]
async fn a_growing_prompt_stays_home() {
    let engines = named(3).await;
    let gateway = gateway(&engines, json!({ "affinity": { "by": ["session", "prefix"] } })).await;
    let message = |role: &str, text: &str| json!({ "role": role, "content": text.repeat(60) });
    let chat = |messages: &[Value]| {
        let body = json!({ "messages": messages, "model": "m", "stream": true });
        Request::post(CHAT_PATH, body.to_string())
    };
    let mut messages = vec![message("system", "You help. "), message("user", "Why? ")];
    let home = asked(&gateway, &chat(&messages)).await;
    for turn in 0..6 {
        messages.push(message("assistant", &format!("Because of {turn}. ")));
        messages.push(message("user", "And then? "));
        assert_eq!(asked(&gateway, &chat(&messages)).await, home, "turn {turn}");
    }
    let sibling = [messages[0].clone(), message("user", "Where? ")];
    assert_eq!(asked(&gateway, &chat(&sibling)).await, home);
    assert_eq!((kept(&gateway, "new").await, kept(&gateway, "hit").await), (1.0, 7.0));
    // Too short to be known by, or not JSON: nothing to stick by.
    asked(&gateway, &Request::chat()).await;
    assert_eq!(kept(&gateway, "new").await, 1.0);
}

/// Streams of one session until its node is too full: the overflow goes to the other one, and when the
/// streams are over the session is at home where it was.
#[tokio::test]
async fn overflow_spills_and_comes_home() {
    let (mut one, mut two) = (Upstream::start().await, Upstream::start().await);
    let sticky = json!({ "affinity": { "by": ["session"], "load_bound": 1.25 } });
    let gateway = gateway(&[one.addr, two.addr], sticky).await;
    let mut client = gateway.send(&of_session("s")).await;
    let (mut call, other) = either(&mut one, &mut two).await;
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    let (away, first) = (other.addr, call);
    let (home, away) = if away == two.addr { (&mut one, &mut two) } else { (&mut two, &mut one) };
    // 513 each: four of them are above what any node always takes, and twice the mean.
    let mut open = vec![(client, first)];
    for _ in 0..3 {
        let client = gateway.send(&of_session("s")).await;
        open.push((client, home.call().await));
    }
    for spilt in 1..=2 {
        let mut client = gateway.send(&of_session("s")).await;
        away.call().await.stream("away").await;
        checks::streamed(&mut client, "away").await;
        assert_eq!(kept(&gateway, "spill").await, f64::from(spilt));
    }
    for (client, call) in open {
        client.close();
        drop(call);
    }
    checks::at_rest(&gateway).await;
    let mut client = gateway.send(&of_session("s")).await;
    home.call().await.stream("home").await;
    checks::streamed(&mut client, "home").await;
    away.assert_not_asked();
    assert_eq!((kept(&gateway, "new").await, kept(&gateway, "hit").await), (1.0, 4.0));
    assert_eq!(kept(&gateway, "moved").await, 0.0);
}

/// Two gateways that know nothing of each other send a session to the same node.
#[tokio::test]
async fn a_hash_agrees_between_gateways() {
    let engines = named(4).await;
    let hash = json!({ "balance": "consistent_hash" });
    let (here, there) = (gateway(&engines, hash.clone()).await, gateway(&engines, hash).await);
    let mut used = std::collections::BTreeSet::new();
    for session in 0..24 {
        let request = of_session(&format!("s-{session}"));
        let name = asked(&here, &request).await;
        assert_eq!(asked(&there, &request).await, name);
        used.insert(name);
    }
    assert!(used.len() > 1, "{used:?}");
}

/// A node that just said 429 is not the one that looks idle.
#[tokio::test]
async fn a_busy_node_is_not_taken_for_an_idle_one() {
    let busy = Upstream::answering(|_| answer("429 Too Many Requests", &[], "{}")).await;
    let well = Upstream::answering(|_| stream_answer("well")).await;
    let gateway = gateway(&[busy, well], json!({})).await;
    for _ in 0..30 {
        assert_eq!(asked(&gateway, &Request::chat()).await, "well");
    }
    let moved = gateway.metric("retries_total", &[("reason", "status_429")]).await;
    assert!(moved <= 1.0, "the busy node was asked {moved} times");
}

/// A request that is open on an engine, in each phase that an attempt has.
async fn in_each_phase(
    gateway: &Gateway,
    upstream: &mut Upstream,
) -> Vec<(Client, Option<Call>, &'static str)> {
    let waiting = gateway.send(&Request::chat()).await;
    let prefill = upstream.call().await;
    let (streamed, stream) = streaming(gateway, upstream, &["1"]).await;
    let blocked = gateway.send(&Request::post(CHAT_PATH, chat_of(MIB))).await;
    let upload = upstream.call().await;
    let unary = gateway.send(&Request::unary()).await;
    let whole = upstream.call().await;
    vec![
        (waiting, Some(prefill), "first_event"),
        (streamed, Some(stream), "stream"),
        (blocked, Some(upload), "first_event"),
        (unary, Some(whole), "unary"),
    ]
}

/// In-flight and load are held for the whole generation, and go back whenever the client leaves.
#[tokio::test]
async fn counts_return_to_zero_after_cancels_in_every_phase() {
    let blackhole = Blackhole::start().await;
    for how in Leave::ways() {
        let mut upstream = Upstream::start().await;
        let route = json!({ "name": "hole", "match": { "path": "/hole" }, "cluster": "hole" });
        let hole = json!({ "backends": [{ "name": "h1", "url": format!("http://{}", blackhole.addr()) }] });
        let far = ["connect", "first_event", "unary", "idle"];
        let settings = Settings::new(&[upstream.addr]).set("clusters.hole", hole).route(route);
        let settings = far
            .into_iter()
            .fold(settings, |settings, timeout| settings.set(&format!("timeouts.{timeout}"), "25s"));
        let gateway = Gateway::start(settings).await;
        let mut open = in_each_phase(&gateway, &mut upstream).await;
        open.push((gateway.send(&Request::post("/hole", CHAT)).await, None, "connect"));
        gateway.wait_metric("in_flight", &[], open.len() as f64).await;
        let load = gateway.metric("load", &[("cluster", "c")]).await;
        // Four answers of unknown length, and a prompt of 1 MiB of which half counts.
        assert!((2_048.0 + 8_192.0..2_048.0 + 8_300.0).contains(&load), "{load}");
        for (client, call, phase) in open {
            let before = gateway.metric("load", &[]).await;
            client.leave(how);
            if let Some(mut call) = call {
                call.gone().await;
            }
            gateway.wait_metric_where("the load falls", "load", &[], |now| now < before).await;
            gateway.wait_access(phase, |line| line["phase"] == phase).await;
        }
        checks::at_rest(&gateway).await;
        assert_eq!(gateway.metric("requests_total", &[("outcome", "client_closed")]).await, 5.0);
    }
}

/// An attempt that failed is off its backend's books while the next one is open.
#[tokio::test]
async fn a_failed_attempt_counts_no_more() {
    let (mut one, mut two) = (Upstream::start().await, Upstream::start().await);
    let gateway = gateway(&[one.addr, two.addr], json!({})).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (call, other) = either(&mut one, &mut two).await;
    let once = gateway.metric("load", &[]).await;
    assert!(once > 0.0);
    call.reset();
    let call = other.call().await;
    assert_eq!((gateway.metric("in_flight", &[]).await, gateway.metric("load", &[]).await), (1.0, once));
    call.stream("x").await;
    checks::streamed(&mut client, "x").await;
    checks::at_rest(&gateway).await;
}
