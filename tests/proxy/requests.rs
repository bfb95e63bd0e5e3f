//! Requests: what is let in, what it looks like at the engine, and how a refusal reads.

use crate::support::wire::{ANSWER, CHAT, CHAT_PATH, CHAT_UNARY, Request, json_answer};
use crate::support::{End, Gateway, Settings, Upstream, as_is, checks, one_engine, relayed};
use serde_json::{Value, json};

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

/// A request without a JSON body names no model: the route that asks for none takes it, wherever it stands;
/// where all ask for one, the first.
#[tokio::test]
async fn without_a_json_body_a_route_without_a_model_comes_first() {
    let upload = || {
        Request::bare("POST", CHAT_PATH).header("Content-Type: multipart/form-data; boundary=b").body("--b--")
    };
    for (model_of_last, taken_by) in [(Value::Null, "chat"), (json!("llama*"), "qwen")] {
        let qwen =
            json!({ "name": "qwen", "match": { "path": CHAT_PATH, "model": "qwen*" }, "cluster": "c" });
        let (gateway, mut upstream) =
            one_engine(|settings| settings.set("routes.0.match.model", model_of_last).route(qwen)).await;
        let requests = [Request::bare("GET", CHAT_PATH), Request::bare("POST", CHAT_PATH).body(""), upload()];
        for request in &requests {
            relayed(&gateway, &mut upstream, request).await;
        }
        for line in gateway.all_access(requests.len()).await {
            assert_eq!(line["route"], taken_by, "{line}");
        }
    }
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
    assert_eq!(gateway.ask(&Request::bare("GET", "/v1/models/")).await.json(), list);
    assert_eq!(gateway.ask(&Request::bare("GET", "/v1/models/bge")).await.json()["id"], "bge");
    let unknown = gateway.ask(&Request::bare("GET", "/v1/models/nope")).await;
    checks::rejected(&unknown, 404, "model_not_found");
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

/// What a fixed answer is to each method, of each kind of status; the connection stays in step.
#[tokio::test]
async fn fixed_answers_are_whole_answers() {
    let fixed = |path: &str, respond: Value| json!({ "match": { "path": path, "methods": ["GET"] }, "respond": respond });
    let (gateway, upstream) = one_engine(|settings| {
        settings
            .route(fixed("/healthz", json!({ "body": "ok" })))
            .route(fixed("/empty", json!({ "status": 204 })))
            .route(fixed("/same", json!({ "status": 304 })))
            .route(fixed("/gone", json!({ "status": 404, "content_type": "text/html", "body": "<p>gone" })))
            .route(fixed("/later", json!({ "status": 503, "body": "" })))
    })
    .await;
    let mut client = gateway.client().await;
    for (path, status, kind, body) in [
        ("/healthz", 200, Some("text/plain"), "ok"),
        ("/empty", 204, None, ""),
        ("/same", 304, None, ""),
        ("/gone", 404, Some("text/html"), "<p>gone"),
        ("/later", 503, Some("text/plain"), ""),
    ] {
        client.send(Request::bare("GET", path).bytes()).await;
        let reply = client.answer().await;
        assert_eq!(
            (reply.status(), reply.head.get("content-type"), &*reply.text()),
            (status, kind, body),
            "{path}"
        );
        let length = kind.map(|_| body.len().to_string());
        assert_eq!(reply.head.get("content-length"), length.as_deref(), "{path}");
        assert!(reply.head.get("x-request-id").is_some(), "{path}");
    }
    client.send(Request::bare("POST", "/healthz").bytes()).await;
    checks::rejected(&client.answer().await, 405, "method_not_allowed");
    client.send(Request::bare("OPTIONS", "/healthz").bytes()).await;
    let options = client.answer().await;
    assert_eq!((options.status(), options.head.get("allow")), (204, Some("GET, HEAD, OPTIONS")));
    client.expect_no_body();
    client.send(Request::bare("HEAD", "/gone").bytes()).await;
    let head = client.answer().await;
    assert_eq!((head.status(), head.head.get("content-length"), head.body.len()), (404, Some("7"), 0));
    assert_eq!((client.raw(), upstream.connections()), (&b""[..], 0));
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

/// The same in chunks, one of them half a usage object: nothing is lost, and it is counted all the same.
#[tokio::test]
async fn a_whole_answer_in_chunks_is_counted_as_well() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 200);
    let (first, second) = ANSWER.split_at(ANSWER.len() - 20);
    call.chunk(first).await;
    client.until_body(first.as_bytes()).await;
    call.chunk(second).await;
    client.until_body(ANSWER.as_bytes()).await;
    checks::ends_same(client, call, ANSWER.as_bytes()).await;
    checks::usage(&gateway).await;
}

/// A whole answer is passed on as it comes: neither its head nor its first half waits for the rest.
#[tokio::test]
async fn a_whole_answer_is_passed_on_as_it_comes() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    let length = ANSWER.len();
    call.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ))
    .await;
    assert_eq!(client.head().await.status(), 200);
    let (first, second) = ANSWER.split_at(100);
    call.send(first).await;
    client.until_body(first.as_bytes()).await;
    call.send(second).await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), ANSWER.as_bytes());
}

/// Several exchanges on one client connection share one engine connection, but for those few that look for it in the
/// moment in which the pool lets go of it.
#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.client().await;
    for _ in 0..20 {
        client.send(Request::unary().bytes()).await;
        upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
        // Over HTTP/2 the answer may be there before the connection is back in the pool.
        gateway.wait_metric("in_flight", &[], 0.0).await;
    }
    assert!(upstream.connections() <= 5, "{} for 20 exchanges", upstream.connections());
}

/// A client may send its next request the moment it has a whole answer; it is not taken for garbage.
#[tokio::test]
async fn a_request_right_behind_an_answer_is_served() {
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let gateway = Gateway::start(Settings::new(&[engine])).await;
    let mut client = gateway.client().await;
    for _ in 0..1_000 {
        client.send(Request::unary().bytes()).await;
        checks::same(&client.answer().await.body, ANSWER.as_bytes());
    }
}

crate::over_h2! {
    fixed_answers_are_whole_answers,
    other_paths_are_404_and_reach_no_engine,
    the_model_chooses_the_route,
    methods_are_answered_by_the_route,
    a_streaming_route_refuses_whole_answers,
    models_are_listed_from_the_file,
    a_fixed_answer_is_given_here,
    a_whole_answer_passes_and_is_counted,
    a_whole_answer_in_chunks_is_counted_as_well,
    a_whole_answer_is_passed_on_as_it_comes,
    connections_are_kept_on_both_sides,
}
