//! Requests: what is let in, what it looks like at the engine, and how a refusal reads.

mod support;

use serde_json::{Value, json};
use support::wait::{ms, silence};
use support::wire::{ANSWER, CHAT, CHAT_PATH, CHAT_UNARY, Request, answer, json_answer};
use support::{Client, End, Gateway, Settings, Upstream, as_is, checks, one_engine};

/// Sends a request, lets the engine answer it, and gives what the engine was asked.
async fn relayed(
    gateway: &Gateway,
    upstream: &mut Upstream,
    request: &Request,
) -> support::upstream::Recorded {
    let mut client = gateway.send(request).await;
    let call = upstream.call().await;
    let recorded = call.request.clone();
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    recorded
}

/// H18: nothing is mapped, so not a byte of the body changes.
#[tokio::test]
async fn an_odd_but_legal_body_is_byte_identical() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let body = "{ \"seed\": 9007199254740993,\n  \"temperature\": 0.10, \"n\": 1e2, \"x\": {\"b\":1,\"a\":2},\r\n\
                \t\"messages\":[{\"role\":\"user\",\"content\":\"é \\u2028 \\ud83d\\ude00 \\/ \\ud83d\"}],\n\
                \"mod\\u0065l\" : \"m\" , \"stream\": false, \"dup\":1, \"dup\":2 }\n";
    for request in [Request::post(CHAT_PATH, body), Request::post(CHAT_PATH, body).header("X-Session-Id: s1")]
    {
        let asked = relayed(&gateway, &mut upstream, &request).await;
        checks::same(&asked.body, body.as_bytes());
        assert_eq!(asked.head.get("content-length"), Some(body.len().to_string().as_str()));
    }
    let line = gateway.wait_access("any", |_| true).await;
    assert_eq!(line["model"], "m", "an escaped key is read all the same: {line}");
}

/// H18: an alias changes the model's value and nothing else; the log keeps the client's name.
#[tokio::test]
async fn an_alias_is_patched_in_place() {
    let alias = |settings: Settings| {
        settings.set("routes.0.aliases", json!({ "gpt-4o": "qwen3-32b", "short": "a \"quoted\" name" }))
    };
    let (gateway, mut upstream) = one_engine(alias).await;
    let body = |model: &str| {
        format!(
            "{{ \"x\":{{\"model\":\"gpt-4o\"}}, \"seed\":1e0,\n \"model\" :  {model} , \"stream\":false }}"
        )
    };
    for (model, patched) in [("\"gpt-4o\"", "\"qwen3-32b\""), ("\"gpt\\u002d4o\"", "\"qwen3-32b\"")] {
        let asked = relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, body(model))).await;
        checks::same(&asked.body, body(patched).as_bytes());
        assert_eq!(asked.head.get("content-length"), Some(body(patched).len().to_string().as_str()));
    }
    let asked =
        relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, body("\"short\"")).chunked(7)).await;
    checks::same(&asked.body, body("\"a \\\"quoted\\\" name\"").as_bytes());
    let asked = relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, body("\"other\""))).await;
    checks::same(&asked.body, body("\"other\"").as_bytes());
    gateway.wait_access("the client's name", |line| line["model"] == "gpt-4o").await;
}

/// P4 and the JSON rules: what the gateway acts on must be unambiguous.
#[tokio::test]
async fn bodies_that_could_be_misread_are_refused() {
    let (gateway, upstream) = one_engine(as_is).await;
    let deep = format!("{{\"model\":\"m\",\"x\":{}{}}}", "[".repeat(70), "]".repeat(70));
    let bodies = [
        "not json",
        "",
        "[]",
        "{\"model\":\"m\"",
        "{\"model\":\"m\"} x",
        "\u{feff}{\"model\":\"m\"}",
        "{\"model\":\"m\",\"temperature\":NaN}",
        "{\"model\":\"m\",\"model\":\"n\"}",
        "{\"model\":\"m\",\"mod\\u0065l\":\"n\"}",
        "{\"model\":\"m\",\"stream\":true,\"stream\":false}",
        "{\"model\":\"m\",\"max_tokens\":1,\"max_tokens\":2}",
        "{\"model\":5}",
        "{\"model\":\"m\",\"stream\":1}",
        "{\"model\":\"m\",\"stream\":\"true\"}",
        &deep,
    ];
    for body in bodies {
        let reply = gateway.ask(&Request::post(CHAT_PATH, body)).await;
        assert_eq!(reply.status(), 400, "{body:?}: {}", reply.text());
        checks::rejected(&reply, 400, "invalid_request");
    }
    assert_eq!(upstream.connections(), 0);
    let count = bodies.len() as f64;
    gateway.wait_metric("requests_total", &[("outcome", "rejected")], count).await;
    checks::at_rest(&gateway).await;
}

