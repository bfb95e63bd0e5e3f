//! A route with more than one cluster: when the next one is asked, and what it is sent.

use crate::support;
use crate::support::settings::unwatched;
use crate::support::sockets::Refusing;
use crate::support::upstream::either;
use crate::support::wire::{CHAT_PATH, DONE, FINISH, Request, USAGE, answer, event};
use crate::support::{Call, Client, End, Gateway, Settings, Upstream, checks};
use serde_json::{Value, json};

/// A client that says nothing of usage, and knows the model by another name than the engines.
const PLAIN: &str = "{\"model\":\"alias\", \"stream\":true,  \"messages\":[]}";
/// What an engine is sent that would not tell usage unasked, and one that would.
const ASKED: &str =
    "{\"stream_options\":{\"include_usage\":true},\"model\":\"real\", \"stream\":true,  \"messages\":[]}";
const UNASKED: &str = "{\"model\":\"real\", \"stream\":true,  \"messages\":[]}";

/// An own cluster `own` with one slot and no queue, then `api`, a hosted one.
fn hybrid(own: &[std::net::SocketAddr], api: &[std::net::SocketAddr]) -> Settings {
    let backends = |addrs: &[std::net::SocketAddr], slots: Value| -> Vec<Value> {
        let named = addrs.iter().enumerate();
        named
            .map(|(n, addr)| json!({ "name": format!("u{n}"), "url": format!("http://{addr}"), "max_inflight": slots }))
            .collect()
    };
    Settings::new(&[])
        .set(
            "clusters",
            json!({
                "own": {
                    "profile": "vllm", "backends": backends(own, json!(1)), "queue": { "max": 0 },
                    "health": unwatched(), "scrape": null,
                },
                "api": {
                    "profile": "deepseek", "backends": backends(api, json!("never")),
                    "health": unwatched(), "scrape": null,
                    "auth": { "header": "x-api-key", "env": "API_KEY" }, "headers": { "remove": ["cookie"] },
                },
            }),
        )
        .set(
            "routes",
            json!([{
                "name": "chat", "match": { "path": CHAT_PATH }, "cluster": "own", "fallback": ["api"],
                "aliases": { "alias": "real" },
            }]),
        )
}

async fn start(settings: Settings) -> Gateway {
    Gateway::start_in(settings, &[("API_KEY", "hosted-key")]).await
}

/// One own engine and a hosted one.
async fn two_kinds(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream, Upstream) {
    let (own, api) = (Upstream::start().await, Upstream::start().await);
    let gateway = start(adjust(hybrid(&[own.addr], &[api.addr]))).await;
    (gateway, own, api)
}

fn plain() -> Request {
    Request::post(CHAT_PATH, PLAIN).header("Cookie: a=b")
}

/// The own engine was asked: usage too, and with the client's own credentials.
fn is_own(call: &Call) {
    checks::has_body(&call.request, ASKED);
    let head = &call.request.head;
    assert_eq!((head.get("authorization"), head.get("x-api-key")), (Some("Bearer k1"), None));
    assert_eq!(head.get("cookie"), Some("a=b"));
}

/// The hosted engine was asked, with the gateway's credentials and nothing that is not its business.
fn is_hosted(call: &Call) {
    checks::has_body(&call.request, UNASKED);
    let head = &call.request.head;
    assert_eq!((head.get("authorization"), head.get("x-api-key")), (None, Some("hosted-key")));
    assert_eq!(head.get("cookie"), None);
}

/// Both kinds of engine send a usage frame: the own one's is ours and is cut out, the hosted one's passes.
async fn streams(mut call: Call, client: &mut Client, passes_usage: bool) {
    call.open().await;
    call.chunk([&event("a"), FINISH, USAGE, DONE].concat()).await;
    call.finish().await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    let usage = if passes_usage { USAGE } else { "" };
    checks::same(client.body(), [&event("a"), FINISH, usage, DONE].concat().as_bytes());
}

