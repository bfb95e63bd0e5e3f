//! What the file says of heads: routes by header and method, one segment more, headers set and removed.

use crate::support;
use crate::support::wire::{ANSWER, CHAT, CHAT_PATH, CHAT_UNARY, Request, answer, json_answer};
use crate::support::{Gateway, Settings, Upstream, checks, one_engine, relayed, two_engines};
use serde_json::{Value, json};

/// Asks, lets the engine answer, and gives the name of the route that was taken.
async fn taken(gateway: &Gateway, upstream: &mut Upstream, request: Request, id: &str) -> Value {
    relayed(gateway, upstream, &request.header(&format!("x-request-id: {id}"))).await;
    gateway.wait_access(id, |line| line["request_id"] == id).await["route"].clone()
}

fn on_chat(name: &str, rest: Value) -> Value {
    let mut matches = json!({ "path": CHAT_PATH });
    for (key, value) in rest.as_object().expect("a map") {
        matches[key] = value.clone();
    }
    json!({ "name": name, "match": matches, "cluster": "c", "include_usage": false })
}

fn routes(settings: Settings, routes: &[Value]) -> Settings {
    settings.set("routes", json!(routes))
}

/// Every named header must match on one of its lines, whatever the case of its name; else the next route.
#[tokio::test]
async fn headers_choose_the_route() {
    let (gateway, mut upstream) = one_engine(|settings| {
        let both = json!({ "headers": { "X-Team": "a*", "x-tier": "gold" }, "model": "m" });
        let team = json!({ "headers": { "x-team": "*b*" } });
        routes(settings, &[on_chat("both", both), on_chat("team", team), on_chat("rest", json!({}))])
    })
    .await;
    let cases: [(&[&str], &str); 9] = [
        (&["x-team: alpha", "X-TIER: gold"], "both"),
        (&["x-team: zzz", "X-Team: a", "x-tier: gold"], "both"),
        (&["x-team: alpha", "x-tier: Gold"], "rest"),
        (&["x-team: ab", "x-tier: silver"], "team"),
        (&["x-team: b"], "team"),
        (&["x-team: caf\u{e9}b"], "team"),
        (&["x-team: a, b"], "team"),
        (&["x-team: A", "x-tier: gold"], "rest"),
        (&[], "rest"),
    ];
    for (n, (lines, route)) in cases.into_iter().enumerate() {
        let request = Request::unary().lines(lines);
        assert_eq!(taken(&gateway, &mut upstream, request, &format!("r{n}")).await, route, "{lines:?}");
    }
    // The model is asked for after the headers: another one takes the next route.
    let other = Request::post(CHAT_PATH, r#"{"model":"x"}"#).lines(&["x-team: ab", "x-tier: gold"]);
    assert_eq!(taken(&gateway, &mut upstream, other, "model").await, "team");
}

/// Where no route takes the headers the answer is 404, before the body is read; 405 is for methods alone.
#[tokio::test]
async fn headers_that_no_route_takes_are_404_before_the_body() {
    let (gateway, mut upstream) = one_engine(|settings| {
        let get = json!({ "methods": ["GET"], "headers": { "x-team": "a" } });
        let post = json!({ "methods": ["POST"], "headers": { "x-team": "b" } });
        routes(settings, &[on_chat("get", get), on_chat("post", post)])
    })
    .await;
    let huge = Request::post(CHAT_PATH, "").header("x-team: a").header("Expect: 100-continue").head();
    let huge = String::from_utf8(huge).expect("text").replace("Length: 0", "Length: 1000");
    let mut client = gateway.client().await;
    client.send(huge).await;
    let reply = client.answer().await;
    checks::rejected(&reply, 404, "not_found");
    assert!(reply.text().contains("takes the headers of this request"), "{}", reply.text());

    let put = gateway.ask(&Request::bare("PUT", CHAT_PATH).header("x-team: a")).await;
    checks::rejected(&put, 405, "method_not_allowed");
    assert_eq!(put.head.get("allow"), Some("GET, HEAD, OPTIONS, POST"));
    let options = gateway.ask(&Request::bare("OPTIONS", CHAT_PATH)).await;
    assert_eq!((options.status(), options.head.get("allow")), (204, Some("GET, HEAD, OPTIONS, POST")));
    checks::rejected(
        &gateway.ask(&Request::bare("GET", CHAT_PATH).header("x-team: b")).await,
        404,
        "not_found",
    );
    assert_eq!(upstream.connections(), 0);
    let get = Request::bare("GET", CHAT_PATH).header("x-team: a");
    assert_eq!(taken(&gateway, &mut upstream, get, "g").await, "get");
    assert_eq!(taken(&gateway, &mut upstream, Request::unary().header("x-team: b"), "p").await, "post");
}

/// The largest body is that of a route that the headers still allow.
#[tokio::test]
async fn a_route_that_the_headers_rule_out_has_no_say() {
    let (gateway, upstream) = one_engine(|settings| {
        let mut large = on_chat("large", json!({ "headers": { "x-team": "a" } }));
        large["body_bytes"] = json!("1MiB");
        let mut small = on_chat("small", json!({}));
        small["body_bytes"] = json!("1KiB");
        routes(settings, &[large, small])
    })
    .await;
    let head = format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n");
    let mut client = gateway.client().await;
    client.send(head).await;
    checks::rejected(&client.answer().await, 413, "body_too_large");
    assert_eq!(upstream.connections(), 0);
}

/// A route may take `/v1/models` for some; the others get the list of the file.
#[tokio::test]
async fn the_list_of_models_is_for_whom_no_route_takes() {
    let models = json!({ "name": "models", "match": { "path": "/v1/models", "headers": { "x-team": "a" } }, "cluster": "c" });
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("routes.0.models", json!(["m"])).route(models)).await;
    assert_eq!(gateway.ask(&Request::bare("GET", "/v1/models")).await.json()["data"][0]["id"], "m");
    assert_eq!(upstream.connections(), 0);
    let asked = Request::bare("GET", "/v1/models").header("x-team: a");
    assert_eq!(taken(&gateway, &mut upstream, asked, "m").await, "models");
}