/// A body that is not JSON passes as it is, routed by path alone.
#[tokio::test]
async fn a_body_that_is_not_json_passes() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let body =
        b"--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n\x00\xff\xfe{\"model\":\r\n--b--\r\n";
    let request =
        Request::bare("POST", CHAT_PATH).header("Content-Type: multipart/form-data; boundary=b").body(body);
    checks::same(&relayed(&gateway, &mut upstream, &request).await.body, body);
}

/// H19: end-to-end headers pass, hop-by-hop ones stop, on both ways.
#[tokio::test]
async fn hop_by_hop_headers_stop_and_the_others_pass() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway
        .send(
            &Request::chat()
                .header("Connection: keep-alive, X-Hop")
                .header("X-Hop: 1")
                .header("Proxy-Authorization: Basic Zm9v")
                .header("TE: trailers")
                .header("Keep-Alive: 5")
                .header("Cookie: a=1; b=2")
                .header("X-Session-Id: s1")
                .header("X-Request-Id: r1")
                .header("OpenAI-Organization: o"),
        )
        .await;
    let call = upstream.call().await;
    let asked = &call.request.head;
    for hop in ["x-hop", "proxy-authorization", "keep-alive", "te"] {
        assert_eq!(asked.get(hop), None, "{hop}");
    }
    assert!(!asked.get("connection").unwrap_or_default().to_lowercase().contains("x-hop"));
    let passing = [
        ("cookie", "a=1; b=2"),
        ("x-session-id", "s1"),
        ("x-request-id", "r1"),
        ("openai-organization", "o"),
        ("authorization", "Bearer k1"),
        ("content-type", "application/json"),
    ];
    for (name, value) in passing {
        assert_eq!(asked.get(name), Some(value), "{name}");
    }
    assert_eq!(asked.get("host"), Some(upstream.addr.to_string().as_str()), "the client's Host stops here");

    let headers = [
        "Connection: close, X-RHop",
        "X-RHop: 1",
        "x-request-id: u9",
        "Set-Cookie: a=1; Path=/",
        "Set-Cookie: b=2",
        "X-Engine: e",
        "Content-Type: application/json",
    ];
    call.answer(answer("200 OK", &headers, ANSWER)).await;
    let reply = client.answer().await;
    assert_eq!(reply.head.get("x-rhop"), None);
    assert_eq!(reply.head.get("x-request-id"), Some("r1"));
    assert_eq!(reply.head.all("set-cookie"), ["a=1; Path=/", "b=2"]);
    assert_eq!(reply.head.get("x-engine"), Some("e"));
    let line = gateway.only_access().await;
    assert_eq!(line["request_id"], "r1");
    assert!(line.to_string().contains("u9"), "the engine's own id is logged: {line}");

    client.send(Request::unary().bytes()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200, "the engine's close is not the client's");
}

/// `auth: none`: the client's credentials stop at the gateway.
#[tokio::test]
async fn credentials_stop_when_the_file_says_so() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("clusters.c.auth", "none")).await;
    let asked = relayed(&gateway, &mut upstream, &Request::unary().header("x-api-key: k2")).await.head;
    assert_eq!((asked.get("authorization"), asked.get("x-api-key")), (None, None));
}

/// The client's id when it is well-formed, else a new one: the same upstream and back.
#[tokio::test]
async fn every_exchange_has_one_request_id() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let long = "x".repeat(300);
    let mut seen = Vec::new();
    for (given, kept) in [("abc-123_X.9", true), ("has space", false), (long.as_str(), false), ("", false)] {
        let header = format!("X-Request-Id: {given}");
        let mut client = gateway.send(&Request::unary().header(&header)).await;
        let call = upstream.call().await;
        let asked = call.request.head.get("x-request-id").expect("an id").to_owned();
        call.answer(json_answer(ANSWER)).await;
        let reply = client.answer().await;
        assert_eq!(reply.head.get("x-request-id"), Some(asked.as_str()));
        assert_eq!(asked == given, kept, "{given:?} became {asked:?}");
        gateway.wait_access(&asked, |line| line["request_id"] == asked).await;
        assert!(!seen.contains(&asked), "a new id each time");
        seen.push(asked);
    }
}

