//! API keys: who is let in, what others are told, and what comes of it when the file changes.

use crate::support;
use crate::support::keys::key;
use crate::support::wire::{ANSWER, CHAT, CHAT_PATH, MIB, Request, event, json_answer};
use crate::support::{
    Answer, Gateway, Settings, Upstream, checks, h2_engine, one_engine, relayed, sibling, streaming,
};
use serde_json::{Value, json};

const KEY: &str = "sg-of-team-a";

fn team_a(settings: Settings) -> Settings {
    settings.keys(&[("team-a", KEY)])
}

/// What the client is told of its request alone.
fn told(answer: &Answer) -> (u16, Option<String>, Option<String>, String) {
    let header = |name: &str| answer.head.get(name).map(str::to_owned);
    (answer.status(), header("www-authenticate"), header("content-type"), answer.text())
}

#[tokio::test]
async fn only_who_has_a_key_reaches_the_engine() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.keys(&[("team-a", KEY), ("team-b", "sg-b")])).await;
    let recorded = relayed(&gateway, &mut upstream, &Request::unary().with_key(KEY)).await;
    assert_eq!(recorded.head.get("authorization"), None, "the key stays here");
    let line = gateway.only_access().await;
    assert_eq!((&line["key"], &line["outcome"]), (&"team-a".into(), &"completed".into()), "{line}");

    let missing = gateway.ask(&Request::unary().without_key()).await;
    checks::rejected(&missing, 401, "unauthorized");
    assert_eq!(missing.head.get("www-authenticate"), Some("Bearer"));
    assert_eq!(missing.json()["error"]["type"], "invalid_request_error");
    for wrong in ["sg-of-team-", "sg-of-team-a1", "SG-OF-TEAM-A", &support::keys::digest(KEY)] {
        let answer = gateway.ask(&Request::unary().with_key(wrong)).await;
        assert_eq!(told(&answer), told(&missing), "{wrong}");
    }
    upstream.assert_not_asked();
    let lines = gateway.all_access(6).await;
    for line in &lines[1..] {
        assert_eq!((&line["status"], &line["outcome"]), (&401.into(), &"rejected".into()), "{line}");
        assert_eq!((&line["key"], &line["error"]), (&json!(null), &"unauthorized".into()), "{line}");
    }
    gateway.wait_metric("keys_denied_total", &[("reason", "missing")], 1.0).await;
    gateway.wait_metric("keys_denied_total", &[("reason", "unknown")], 4.0).await;
    checks::at_rest(&gateway).await;
}

#[tokio::test]
async fn a_key_is_taken_from_either_header_and_goes_no_further() {
    let (gateway, mut upstream) = one_engine(team_a).await;
    let bearer = format!("Authorization: Bearer {KEY}");
    let api_key = format!("X-Api-Key: {KEY}");
    let bare = || Request::unary().without_key();
    for lines in [
        vec![&*bearer],
        vec!["Authorization: bEARER   sg-of-team-a"],
        vec![&*api_key],
        vec![&*bearer, &*api_key],
        vec!["Authorization: Basic dTpw", &*api_key, "X_Api_Key: mine"],
    ] {
        let recorded = relayed(&gateway, &mut upstream, &bare().lines(&lines)).await;
        for name in ["authorization", "x-api-key", "x_api_key"] {
            assert_eq!(recorded.head.get(name), None, "{lines:?}");
        }
    }
    for lines in [
        vec![&*bearer, "X-Api-Key: another"],
        vec!["X-Api-Key: another", &*bearer],
        vec![&*bearer, "Authorization: Bearer another"],
        vec![&*bearer, "X-Api-Key:"],
        vec!["Authorization: Bearer"],
        vec!["Authorization: sg-of-team-a"],
        vec!["Cookie: authorization=sg-of-team-a", "Proxy-Authorization: Bearer sg-of-team-a"],
    ] {
        checks::rejected(&gateway.ask(&bare().lines(&lines)).await, 401, "unauthorized");
    }
    upstream.assert_not_asked();
}

