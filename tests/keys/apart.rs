//! What one key may have, and that others do not feel it: models, wrong keys, the queue, homes of sessions.

use crate::support::keys::key;
use crate::support::upstream::either;
use crate::support::wire::{ANSWER, CHAT_PATH, Request, json_answer};
use crate::support::{Call, Client, Gateway, Settings, checks, one_engine, relayed, two_engines};
use serde_json::{Value, json};

/// Wrong keys that an address may send before it is told to leave off.
const BURST: usize = 20;

fn unary(model: &str) -> Request {
    Request::post(CHAT_PATH, json!({ "model": model, "messages": [] }).to_string())
}

/// A key for some models, and one for all.
fn bound(settings: Settings) -> Settings {
    let mut some = key("some", "k-some");
    some["models"] = json!(["qwen*", "deepseek-chat"]);
    let models = json!({ "name": "listed", "match": { "path": "/v1/listed" }, "cluster": "c",
                         "models": ["qwen3-32b", "deepseek-chat", "gpt-4o"] });
    let mut alias =
        json!({ "name": "chat-gpt", "match": { "path": CHAT_PATH, "model": "gpt*" }, "cluster": "c" });
    alias["aliases"] = json!({ "gpt-4o": "qwen3-32b" });
    settings.set("keys", json!([some, key("all", "k-all")])).route(models).route(alias)
}

#[tokio::test]
async fn a_key_may_use_its_models_by_the_clients_name() {
    let (gateway, mut upstream) = one_engine(bound).await;
    for (key, model) in
        [("k-some", "qwen3-32b"), ("k-some", "deepseek-chat"), ("k-all", "gpt-4o"), ("k-all", "any")]
    {
        relayed(&gateway, &mut upstream, &unary(model).with_key(key)).await;
    }
    // gpt-4o is another name for a model that it may use, and still not its own; what is not served is told the same.
    for model in ["gpt-4o", "deepseek", "QWEN3", "gpt-nowhere"] {
        let answer = gateway.ask(&unary(model).with_key("k-some")).await;
        checks::rejected(&answer, 403, "model_not_allowed");
        assert_eq!(answer.json()["error"]["param"], "model", "{model}");
    }
    upstream.assert_not_asked();
    gateway.wait_metric("keys_denied_total", &[("reason", "model")], 4.0).await;
    let line = gateway.wait_access("refused", |line| line["status"] == 403).await;
    assert_eq!(
        (&line["key"], &line["error"], &line["outcome"]),
        (&"some".into(), &"model_not_allowed".into(), &"rejected".into())
    );
}

/// What names no model gets whichever its engine has: that is for a key that may use all of them.
#[tokio::test]
async fn without_a_model_a_bound_key_is_not_let_in() {
    let (gateway, mut upstream) = one_engine(bound).await;
    let nameless = [
        Request::post(CHAT_PATH, json!({ "messages": [] }).to_string()),
        Request::post(CHAT_PATH, json!({ "model": null, "messages": [] }).to_string()),
        Request::post(CHAT_PATH, "no JSON")
            .without("content-type")
            .header("Content-Type: application/octet-stream"),
        Request::bare("GET", CHAT_PATH),
    ];
    for request in nameless {
        checks::rejected(&gateway.ask(&request.clone().with_key("k-some")).await, 403, "model_not_allowed");
        upstream.assert_not_asked();
        relayed(&gateway, &mut upstream, &request.with_key("k-all")).await;
    }
}