/// The line of an exchange that ended well at this cluster.
async fn told(gateway: &Gateway, cluster: &str, attempts: u64) -> Value {
    let line = gateway.wait_access(cluster, |line| line["cluster"] == cluster).await;
    assert_eq!((&line["outcome"], &line["attempts"]), (&"completed".into(), &attempts.into()), "{line}");
    assert_eq!(line["usage"]["prompt"], 7, "{line}");
    gateway.wait_metric("requests_total", &[("cluster", cluster), ("outcome", "completed")], 1.0).await;
    line
}

/// All own nodes die at once: one request may find out of each, and from then on the attempt that is left goes to the
/// next cluster.
#[tokio::test]
async fn the_last_attempt_is_not_spent_on_another_dead_node() {
    let api = Upstream::answering(|_| support::wire::json_answer(support::wire::ANSWER)).await;
    let own = [Refusing::start(), Refusing::start(), Refusing::start()];
    let own: Vec<_> = own.iter().map(Refusing::addr).collect();
    let settings = hybrid(&own, &[api]).set("clusters.own.balance", "round_robin");
    let gateway = start(settings.set("clusters.own.retry", json!({ "budget": "100%" }))).await;
    let mut failed = 0;
    for _ in 0..12 {
        let mut client = gateway.send(&plain()).await;
        failed += usize::from(client.answer().await.status() != 200);
    }
    assert!(failed <= 2, "{failed} of 12");
    // Each of them is known to fail by now, also those that max_ejected does not let go.
    for _ in 0..12 {
        let mut client = gateway.send(&plain()).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    gateway.wait_metric("requests_total", &[("cluster", "api")], (24 - failed) as f64).await;
    gateway.wait_log("trying another node").await;
}

/// What the own engine cannot take overflows, and comes back when there is room.
#[tokio::test]
async fn what_own_engines_cannot_take_overflows() {
    let (gateway, mut own, mut api) = two_kinds(support::as_is).await;
    let mut first = gateway.send(&plain()).await;
    let busy = own.call().await;
    is_own(&busy);
    let mut second = gateway.send(&plain()).await;
    let call = api.call().await;
    is_hosted(&call);
    streams(call, &mut second, true).await;
    told(&gateway, "api", 1).await;
    streams(busy, &mut first, false).await;
    told(&gateway, "own", 1).await;
    checks::at_rest(&gateway).await;
    let mut third = gateway.send(&plain()).await;
    streams(own.call().await, &mut third, false).await;
    api.assert_not_asked();
}

/// With places in its queue, a request first waits for the own engine, and is served there if it comes free.
#[tokio::test]
async fn a_queue_comes_before_the_overflow() {
    let patient = |settings: Settings| settings.set("clusters.own.queue.max", 5).set("timeouts.queue", "25s");
    let (gateway, mut own, mut api) = two_kinds(patient).await;
    let mut first = gateway.send(&plain()).await;
    let busy = own.call().await;
    let mut second = gateway.send(&plain()).await;
    gateway.wait_metric("queue_depth", &[("cluster", "own")], 1.0).await;
    streams(busy, &mut first, false).await;
    streams(own.call().await, &mut second, false).await;
    api.assert_not_asked();
    checks::at_rest(&gateway).await;
}

/// When the wait is over the request overflows, with its wait in the line.
#[tokio::test]
async fn a_wait_that_is_over_overflows() {
    let brief = |settings: Settings| settings.set("clusters.own.queue.max", 5).set("timeouts.queue", "400ms");
    let (gateway, mut own, mut api) = two_kinds(brief).await;
    let _first = gateway.send(&plain()).await;
    let _busy = own.call().await;
    let mut second = gateway.send(&plain()).await;
    let call = api.call().await;
    is_hosted(&call);
    streams(call, &mut second, true).await;
    let line = told(&gateway, "api", 1).await;
    assert!(line["queued_ms"].as_f64().is_some_and(|queued| queued >= 400.0), "{line}");
    gateway.wait_metric("queue_seconds_count", &[("cluster", "own")], 1.0).await;
}

/// An own engine that is down: the second attempt is the hosted engine's, with the body that it is to get.
#[tokio::test]
async fn a_failed_attempt_moves_to_the_next_cluster_where_its_own_has_none_left() {
    let refusing = Refusing::start();
    let mut api = Upstream::start().await;
    let gateway = start(hybrid(&[refusing.addr()], &[api.addr])).await;
    let mut client = gateway.send(&plain()).await;
    let call = api.call().await;
    is_hosted(&call);
    streams(call, &mut client, true).await;
    told(&gateway, "api", 2).await;
    gateway.wait_metric("retries_total", &[("cluster", "own"), ("reason", "connect")], 1.0).await;
    gateway.wait_log("trying another node").await;
    checks::at_rest(&gateway).await;
}

/// An own engine that said when to come back: who comes until then is the hosted engine's at once.
#[tokio::test]
async fn while_own_engines_rest_the_next_cluster_is_asked() {
    for headers in [
        &["Retry-After: 60"][..],
        &["Retry-After: Fri, 31 Dec 2100 23:59:59 GMT"],
        &["Retry-After: 0", "retry-after-ms: 60000"],
    ] {
        let (gateway, mut own, mut api) = two_kinds(support::as_is).await;
        let mut first = gateway.send(&plain()).await;
        own.call().await.answer(answer("429 Too Many Requests", headers, "busy")).await;
        let call = api.call().await;
        is_hosted(&call);
        streams(call, &mut first, true).await;
        told(&gateway, "api", 2).await;
        let mut second = gateway.send(&plain()).await;
        streams(api.call().await, &mut second, true).await;
        own.assert_not_asked();
        let line = gateway.all_access(2).await.remove(1);
        assert_eq!((&line["cluster"], &line["attempts"]), (&"api".into(), &1.into()), "{headers:?}: {line}");
        gateway.wait_log("cluster own: every backend rests").await;
    }
}

/// A cluster that is being drained is passed over.
#[tokio::test]
async fn a_drained_cluster_is_passed_over() {
    let (gateway, mut own, mut api) =
        two_kinds(|settings| settings.set("clusters.own.backends.0.drain", true)).await;
    let mut client = gateway.send(&plain()).await;
    let call = api.call().await;
    is_hosted(&call);
    streams(call, &mut client, true).await;
    told(&gateway, "api", 1).await;
    own.assert_not_asked();
    gateway.wait_log("cluster own: every backend is being drained").await;
}

/// When all rest, the first cluster's engine is asked, and its answer passes.
#[tokio::test]
async fn when_all_clusters_rest_the_first_is_asked() {
    let (gateway, mut own, mut api) = two_kinds(support::as_is).await;
    let busy = answer("503 Service Unavailable", &["Retry-After: 60"], "busy");
    let mut first = gateway.send(&plain()).await;
    own.call().await.answer(&busy).await;
    api.call().await.answer(&busy).await;
    assert_eq!(first.answer().await.status(), 503);
    gateway.all_access(1).await;
    let mut second = gateway.send(&plain()).await;
    let call = own.call().await;
    is_own(&call);
    call.answer(&busy).await;
    let told = second.answer().await;
    assert_eq!((told.status(), told.text()), (503, "busy".to_owned()));
    api.assert_not_asked();
}

/// When every cluster is full, the client is told of the queue.
#[tokio::test]
async fn when_all_clusters_are_full_the_client_is_told_so() {
    let tight = |settings: Settings| {
        settings.set("clusters.api.backends.0.max_inflight", 1).set("clusters.api.queue", json!({ "max": 0 }))
    };
    let (gateway, mut own, mut api) = two_kinds(tight).await;
    let _first = gateway.send(&plain()).await;
    let _busy = own.call().await;
    let _second = gateway.send(&plain()).await;
    let _busy = api.call().await;
    let answer = gateway.ask(&plain()).await;
    checks::rejected(&answer, 503, "overloaded");
    assert_eq!(answer.head.get("retry-after"), Some("1"));
    let line = gateway.only_access().await;
    assert_eq!((&line["cluster"], &line["attempts"]), (&"own".into(), &0.into()), "{line}");
}

/// Each cluster of a route has its own time budgets.
#[tokio::test]
async fn each_cluster_has_its_own_budgets() {
    let own_budgets = |settings: Settings| {
        settings
            .set("timeouts.first_event", "25s")
            .set("clusters.api.timeouts", json!({ "first_event": "300ms" }))
    };
    let (gateway, mut own, mut api) = two_kinds(own_budgets).await;
    let _first = gateway.send(&plain()).await;
    let _busy = own.call().await;
    let mut second = gateway.send(&plain()).await;
    let _silent = api.call().await;
    checks::rejected(&second.answer().await, 504, "first_event_timeout");
    gateway.wait_log("timeouts.first_event is 300ms").await;
}

/// Without a difference between its clusters, a route needs no second copy of a body; a large one moves as well.
#[tokio::test]
async fn a_large_body_moves_between_clusters() {
    for profile in ["vllm", "deepseek"] {
        let refusing = Refusing::start();
        let mut api = Upstream::start().await;
        let settings = hybrid(&[refusing.addr()], &[api.addr]).set("clusters.api.profile", profile);
        let gateway = start(settings).await;
        let filling = "x".repeat(1_000_000);
        let body = PLAIN.replace("[]", &format!("[\"{filling}\"]"));
        let mut client = gateway.send(&Request::post(CHAT_PATH, body)).await;
        let call = api.call().await;
        let want = if profile == "vllm" { ASKED } else { UNASKED };
        checks::has_body(&call.request, want.replace("[]", &format!("[\"{filling}\"]")));
        streams(call, &mut client, profile == "deepseek").await;
        checks::at_rest(&gateway).await;
    }
}

/// The example that comes with the gateway, with engines of both kinds behind it.
#[tokio::test]
async fn the_hybrid_example_works() {
    let (mut one, mut two) = (Upstream::start().await, Upstream::start().await);
    let mut api = Upstream::start().await;
    let settings = Settings::example("hybrid")
        .set("clusters.own.backends.0.url", format!("http://{}", one.addr))
        .set("clusters.own.backends.1.url", format!("http://{}", two.addr))
        .set("clusters.own.backends.0.max_inflight", 1)
        .set("clusters.own.backends.1.max_inflight", 1)
        .set("clusters.deepseek.backends.0.url", format!("http://{}", api.addr));
    let gateway = Gateway::start_in(settings, &[("DEEPSEEK_API_KEY", "sk-hosted")]).await;
    let request = Request::post(CHAT_PATH, r#"{"model":"deepseek-chat","stream":true,"messages":[]}"#);
    let (mut first, mut second) = (gateway.send(&request).await, gateway.send(&request).await);
    let (call_one, _) = either(&mut one, &mut two).await;
    let (call_two, _) = either(&mut one, &mut two).await;
    let mut third = gateway.send(&request).await;
    let call = api.call().await;
    assert_eq!(call.request.head.get("authorization"), Some("Bearer sk-hosted"));
    streams(call, &mut third, true).await;
    assert_eq!(call_one.request.head.get("authorization"), None);
    let answers = [event("a").as_str(), FINISH, USAGE, DONE].concat();
    for mut call in [call_one, call_two] {
        call.open().await;
        call.chunk(&answers).await;
        call.finish().await;
    }
    for client in [&mut first, &mut second] {
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), [&event("a"), FINISH, DONE].concat().as_bytes());
    }
    checks::at_rest(&gateway).await;
}

crate::over_h2! {
    what_own_engines_cannot_take_overflows,
    a_wait_that_is_over_overflows,
    a_failed_attempt_moves_to_the_next_cluster_where_its_own_has_none_left,
    while_own_engines_rest_the_next_cluster_is_asked,
    when_all_clusters_are_full_the_client_is_told_so,
}