/// Default-deny: only the very paths of the file reach an engine.
#[tokio::test]
async fn other_paths_are_404_and_reach_no_engine() {
    let responses = json!({ "match": { "path": "/v1/responses/*" }, "cluster": "c", "include_usage": false });
    let (gateway, mut upstream) = one_engine(|settings| settings.route(responses)).await;
    let others = [
        "/",
        "/v1",
        "/metrics",
        "/v1/chat/completions/",
        "/v1/Chat/completions",
        "/v1/chat//completions",
        "/v1/chat/%63ompletions",
        "/v1/x/../chat/completions",
        "/v1/chat/completions%2f",
        "/v1/responses",
        "/v1/responses/",
        "/v1/responses/a/b",
    ];
    for path in others {
        let reply = gateway.ask(&Request::post(path, CHAT)).await;
        assert_eq!(reply.status(), 404, "{path}: {}", reply.text());
        checks::rejected(&reply, 404, "not_found");
    }
    assert_eq!(upstream.connections(), 0);
    let asked = relayed(&gateway, &mut upstream, &Request::post("/v1/responses/resp_1", CHAT_UNARY)).await;
    assert_eq!(asked.head.line, "POST /v1/responses/resp_1 HTTP/1.1");
}

/// The query passes, and a backend's path prefix goes in front.
#[tokio::test]
async fn the_target_keeps_its_query_and_gets_the_prefix() {
    let mut upstream = Upstream::start().await;
    let url = format!("http://{}/base", upstream.addr);
    let settings = Settings::new(&[upstream.addr]).set("clusters.c.backends.0.url", url);
    let gateway = Gateway::start(settings).await;
    let request = Request::post("/v1/chat/completions?a=1&b=%2F", CHAT_UNARY);
    let asked = relayed(&gateway, &mut upstream, &request).await;
    assert_eq!(asked.head.line, "POST /base/v1/chat/completions?a=1&b=%2F HTTP/1.1");
    assert_eq!(gateway.only_access().await["path"], CHAT_PATH);
}

/// The first route whose model matches; none: 404 with a code of its own.
#[tokio::test]
async fn the_model_chooses_the_route() {
    let (mut second, first) = (Upstream::start().await, Upstream::start().await);
    let qwen = json!({ "name": "qwen", "match": { "path": CHAT_PATH, "model": "qwen*" }, "cluster": "d",
                       "include_usage": false });
    let backend = json!({ "name": "v1", "url": format!("http://{}", second.addr) });
    let settings = Settings::new(&[first.addr])
        .set("clusters.d", json!({ "profile": "openai", "backends": [backend] }))
        .set("routes.0.match.model", "llama*")
        .route(qwen);
    let gateway = Gateway::start(settings).await;
    relayed(&gateway, &mut second, &Request::post(CHAT_PATH, r#"{"model":"qwen3-32b"}"#)).await;
    let line = gateway.only_access().await;
    assert_eq!(
        (&line["route"], &line["cluster"], &line["backend"]),
        (&"qwen".into(), &"d".into(), &"v1".into())
    );
    for body in [r#"{"model":"mistral"}"#, r#"{"messages":[]}"#] {
        checks::rejected(&gateway.ask(&Request::post(CHAT_PATH, body)).await, 404, "model_not_found");
    }
    assert_eq!(first.connections(), 0);
}

/// Methods: GET and POST by default, HEAD where GET, OPTIONS answered here, others 405 with Allow.
#[tokio::test]
async fn methods_are_answered_by_the_route() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("routes.1.match.methods", json!(["POST"]))).await;
    for method in ["PUT", "DELETE", "PATCH"] {
        let reply = gateway.ask(&Request::bare(method, CHAT_PATH)).await;
        checks::rejected(&reply, 405, "method_not_allowed");
        let allow = reply.head.get("allow").unwrap_or_default();
        assert!(allow.contains("GET") && allow.contains("POST"), "{method}: {allow:?}");
    }
    let reply = gateway.ask(&Request::bare("GET", "/v1/completions")).await;
    checks::rejected(&reply, 405, "method_not_allowed");
    assert!(!reply.head.get("allow").unwrap_or_default().contains("GET"));

    let reply = gateway.ask(&Request::bare("OPTIONS", CHAT_PATH)).await;
    assert_eq!((reply.status(), reply.body.len()), (204, 0));
    assert!(reply.head.get("allow").is_some_and(|allow| allow.contains("POST")));
    assert_eq!(upstream.connections(), 0);

    let asked = relayed(&gateway, &mut upstream, &Request::bare("GET", CHAT_PATH)).await;
    assert_eq!(asked.head.line, format!("GET {CHAT_PATH} HTTP/1.1"));
}