#[tokio::test]
async fn the_cluster_sends_its_own_credential_in_place_of_the_key() {
    let upstream = Upstream::start().await;
    let auth = json!({ "header": "x-api-key", "env": "ENGINE_KEY" });
    let settings = team_a(Settings::new(&[upstream.addr])).set("clusters.c.auth", auth);
    let gateway = Gateway::start_in(settings, &[("ENGINE_KEY", "of-the-engine")]).await;
    let mut upstream = upstream;
    let recorded = relayed(&gateway, &mut upstream, &Request::unary().with_key(KEY)).await;
    assert_eq!(recorded.head.get("x-api-key"), Some("of-the-engine"));
    assert_eq!(recorded.head.get("authorization"), None);
}

/// A path that is not there is told first, what may be done is everybody's to ask, and all else is for who has a key.
#[tokio::test]
async fn every_path_needs_a_key_before_it_says_anything() {
    let fixed = json!({ "name": "fixed", "match": { "path": "/robots.txt" },
                        "respond": { "status": 200, "body": "x", "needs_key": true } });
    let by_header = json!({ "name": "vip", "match": { "path": "/v1/vip", "headers": { "x-team": "a" } }, "cluster": "c" });
    let (gateway, mut upstream) =
        one_engine(|settings| team_a(settings).route(fixed.clone()).route(by_header.clone())).await;
    let ask = async |method: &str, path: &str, key: &str| {
        gateway.ask(&Request::bare(method, path).with_key(key)).await
    };
    assert_eq!(ask("POST", CHAT_PATH, "wrong").await.status(), 401);
    for (method, path, with_key) in [
        ("DELETE", CHAT_PATH, 405),
        ("GET", "/v1/vip", 404),
        ("GET", "/robots.txt", 200),
        ("GET", "/v1/models", 200),
        ("GET", "/v1/models/none", 404),
        ("POST", "/v1/models", 405),
    ] {
        assert_eq!(ask(method, path, "wrong").await.status(), 401, "{method} {path}");
        assert_eq!(ask(method, path, KEY).await.status(), with_key, "{method} {path}");
    }
    for path in ["/", "/v1/modelsx", "/v1/chat/completions/", "/health", "/metrics"] {
        assert_eq!(ask("GET", path, "wrong").await.status(), 404, "{path}");
    }
    for path in [CHAT_PATH, "/v1/models", "/robots.txt"] {
        let answer = gateway.ask(&Request::bare("OPTIONS", path)).await;
        assert_eq!((answer.status(), answer.head.get("allow").is_some()), (204, true), "{path}");
    }
    let mut head = gateway.send(&Request::bare("HEAD", "/v1/models")).await;
    head.expect_no_body();
    assert_eq!(head.head().await.status(), 401);
    upstream.assert_not_asked();
}

/// A fixed answer is everybody's, as it is elsewhere: no key, no limit of the address, no body is asked for it.
#[tokio::test]
async fn a_fixed_answer_is_open_unless_it_says_otherwise() {
    let fixed = |path: &str, respond: Value| json!({ "match": { "path": path }, "respond": respond });
    let of_model = json!({ "name": "none", "match": { "path": "/v1/none", "model": "m" }, "respond": {} });
    let (gateway, mut upstream) = one_engine(|settings| {
        team_a(settings)
            .route(fixed("/healthz", json!({ "body": "ok" })))
            .route(fixed("/private", json!({ "body": "ok", "needs_key": true })))
            .route(of_model)
            .set("limits", json!({ "per_ip": { "requests": "2/h" } }))
    })
    .await;
    let ask = async |request: Request| gateway.ask(&request).await.status();
    for _ in 0..3 {
        assert_eq!(ask(Request::bare("GET", "/healthz").without_key()).await, 200);
        assert_eq!(ask(Request::bare("GET", "/healthz").with_key("wrong")).await, 200);
    }
    let mut client = gateway.client().await;
    client.send(Request::post("/healthz", vec![b'x'; 20 * MIB]).without_key().head()).await;
    assert_eq!(client.answer().await.status(), 200, "its body is not waited for");
    assert_eq!(ask(Request::bare("GET", "/private").without_key()).await, 401);
    assert_eq!(ask(Request::post("/v1/none", CHAT).without_key()).await, 401, "its body has to be read");
    assert_eq!(ask(Request::bare("GET", "/private").with_key(KEY)).await, 429, "those two counted");
    assert_eq!(ask(Request::bare("GET", "/healthz").without_key()).await, 200);
    upstream.assert_not_asked();
    let open = gateway.wait_access("open", |line| line["path"] == "/healthz").await;
    assert_eq!((&open["route"], &open["key"]), (&json!("/healthz"), &Value::Null), "{open}");
}