/// `/*` is one segment more, as it stands on the wire: no empty one, no second one, nothing encoded.
#[tokio::test]
async fn a_pattern_stands_for_one_plain_segment() {
    let responses =
        |name: &str, path: &str| json!({ "name": name, "match": { "path": path }, "cluster": "c" });
    let (gateway, mut upstream) = one_engine(|settings| {
        let one = responses("one", "/v1/responses/*");
        let cancel = responses("cancel", "/v1/responses/*/cancel");
        routes(settings, &[one, cancel, responses("all", "/v1/responses")])
    })
    .await;
    for path in [
        "/v1/responses/",
        "/v1/responses//",
        "/v1/responses//a",
        "/v1/responses/a/",
        "/v1/responses/a/other",
        "/v1/responses//cancel",
        "/v1/responses/../cancel",
        "/v1/responses/a/cancel/b",
        "/v1/responses/.",
        "/v1/responses/..",
        "/v1/responses/%2e%2e",
        "/v1/responses/a%2Fb",
        "/v1/responses/a%2fb",
        "/v1/responses/a%5Cb",
        "/v1/responses/a;b",
        "/v1/responses%2Fa",
        "/v1//responses/a",
        "//v1/responses/a",
        "/v1/Responses/a",
        "/v1/responsesx/a",
    ] {
        checks::rejected(&gateway.ask(&Request::bare("GET", path)).await, 404, "not_found");
    }
    // A backslash is a slash to some: it is in no path at all.
    let backslash = Request::bare("GET", "/v1/responses/a\\b");
    checks::rejected(&gateway.ask(&backslash).await, 400, "invalid_request");
    assert_eq!(upstream.connections(), 0);
    for (path, route) in [
        ("/v1/responses/resp_1-a.b~c", "one"),
        ("/v1/responses/...", "one"),
        ("/v1/responses/a?b=/c/d", "one"),
        ("/v1/responses/a/cancel", "cancel"),
        ("/v1/responses?a", "all"),
    ] {
        let mut client = gateway.send(&Request::bare("GET", path)).await;
        let call = upstream.call().await;
        assert_eq!(call.request.head.line, format!("GET {path} HTTP/1.1"));
        call.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
        let path = path.split('?').next().expect("a path");
        assert_eq!(gateway.wait_access(path, |line| line["path"] == path).await["route"], route);
    }
}

/// Removed, then set, and what identifies the request comes last; on every attempt.
#[tokio::test]
async fn headers_are_removed_then_set() {
    let rules = json!({
        "set": { "X-Team": "engines", "x-secret": "s3cret", "user-agent": "streamgate" },
        "remove": ["cookie", "X-Secret", "openai-organization"],
    });
    let (gateway, mut one, mut two) = two_engines(|settings| settings.set("clusters.c.headers", rules)).await;
    let lines = [
        "X-Team: mine",
        "x-team: too",
        "Cookie: a=1",
        "X-Secret: guess",
        "OpenAI-Organization: o",
        "X-Kept: k",
    ];
    let mut client = gateway.send(&Request::unary().lines(&lines)).await;
    let (call, other) = support::upstream::either(&mut one, &mut two).await;
    let first = call.request.head.clone();
    call.answer(answer("503 Service Unavailable", &[], "")).await;
    let call = other.call().await;
    for head in [&first, &call.request.head] {
        assert_eq!(head.all("x-team"), ["engines"]);
        assert_eq!(head.all("x-secret"), ["s3cret"]);
        assert_eq!(head.all("user-agent"), ["streamgate"]);
        assert_eq!((head.get("cookie"), head.get("openai-organization")), (None, None));
        assert_eq!((head.get("x-kept"), head.get("authorization")), (Some("k"), Some("Bearer k1")));
    }
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    gateway.only_access().await;
    assert!(!gateway.log().contains("s3cret"), "{}", gateway.log());
}

/// A mapped session id is the client's word: the cluster removes it like any other.
#[tokio::test]
async fn a_cluster_may_remove_what_was_mapped() {
    let (gateway, mut upstream) = one_engine(|settings| {
        settings
            .session(&["cookie:sid"], &["header:X-Session-Id", "header:X-Other"])
            .set("clusters.c.headers", json!({ "remove": ["x-session-id", "cookie"] }))
    })
    .await;
    let asked = relayed(&gateway, &mut upstream, &Request::unary().header("Cookie: sid=1")).await;
    let got = ["x-session-id", "x-other", "cookie"].map(|name| asked.head.get(name).map(str::to_owned));
    assert_eq!(got, [None, Some("1".to_owned()), None]);
}

/// A secret that is set stays out of the log at its most talkative.
#[tokio::test]
async fn a_set_secret_is_in_no_log() {
    let (gateway, mut upstream) = one_engine(|settings| {
        settings
            .set("log.level", "trace")
            .set("clusters.c.headers", json!({ "set": { "x-secret": "s3cret" } }))
    })
    .await;
    let mut client = gateway.send(&Request::post(CHAT_PATH, CHAT)).await;
    let call = upstream.call().await;
    assert_eq!(call.request.head.get("x-secret"), Some("s3cret"));
    call.reset();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, CHAT_UNARY)).await;
    gateway.all_access(2).await;
    gateway.wait_log("the backend closed the connection").await;
    assert!(!gateway.log().contains("s3cret"), "{}", gateway.log());
}