#[tokio::test]
async fn a_key_sees_the_models_that_it_may_use() {
    let (gateway, _upstream) = one_engine(bound).await;
    let listed = async |key: &str| {
        let answer = gateway.ask(&Request::bare("GET", "/v1/models").with_key(key)).await.json();
        let models = answer["data"].as_array().expect("a list").clone();
        models.iter().map(|model| model["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("k-all").await, ["deepseek-chat", "gpt-4o", "qwen3-32b"]);
    assert_eq!(listed("k-some").await, ["deepseek-chat", "qwen3-32b"]);
    let one = async |model: &str| {
        gateway.ask(&Request::bare("GET", &format!("/v1/models/{model}")).with_key("k-some")).await
    };
    assert_eq!(one("qwen3-32b").await.status(), 200);
    let (hidden, missing) = (one("gpt-4o").await, one("gpt-5o").await);
    assert_eq!((hidden.status(), missing.status()), (404, 404));
    assert_eq!(hidden.text().replace("gpt-4o", ""), missing.text().replace("gpt-5o", ""));
}

/// Wrong keys by the thousand from one address: no engine hears of them, and a good key from there is served.
#[tokio::test]
async fn who_tries_keys_is_told_to_leave_off_and_nobody_else_is() {
    let (gateway, mut upstream) = one_engine(|settings| settings.keys(&[("team-a", "k1")])).await;
    let mut statuses = Vec::new();
    let mut client = gateway.client().await;
    for n in 0..1000 {
        let guess = Request::bare("GET", "/v1/models").with_key(&format!("sg-guess-{n}"));
        client.send(guess.bytes()).await;
        let answer = client.answer().await;
        if answer.status() == 429 {
            checks::rejected(&answer, 429, "rate_limited");
            let wait: u64 =
                answer.head.get("retry-after").expect("when to come back").parse().expect("seconds");
            assert!((1..=3).contains(&wait), "{wait}");
        }
        statuses.push(answer.status());
        if n == 500 {
            relayed(&gateway, &mut upstream, &Request::unary().with_key("k1")).await;
        }
    }
    assert_eq!(statuses[..BURST], [401; BURST]);
    // One is forgiven every three seconds, and the machine may be slow.
    let limited = statuses.iter().filter(|status| **status == 429).count();
    assert!(limited >= 900, "{limited} of 1000");
    let missing = gateway.ask(&Request::unary().without_key()).await;
    checks::rejected(&missing, 401, "unauthorized");
    relayed(&gateway, &mut upstream, &Request::unary().with_key("k1")).await;
    upstream.assert_not_asked();
    gateway.wait_metric("keys_denied_total", &[("reason", "repeated")], limited as f64).await;
    gateway.wait_metric("requests_total", &[("outcome", "limited")], limited as f64).await;
    gateway.wait_log("too many wrong API keys from 127.0.0.1").await;
    assert!(gateway.log().matches("too many wrong API keys").count() < 100, "the flood is not in the log");
}

/// One slot at the engine, a short queue, and no timer that could end a wait.
fn one_slot(settings: Settings) -> Settings {
    ["first_event", "unary", "idle", "queue"]
        .into_iter()
        .fold(settings, |settings, timeout| settings.set(&format!("timeouts.{timeout}"), "25s"))
        .set("clusters.c.backends.0.max_inflight", 1)
        .set("clusters.c.queue", json!({ "max": 8 }))
        .keys(&[("loud", "k-loud"), ("quiet", "k-quiet")])
}

async fn joins(gateway: &Gateway, key: &str, depth: usize) -> Client {
    let client = gateway.send(&unary(key).with_key(key)).await;
    gateway.wait_metric("queue_depth", &[("cluster", "c")], depth as f64).await;
    client
}

fn whose(call: &Call) -> String {
    let body: Value = serde_json::from_slice(&call.request.body).expect("JSON");
    body["model"].as_str().expect("the model is the key's").to_owned()
}

/// G16: a key that floods the queue fills half of it, and turns go round: another key waits for one slot at most.
#[tokio::test]
async fn g16_a_key_that_floods_the_queue_does_not_starve_another() {
    let (gateway, mut upstream) = one_engine(one_slot).await;
    let mut clients = vec![gateway.send(&unary("k-loud").with_key("k-loud")).await];
    let mut call = upstream.call().await;
    for depth in 1..=4 {
        clients.push(joins(&gateway, "k-loud", depth).await);
    }
    for _ in 0..3 {
        let refused = gateway.ask(&unary("k-loud").with_key("k-loud")).await;
        checks::rejected(&refused, 503, "overloaded");
    }
    for depth in 5..=6 {
        clients.push(joins(&gateway, "k-quiet", depth).await);
    }
    let mut served = Vec::new();
    for left in (0..=6).rev() {
        call.answer(json_answer(ANSWER)).await;
        if left == 0 {
            break;
        }
        call = upstream.call().await;
        served.push(whose(&call));
    }
    assert_eq!(served, ["k-loud", "k-quiet", "k-loud", "k-quiet", "k-loud", "k-loud"]);
    for client in &mut clients {
        assert_eq!(client.answer().await.status(), 200);
    }
    let lines = gateway.all_access(10).await;
    let refused = |key: &str| lines.iter().filter(|line| line["key"] == key && line["status"] == 503).count();
    assert_eq!((refused("loud"), refused("quiet")), (3, 0));
    checks::at_rest(&gateway).await;
}

/// A session is at home for its key alone: another key that names it neither finds its home nor moves it.
#[tokio::test]
async fn a_session_of_one_key_means_nothing_for_another() {
    let adjust = |settings: Settings| {
        let settings = settings.set("clusters.c.affinity", json!({ "by": ["session"] }));
        settings.keys(&[("a", "k-a"), ("b", "k-b")])
    };
    let (gateway, mut one, mut two) = two_engines(adjust).await;
    let in_session = |key: &str| unary("m").with_key(key).header("X-Session-Id: s-1");
    for (key, results) in [("k-a", [1.0, 0.0]), ("k-b", [2.0, 0.0]), ("k-a", [2.0, 1.0]), ("k-b", [2.0, 2.0])]
    {
        let mut client = gateway.send(&in_session(key)).await;
        either(&mut one, &mut two).await.0.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
        for (result, count) in ["new", "hit"].into_iter().zip(results) {
            gateway.wait_metric("affinity_total", &[("result", result)], count).await;
        }
    }
}

crate::over_h2!(
    a_key_may_use_its_models_by_the_clients_name,
    g16_a_key_that_floods_the_queue_does_not_starve_another
);