/// The answer to a HEAD has a length and no body, and the connection stays in step.
#[tokio::test]
async fn a_head_answer_has_no_body() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.client().await;
    client.expect_no_body();
    for _ in 0..2 {
        client.send(Request::bare("HEAD", CHAT_PATH).bytes()).await;
        let call = upstream.call().await;
        assert!(call.request.head.line.starts_with("HEAD "));
        call.answer("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 123\r\n\r\n").await;
        let reply = client.answer().await;
        assert_eq!((reply.status(), reply.head.get("content-length")), (200, Some("123")));
    }
    assert_eq!(client.raw(), b"");
}

/// `streaming: required` refuses what does not stream, before any engine is asked.
#[tokio::test]
async fn a_streaming_route_refuses_whole_answers() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("routes.0.streaming", "required")).await;
    for body in [CHAT_UNARY, r#"{"model":"m"}"#, r#"{"model":"m","stream":null}"#] {
        checks::rejected(&gateway.ask(&Request::post(CHAT_PATH, body)).await, 400, "invalid_request");
    }
    assert_eq!(upstream.connections(), 0);
    let mut client = gateway.send(&Request::chat()).await;
    upstream.call().await.stream("x").await;
    assert_eq!(client.answer().await.status(), 200);
}

/// `GET /v1/models` lists what the routes name, without asking an engine.
#[tokio::test]
async fn models_are_listed_from_the_file() {
    let models = |settings: Settings| {
        settings.set("routes.0.models", json!(["qwen3-32b", "m"])).set("routes.1.models", json!(["m", "bge"]))
    };
    let (gateway, upstream) = one_engine(models).await;
    let reply = gateway.ask(&Request::bare("GET", "/v1/models")).await;
    assert_eq!((reply.status(), reply.head.get("content-type")), (200, Some("application/json")));
    let list = reply.json();
    assert_eq!(list["object"], "list");
    let models = list["data"].as_array().unwrap();
    let mut ids: Vec<&str> = models.iter().filter_map(|model| model["id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["bge", "m", "qwen3-32b"], "each once");
    assert!(models.iter().all(|model| model["object"] == "model"), "{list}");
    assert_eq!(upstream.connections(), 0);
}

/// A fixed answer needs no engine.
#[tokio::test]
async fn a_fixed_answer_is_given_here() {
    let body = "User-agent: *\nDisallow: /\n";
    let robots = json!({ "match": { "path": "/robots.txt" },
                         "respond": { "status": 200, "content_type": "text/plain", "body": body } });
    let (gateway, upstream) = one_engine(|settings| settings.route(robots)).await;
    let reply = gateway.ask(&Request::bare("GET", "/robots.txt")).await;
    assert_eq!((reply.status(), reply.text().as_str()), (200, body));
    assert_eq!(reply.head.get("content-type"), Some("text/plain"));
    assert_eq!(upstream.connections(), 0);
}

/// H17: the gateway says 100 itself, and the engine is never asked to.
#[tokio::test]
async fn an_expected_100_comes_before_the_body() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let body = format!("{{\"model\":\"m\",\"x\":\"{}\"}}", "y".repeat(2 * 1024 * 1024));
    let request = Request::post(CHAT_PATH, &body).header("Expect: 100-continue");
    let mut client = gateway.client().await;
    client.send(request.head()).await;
    assert_eq!(client.head().await.status(), 100);
    client.send(&body).await;
    let call = upstream.call().await;
    assert_eq!(call.request.head.get("expect"), None);
    checks::same(&call.request.body, body.as_bytes());
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// H17: what can be refused by the head is refused without a 100.
#[tokio::test]
async fn a_refusal_by_the_head_says_no_100() {
    let (gateway, upstream) = one_engine(as_is).await;
    let refusals = [(CHAT_PATH, 40 * 1024 * 1024, 413, "body_too_large"), ("/nowhere", 10, 404, "not_found")];
    for (path, length, status, code) in refusals {
        let mut client = gateway.client().await;
        client
            .send(format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
            ))
            .await;
        checks::rejected(&client.answer().await, status, code);
    }
    assert_eq!(upstream.connections(), 0);
}

/// C14: a body that nobody read is never taken for the next request.
#[tokio::test]
async fn an_unread_body_is_not_the_next_request() {
    let (gateway, upstream) = one_engine(as_is).await;
    let smuggled = Request::bare("GET", "/v1/smuggled").bytes();
    let refused = Request::post("/nowhere", &smuggled);
    for request in [refused.clone(), refused.clone().chunked(10)] {
        let mut client = gateway.send(&request).await;
        checks::rejected(&client.answer().await, 404, "not_found");
        in_step(client).await;
    }
    let mut late = gateway.client().await;
    late.send(refused.head()).await;
    checks::rejected(&late.answer().await, 404, "not_found");
    silence(ms(50)).await;
    // The gateway may have closed.
    drop(late.try_send(&smuggled).await);
    in_step(late).await;
    assert!(gateway.access_lines().iter().all(|line| line["path"] != "/v1/smuggled"));
    assert_eq!(upstream.connections(), 0);
}

/// The connection serves the next request with its own answer, or it is closed.
async fn in_step(mut client: Client) {
    let next = Request::bare("GET", "/v1/models").header("Connection: close").bytes();
    if client.try_send(next).await.is_ok() {
        client.closed().await;
        let raw = String::from_utf8_lossy(client.raw()).into_owned();
        assert!(raw.is_empty() || raw.starts_with("HTTP/1.1 200"), "{raw}");
        assert!(raw.matches("HTTP/1.1 ").count() <= 1, "{raw}");
    }
}

/// C6: a body that does not come is given up, and no engine waits for it.
#[tokio::test]
async fn a_slow_body_is_408() {
    let (gateway, upstream) =
        one_engine(|settings| settings.set("server.request.body_timeout", "500ms")).await;
    let mut client = gateway.client().await;
    let request = Request::post(CHAT_PATH, CHAT);
    client.send(request.head()).await;
    client.send(&request.framed_body()[..10]).await;
    checks::rejected(&client.answer().await, 408, "request_timeout");
    assert_eq!(upstream.connections(), 0);
    assert_eq!(gateway.only_access().await["phase"], "upload");
    checks::at_rest(&gateway).await;
}

/// What all bodies may take together is bounded: 503 with a time to come back.
#[tokio::test]
async fn bodies_beyond_the_ledger_are_503() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("server.request.buffered_bytes", "1MiB")).await;
    let big = format!("{{\"model\":\"m\",\"x\":\"{}\"}}", "y".repeat(700 * 1024));
    let mut first = gateway.send(&Request::post(CHAT_PATH, &big)).await;
    let call = upstream.call().await;
    let reply = gateway.ask(&Request::post(CHAT_PATH, &big)).await;
    checks::rejected(&reply, 503, "overloaded");
    assert!(reply.head.get("retry-after").is_some(), "{:?}", reply.head);
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(first.answer().await.status(), 200);
    checks::at_rest(&gateway).await;
    relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, &big)).await;
}

/// An answer that is not a stream passes with its length, and its usage is counted.
#[tokio::test]
async fn a_whole_answer_passes_and_is_counted() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    let reply = client.answer().await;
    assert_eq!(reply.end, End::Clean);
    checks::same(&reply.body, ANSWER.as_bytes());
    assert_eq!(reply.head.get("content-length"), Some(ANSWER.len().to_string().as_str()));
    checks::usage(&gateway).await;
    let line = gateway.only_access().await;
    assert_eq!((&line["streaming"], &line["status"]), (&Value::Bool(false), &200.into()), "{line}");
}

/// Several exchanges on one client connection share one engine connection.
#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.client().await;
    for _ in 0..20 {
        client.send(Request::unary().bytes()).await;
        upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    assert_eq!(upstream.connections(), 1);
}