/// The answer is there before a byte of the body has been sent, however long it would be.
#[tokio::test]
async fn a_body_is_not_waited_for_where_there_is_no_key() {
    let (gateway, mut upstream) = one_engine(team_a).await;
    for request in [
        Request::post(CHAT_PATH, vec![b'x'; 20 * MIB]),
        Request::post(CHAT_PATH, vec![b'x'; 20 * MIB]).header("Expect: 100-continue"),
        Request::post(CHAT_PATH, CHAT).chunked(10),
    ] {
        let mut client = gateway.client().await;
        client.send(request.with_key("wrong").head()).await;
        let answer = client.answer().await;
        checks::rejected(&answer, 401, "unauthorized");
    }
    assert_eq!(gateway.metric("held_bytes", &[("kind", "body")]).await, 0.0);
    upstream.assert_not_asked();
}

/// Taken out of the file, a key is refused at once, also on a connection that it has opened; what runs goes on.
#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_its_stream_goes_on() {
    let both = |settings: Settings| settings.keys(&[("team-a", "k1"), ("team-b", "k2")]);
    let (gateway, mut upstream) = one_engine(both).await;
    let (mut running, mut call) = streaming(&gateway, &mut upstream, &["before"]).await;
    let mut kept = gateway.client().await;
    kept.send(Request::unary().with_key("k1").bytes()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(kept.answer().await.status(), 200);

    gateway.reload(Settings::new(&[upstream.addr]).keys(&[("team-b", "k2")])).await;
    kept.send(Request::unary().with_key("k1").bytes()).await;
    let revoked = kept.answer().await;
    let unknown = gateway.ask(&Request::unary().with_key("never-was")).await;
    assert_eq!(told(&revoked), told(&unknown));
    assert_eq!(revoked.status(), 401);
    upstream.assert_not_asked();
    relayed(&gateway, &mut upstream, &Request::unary().with_key("k2")).await;

    call.chunk(event("after")).await;
    running.until_body(format!("{}{}", event("before"), event("after")).as_bytes()).await;
    checks::ends_same(running, call, format!("{}{}", event("before"), event("after")).as_bytes()).await;
    let line = gateway.wait_access("the stream", |line| line["streaming"] == true).await;
    assert_eq!((&line["key"], &line["outcome"]), (&"team-a".into(), &"completed".into()), "{line}");
}

/// The same for the streams of one connection of HTTP/2.
#[tokio::test]
async fn a_revoked_key_is_refused_on_its_http2_connection() {
    let (gateway, mut upstream) = h2_engine(|settings| settings.keys(&[("team-a", "k1")])).await;
    let (mut running, call) = streaming(&gateway, &mut upstream, &["before"]).await;
    let (other, mut other_call) = sibling(&mut running, &mut upstream).await;
    other_call.chunk(event("other")).await;
    checks::ends_same(other, other_call, event("other").as_bytes()).await;
    gateway.reload(Settings::new(&[upstream.addr]).keys(&[("team-b", "k2")])).await;
    let mut late = running.sibling();
    late.send(Request::chat().bytes()).await;
    checks::rejected(&late.answer().await, 401, "unauthorized");
    checks::ends_same(running, call, event("before").as_bytes()).await;
}

/// Without keys nobody needs one: what a client sends as one is its engine's business, as ever.
#[tokio::test]
async fn without_keys_everybody_is_let_in() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("keys", json!([]))).await;
    let recorded = relayed(&gateway, &mut upstream, &Request::unary().with_key("any")).await;
    assert_eq!(recorded.head.get("authorization"), Some("Bearer any"));
    assert_eq!(gateway.only_access().await["key"], json!(null));
    let closed = Settings::new(&[upstream.addr]).set("keys", json!([key("team-a", KEY)]));
    gateway.reload(closed).await;
    checks::rejected(&gateway.ask(&Request::unary().with_key("any")).await, 401, "unauthorized");
    assert_eq!(
        relayed(&gateway, &mut upstream, &Request::unary().with_key(KEY)).await.head.get("authorization"),
        None
    );
}

crate::over_h2!(
    only_who_has_a_key_reaches_the_engine,
    a_key_is_taken_from_either_header_and_goes_no_further,
    every_path_needs_a_key_before_it_says_anything,
);
