//! The events of the live page: what they tell, and how often.

use crate::support;
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{ANSWER, CHAT_PATH, DONE, FINISH, Request, event, json_answer};
use crate::support::{
    Client, Engine, Gateway, Settings, Upstream, as_is, checks, one_engine, open_stream, sse,
};
use serde_json::{Value, json};

const EVENTS: &str = "/live/events";

/// One who watches the events of an admin listener.
struct Watcher(Client);

impl Watcher {
    async fn of(gateway: &Gateway) -> Self {
        let mut client = Client::connect(gateway.admin).await;
        let request = Request::bare("GET", EVENTS).without("host").header("Host: localhost");
        client.send(request.bytes()).await;
        let head = client.head().await;
        assert_eq!((head.status(), head.get("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.get("cache-control"), Some("no-store"));
        Self(client)
    }

    /// The next view that comes.
    async fn next(&mut self) -> Value {
        self.0.take_body();
        while sse::data(self.0.body()).is_empty() {
            assert!(within("a view", SOON, self.0.read_body()).await, "the events have ended");
        }
        let data = sse::data(self.0.body());
        serde_json::from_str(data.last().expect("a view")).expect("a view is JSON")
    }

    /// The first view for which something holds.
    async fn until(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = async {
            loop {
                last = self.next().await;
                if holds(&last) {
                    return;
                }
            }
        };
        let is_found = tokio::time::timeout(2 * SOON, found).await.is_ok();
        assert!(is_found, "no view in which {what}: {last:#}");
        last
    }
}

fn route<'a>(view: &'a Value, name: &str) -> &'a Value {
    let routes = view["routes"].as_array().expect("routes");
    routes.iter().find(|route| route["name"] == name).expect("the route")
}

/// Streams, tokens, first token and gaps are there while they flow, not only at their end.
#[tokio::test]
async fn what_flows_is_seen_while_it_flows() {
    let (gateway, mut engine) = one_engine(as_is).await;
    let mut watcher = Watcher::of(&gateway).await;
    assert_eq!(watcher.next().await["totals"]["streams"], 0);
    let (mut client, mut call) = open_stream(&gateway, &mut engine).await;
    let mut sent = String::new();
    for content in ["one", "two", "three"] {
        call.chunk(event(content)).await;
        sent += &event(content);
        client.until_body(sent.as_bytes()).await;
        // Tokens are added to what is seen twice a second, when one comes.
        silence(ms(600)).await;
    }
    let view = watcher.until("tokens flow", |view| view["clusters"][0]["gap"]["p50"].is_number()).await;
    assert_eq!((&view["totals"]["streams"], &route(&view, "chat")["streams"]), (&json!(1), &json!(1)));
    assert_eq!(route(&view, "other")["streams"], 0);
    let backend = &view["clusters"][0]["backends"][0];
    assert_eq!(
        (&backend["name"], &backend["in_flight"], &backend["state"]),
        (&json!("u1"), &json!(1), &json!("serving"))
    );
    for times in
        [&backend["first_token"], &route(&view, "chat")["first_token"], &view["totals"]["first_token"]]
    {
        assert!(times["p50"].is_number(), "{view:#}");
    }
    // The gaps were 600 ms and a little: in the bucket from 0.5 to 1 s.
    let gap = backend["gap"]["p50"].as_f64().expect("a gap");
    assert!((0.5..=1.0).contains(&gap), "{gap}");
    assert_eq!(gateway.metric("time_to_first_token_seconds_count", &[("route", "chat")]).await, 1.0);
    call.chunk(format!("{FINISH}{DONE}")).await;
    call.finish().await;
    client.end().await;
    gateway.wait_metric("backend_tokens_total", &[("cluster", "c"), ("backend", "u1")], 3.0).await;
    gateway.wait_metric("inter_token_seconds_count", &[("route", "chat")], 2.0).await;
    watcher.until("the stream is over", |view| view["totals"]["streams"] == 0).await;
}

/// What an answer that is no stream has generated counts as well, once it is there.
#[tokio::test]
async fn tokens_of_whole_answers_count() {
    let (gateway, mut engine) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    engine.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    let told = gateway.only_access().await["usage"]["completion"].as_f64().expect("usage");
    gateway.wait_metric("backend_tokens_total", &[("backend", "u1")], told).await;
}

/// A client that leaves early saves what its answer would still have had: as much as those before it.
#[tokio::test]
async fn tokens_that_are_saved_by_leaving_are_estimated() {
    let (gateway, mut engine) = one_engine(as_is).await;
    let mut watcher = Watcher::of(&gateway).await;
    let (mut client, mut call) = open_stream(&gateway, &mut engine).await;
    let whole: String = ["1", "2", "3", "4", "5"].map(event).concat();
    call.chunk(format!("{whole}{FINISH}{DONE}")).await;
    call.finish().await;
    client.end().await;
    // An exchange is settled behind its last byte, and teaches only then how long an answer is.
    gateway.all_access(1).await;
    let (mut client, mut call) = open_stream(&gateway, &mut engine).await;
    let part = ["1", "2"].map(event).concat();
    call.chunk(&part).await;
    client.until_body(part.as_bytes()).await;
    client.close();
    call.gone().await;
    gateway.wait_metric("tokens_saved_total", &[("route", "chat")], 3.0).await;
    let view = watcher.until("a client has left", |view| view["totals"]["cancels"] == 1).await;
    assert_eq!(view["totals"]["tokens_saved"], 3);
    assert_eq!(view["cancels"], json!([{ "phase": "stream", "count": 1 }]));
}

/// A failure is there with its cause, those alike as one; what clients did wrong is told apart.
#[tokio::test]
async fn failures_are_told_with_their_cause() {
    let (gateway, mut engine) = one_engine(as_is).await;
    let mut watcher = Watcher::of(&gateway).await;
    for count in 1..=2 {
        let (mut client, call) = open_stream(&gateway, &mut engine).await;
        call.reset();
        client.end().await;
        // An exchange is settled behind its last byte.
        gateway.all_access(count).await;
    }
    checks::rejected(&gateway.ask(&Request::post(CHAT_PATH, "{")).await, 400, "invalid_request");
    gateway.all_access(3).await;
    let view = watcher.until("all have failed", |view| view["failures"][1]["times"] == 2).await;
    let (bad, cut) = (&view["failures"][0], &view["failures"][1]);
    assert_eq!((&bad["side"], &bad["status"]), (&json!("client"), &json!(400)));
    assert_eq!(
        (&cut["side"], &cut["cluster"], &cut["backend"]),
        (&json!("backend"), &json!("c"), &json!("u1"))
    );
    assert_eq!(cut["code"], "upstream_disconnected");
    let why = cut["why"].as_str().expect("a cause");
    assert!(why.starts_with("the backend closed the connection before"), "{why}");
    let ids: Vec<Value> = gateway.access_lines().into_iter().map(|line| line["request_id"].clone()).collect();
    assert_eq!(cut["request_id"], ids[1], "the newest of both");
    assert_eq!((&view["totals"]["failed"], &view["totals"]["refused"]), (&json!(2), &json!(1)));
    assert_eq!(route(&view, "chat")["failed"], 2);
}

/// A backend that is out, and one that is drained, are among the problems, each in words.
#[tokio::test]
async fn what_is_wrong_comes_in_words() {
    let (one, two) = (Engine::start().await, Engine::start().await);
    let checked = json!({ "active": { "every": "100ms", "timeout": "1s", "fall": 1 } });
    let settings = Settings::new(&[one.addr, two.addr]).set("clusters.c.health", checked);
    let gateway = Gateway::start(settings).await;
    let mut watcher = Watcher::of(&gateway).await;
    watcher.until("all is well", |view| view["problems"] == json!([])).await;
    gateway.admin_post("/drain/c/u2").await;
    one.kill();
    let view = watcher.until("nobody is left", |view| view["problems"][0]["level"] == "critical").await;
    let problems: Vec<_> =
        view["problems"].as_array().expect("problems").iter().map(|one| &one["what"]).collect();
    assert_eq!(problems, ["c", "c/u1", "c/u2"], "{view:#}");
    assert_eq!(view["problems"][1]["why"], "down: its checks fail");
    assert_eq!(view["problems"][2]["why"], "drained by an operator");
    assert_eq!((&view["clusters"][0]["up"], &view["clusters"][0]["of"]), (&json!(0), &json!(2)));
}

/// However many watch, the view is made once a second; and who has left is not counted for ever.
#[tokio::test]
async fn all_who_watch_see_the_same_view_and_give_their_place_back() {
    let (gateway, _engine) = one_engine(as_is).await;
    let mut watchers = vec![Watcher::of(&gateway).await];
    let first = watchers[0].next().await;
    for _ in 1..32 {
        watchers.push(Watcher::of(&gateway).await);
    }
    let times: Vec<u64> = {
        let mut times = Vec::new();
        for watcher in &mut watchers {
            times.push(watcher.next().await["gateway"]["unix_ms"].as_u64().expect("a time"));
        }
        times
    };
    let began = first["gateway"]["unix_ms"].as_u64().expect("a time");
    let mut distinct = times.clone();
    distinct.push(began);
    distinct.sort_unstable();
    distinct.dedup();
    assert!(
        distinct.windows(2).all(|pair| pair[1] - pair[0] >= 990),
        "views in less than a second: {distinct:?}"
    );
    let one_more = gateway.admin_get(EVENTS).await;
    assert_eq!((one_more.status(), one_more.text().as_str()), (503, "as many watch as may\n"));
    watchers.pop().expect("one").0.close();
    support::wait::wait_until_async("a place is free", SOON, || async {
        let mut client = Client::connect(gateway.admin).await;
        let request = Request::bare("GET", EVENTS).without("host").header("Host: localhost");
        client.send(request.bytes()).await;
        client.head().await.status() == 200
    })
    .await;
}

/// What is read is made of the configuration in force: a reload that is refused is a problem with its line.
#[tokio::test]
async fn a_refused_file_is_a_problem() {
    let engine = Upstream::start().await;
    let settings = Settings::new(&[engine.addr]);
    let gateway = Gateway::start(settings.clone()).await;
    let mut watcher = Watcher::of(&gateway).await;
    gateway.rewrite(settings.set("timeouts.idle", "soon"));
    assert_eq!(gateway.admin_post("/reload").await.status(), 422);
    let view = watcher.until("it is told", |view| view["problems"][0]["what"] == "configuration").await;
    let why = view["problems"][0]["why"].as_str().expect("why");
    assert!(why.contains("generation 1 stays in force") && why.contains("timeouts.idle"), "{why}");
}
