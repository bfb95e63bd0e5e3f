//! What the access line says of requests that are refused: by which limit, for what key, and on which route.

use crate::support;
use crate::support::wire::{CHAT_PATH, Request};
use crate::support::{Client, Gateway, Settings, checks, one_engine};
use serde_json::{Value, json};

const KEY: &str = "sg-of-team-a";

/// The line of the request with this id.
async fn line_of(gateway: &Gateway, id: &str) -> Value {
    gateway.wait_access(id, |line| line["request_id"] == id).await
}

/// The key of the cases has these limits.
fn limited(limits: Value) -> impl FnOnce(Settings) -> Settings {
    move |settings| settings.keys(&[("team-a", KEY)]).set("keys.0.limits", limits)
}

fn named(request: Request, id: &str) -> Request {
    request.header(&format!("x-request-id: {id}"))
}

/// The reason of a 401 is for the operator; the client is told the same words whatever it is.
#[tokio::test]
async fn the_line_says_why_a_key_is_none() {
    let (gateway, mut upstream) = one_engine(|settings| settings.keys(&[("team-a", KEY)])).await;
    let mut told = Vec::new();
    for (id, lines) in [
        ("missing", &[][..]),
        ("other_scheme", &["Authorization: Basic dTpw"]),
        ("malformed", &["x-api-key: "]),
        ("malformed-tab", &["Authorization: Bearer\tsg-of-team-a"]),
        ("differing", &["Authorization: Bearer sg-of-team-a", "x-api-key: sg-other"]),
        ("unknown", &["Authorization: Bearer sg-other"]),
    ] {
        let answer = gateway.ask(&named(Request::unary().without_key(), id).lines(lines)).await;
        checks::rejected(&answer, 401, "unauthorized");
        told.push((answer.text().replace(id, "ID"), answer.head.get("www-authenticate").map(str::to_owned)));
        let line = line_of(&gateway, id).await;
        let why = id.split('-').next().expect("a word");
        assert_eq!((&line["key_error"], &line["limit"]), (&json!(why), &Value::Null), "{line}");
        assert_eq!(line["route"], "chat", "the path alone says so: {line}");
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{told:?}");
    upstream.assert_not_asked();
    gateway.wait_metric("keys_denied_total", &[("reason", "missing")], 2.0).await;
    gateway.wait_metric("keys_denied_total", &[("reason", "unknown")], 4.0).await;
    gateway.wait_metric("requests_total", &[("route", "chat"), ("outcome", "rejected")], 6.0).await;
}

#[tokio::test]
async fn the_line_names_the_limit_that_refused() {
    for (limits, limit) in
        [(json!({ "requests": "1/h" }), "key.requests"), (json!({ "tokens": "1/h" }), "key.tokens")]
    {
        let (gateway, mut upstream) = one_engine(limited(limits)).await;
        let mut first = gateway.send(&named(Request::unary().with_key(KEY), "first")).await;
        let call = upstream.call().await;
        let again = gateway.ask(&named(Request::unary().with_key(KEY), "again")).await;
        checks::rejected(&again, 429, "rate_limited");
        let line = line_of(&gateway, "again").await;
        assert_eq!((&line["limit"], &line["route"]), (&json!(limit), &json!("chat")), "{line}");
        call.answer(support::wire::json_answer(support::wire::ANSWER)).await;
        assert_eq!(first.answer().await.status(), 200);
        assert_eq!(line_of(&gateway, "first").await["limit"], Value::Null);
    }
    let per_ip = json!({ "per_ip": { "requests": "1/h" } });
    let (gateway, _upstream) = one_engine(|settings| settings.set("limits", per_ip)).await;
    let bad = |id: &str| named(Request::post(CHAT_PATH, "{"), id);
    assert_eq!(gateway.ask(&bad("bad")).await.status(), 400);
    let line = line_of(&gateway, "bad").await;
    assert_eq!((&line["limit"], &line["route"]), (&Value::Null, &json!("chat")), "{line}");
    checks::rejected(&gateway.ask(&bad("limited")).await, 429, "rate_limited");
    assert_eq!(line_of(&gateway, "limited").await["limit"], "per_ip.requests");
}

/// A guard refuses by the rule that the file names, whatever the field is called by the client.
#[tokio::test]
async fn the_line_names_the_rule_of_a_guard() {
    let guard = json!({ "max_tokens": 10, "n": 1, "schema_depth": 1, "denied": ["chat_template"] });
    let (gateway, mut upstream) = one_engine(|settings| settings.set("routes.0.guard", guard)).await;
    for (id, field) in [
        ("guard.max_tokens", r#""max_completion_tokens":11"#),
        ("guard.n", r#""n":2"#),
        ("guard.denied", r#""chat_template":"x""#),
    ] {
        let body = format!(r#"{{"model":"m",{field}}}"#);
        let answer = gateway.ask(&named(Request::post(CHAT_PATH, body), id)).await;
        checks::rejected(&answer, 400, "invalid_request");
        let line = line_of(&gateway, id).await;
        assert_eq!((&line["limit"], &line["route"]), (&json!(id), &json!("chat")), "{line}");
    }
    upstream.assert_not_asked();
}

/// Where several routes have the path, the head does not say which one it is; nor is one named that does not take it.
#[tokio::test]
async fn no_route_is_named_that_may_be_another() {
    let other = json!({ "name": "q", "match": { "path": CHAT_PATH, "model": "q*" }, "cluster": "c" });
    let (gateway, _upstream) = one_engine(|settings| settings.keys(&[("team-a", KEY)]).route(other)).await;
    let answer = gateway.ask(&named(Request::unary().with_key("wrong"), "wrong")).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(line_of(&gateway, "wrong").await["route"], Value::Null);

    let (gateway, _upstream) = one_engine(|settings| settings.set("routes.0.match.model", "q*")).await;
    checks::rejected(&gateway.ask(&named(Request::unary(), "other")).await, 404, "model_not_found");
    assert_eq!(line_of(&gateway, "other").await["route"], Value::Null);
}

/// A connection too many says which bound it met: to its client, in its line.
#[tokio::test]
async fn a_connection_too_many_says_which_bound_it_met() {
    for (connections, words, limit, outcome) in [
        (json!({ "max": 1 }), "the gateway has as many connections", "connections.max", "rejected"),
        (json!({ "per_ip": 1 }), "this address has as many connections", "connections.per_ip", "limited"),
    ] {
        let (gateway, _upstream) =
            one_engine(|settings| settings.set("server.connections", connections)).await;
        let _open = Client::connect(gateway.addr).await;
        gateway.wait_metric("connections_active", &[], 1.0).await;
        let answer = Client::connect(gateway.addr).await.answer().await;
        checks::rejected(&answer, 503, "overloaded");
        let message = answer.json()["error"]["message"].clone();
        assert!(message.as_str().is_some_and(|message| message.starts_with(words)), "{message}");
        let line = gateway.only_access().await;
        assert_eq!((&line["limit"], &line["outcome"]), (&json!(limit), &json!(outcome)), "{line}");
    }
}

crate::over_h2!(
    the_line_says_why_a_key_is_none,
    the_line_names_the_limit_that_refused,
    the_line_names_the_rule_of_a_guard
);
