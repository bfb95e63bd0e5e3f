//! What a body may ask: refused before any engine is touched, with the field that is to blame.

use std::net::TcpListener;

use crate::over_h2;
use crate::support::wire::{ANSWER, CHAT_PATH, Request, json_answer};
use crate::support::{Gateway, Settings, Upstream, checks, one_engine, relayed};
use serde_json::{Value, json};

fn guarded(guard: Value) -> impl FnOnce(Settings) -> Settings {
    move |settings| settings.set("routes.0.guard", guard.clone()).set("routes.1.guard", guard)
}

async fn refused(gateway: &Gateway, path: &str, body: &str, param: &str) {
    let answer = gateway.ask(&Request::post(path, body)).await;
    checks::rejected(&answer, 400, "invalid_request");
    assert_eq!(answer.json()["error"]["param"], param, "{body}: {}", answer.text());
}

/// Checklist 11: each limit at its bound and one beyond it; nothing that is refused reaches an engine.
#[tokio::test]
async fn what_asks_too_much_is_refused_before_an_engine_is_touched() {
    let guard = json!({ "max_tokens": 100, "n": 2, "best_of": 2, "prompts": 2, "logprobs": 5, "tools": 1,
                        "schema_depth": 3, "denied": ["chat_template", "kv_transfer_params", "/metadata/internal"] });
    let (gateway, mut upstream) = one_engine(guarded(guard)).await;
    let cases = [
        (CHAT_PATH, r#"{"model":"m","max_tokens":101}"#, "max_tokens"),
        (CHAT_PATH, r#"{"model":"m","max_completion_tokens":101}"#, "max_completion_tokens"),
        (CHAT_PATH, r#"{"model":"m","max_tokens":-1}"#, "max_tokens"),
        (CHAT_PATH, r#"{"model":"m","n":3}"#, "n"),
        (CHAT_PATH, r#"{"model":"m","prompt_logprobs":-1}"#, "prompt_logprobs"),
        (CHAT_PATH, r#"{"model":"m","tools":[{},{}]}"#, "tools"),
        (CHAT_PATH, r#"{"model":"m","chat_template":"{{ 1 }}"}"#, "chat_template"),
        (CHAT_PATH, r#"{"model":"m","a":[{"b":{"kv_transf\u0065r_params":{}}}]}"#, "kv_transfer_params"),
        (CHAT_PATH, r#"{"model":"m","metadata":{"internal":1}}"#, "/metadata/internal"),
        ("/v1/completions", r#"{"model":"m","prompt":"a","best_of":3}"#, "best_of"),
        ("/v1/completions", r#"{"model":"m","prompt":["a","b","c"]}"#, "prompt"),
        ("/v1/embeddings", r#"{"model":"m","input":["a","b","c"]}"#, "input"),
    ];
    for (path, body, param) in cases {
        refused(&gateway, path, body, param).await;
    }
    let deep = r#"{"model":"m","response_format":{"json_schema":{"schema":{"a":{"b":{}}}}}}"#;
    checks::rejected(&gateway.ask(&Request::post(CHAT_PATH, deep)).await, 400, "invalid_request");
    gateway.wait_metric("requests_total", &[("outcome", "rejected")], cases.len() as f64 + 1.0).await;
    upstream.assert_not_asked();
    assert_eq!(upstream.connections(), 0);

    for (path, body) in [
        (CHAT_PATH, r#"{"model":"m","max_tokens":100,"n":2,"logprobs":true,"top_logprobs":5,"tools":[{}]}"#),
        (CHAT_PATH, r#"{"model":"m","messages":[{"content":"chat_template"}],"chat_template":null}"#),
        ("/v1/completions", r#"{"model":"m","prompt":[1,2,3,4,5,6]}"#),
    ] {
        let asked = relayed(&gateway, &mut upstream, &Request::post(path, body)).await;
        checks::has_body(&asked, body);
    }
    checks::at_rest(&gateway).await;
}

/// A guard is for the route that has it, whatever the others look for, and a reload changes it.
#[tokio::test]
async fn a_guard_is_for_its_own_route() {
    let (gateway, mut upstream) = one_engine(|settings| {
        settings.set("routes.1.guard", json!({ "n": 1, "denied": ["x"], "schema_depth": 1 }))
    })
    .await;
    let body = r#"{"model":"m","n":9,"x":1,"guided_json":{"a":{}}}"#;
    relayed(&gateway, &mut upstream, &Request::post(CHAT_PATH, body)).await;
    refused(&gateway, "/v1/completions", body, "x").await;
}

/// Checklist 13: a body that could hide from the guard by its type or its coding.
#[tokio::test]
async fn a_body_cannot_hide_from_its_guard() {
    let (gateway, mut upstream) = one_engine(guarded(json!({ "n": 1 }))).await;
    for kind in ["image/png", "multipart/form-data; boundary=b", "text/csv", "application/xml"] {
        let request = Request::post(CHAT_PATH, r#"{"model":"m","n":9}"#)
            .without("content-type")
            .header(&format!("Content-Type: {kind}"));
        checks::rejected(&gateway.ask(&request).await, 415, "invalid_request");
    }
    for line in ["Content-Encoding: gzip", "content-encoding: br", "Content-Encoding: identity, gzip"] {
        let answer = gateway.ask(&Request::unary().header(line)).await;
        checks::rejected(&answer, 415, "invalid_request");
        assert_eq!(answer.head.get("accept-encoding"), Some("identity"), "{line}");
    }
    let disguised = Request::unary().header("Content_Encoding: gzip");
    checks::rejected(&gateway.ask(&disguised).await, 415, "invalid_request");
    assert_eq!(upstream.connections(), 0);
    let plain = Request::unary().header("Content-Encoding: identity");
    relayed(&gateway, &mut upstream, &plain).await;
}

/// Checklist 3: whatever a request says of addresses, only the file's are ever dialled.
#[tokio::test]
async fn no_request_chooses_an_address() {
    let canary = TcpListener::bind("127.0.0.1:0").expect("bind");
    canary.set_nonblocking(true).expect("nonblocking");
    let address = canary.local_addr().expect("bound");
    let (gateway, mut upstream) = one_engine(|settings| settings).await;
    let url = format!("http://{address}/v1");
    let fields = ["api_base", "base_url", "url", "endpoint", "host", "proxy", "image_url", "callback_url"];
    let mut requests: Vec<Request> = Vec::new();
    for field in fields {
        let body = json!({ "model": "m", field: url, "user_config": { "model_list": [{ "litellm_params": { field: url } }] },
                           "metadata": [{ field: { field: url } }] });
        requests.push(Request::post(CHAT_PATH, body.to_string()));
    }
    for header in [
        "X-Forwarded-Host",
        "X-Backend-Url",
        "X-Host",
        "X-Original-URL",
        "X-Rewrite-URL",
        "Forwarded",
        "Origin",
        "Referer",
        "Proxy",
        "X-LiteLLM-Api-Base",
        "X-Portkey-Custom-Host",
        "Destination",
        "X-Forwarded-For",
    ] {
        requests.push(Request::unary().header(&format!("{header}: {url}")));
    }
    requests.push(Request::unary().without("host").header(&format!("Host: {address}")));
    for request in &requests {
        relayed(&gateway, &mut upstream, request).await;
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], requests.len() as f64).await;
    let nobody = canary.accept().expect_err("the canary was dialled");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

/// The example guards what its page says.
#[tokio::test]
async fn the_example_refuses_what_it_names() {
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let settings = Settings::example("guard")
        .set("clusters.qwen.backends.0.url", format!("http://{engine}"))
        .set("clusters.qwen.health", json!({ "active": null }))
        .set("clusters.qwen.scrape", Value::Null);
    let gateway = Gateway::start(settings).await;
    for field in
        ["chat_template", "chat_template_kwargs", "kv_transfer_params", "mm_processor_kwargs", "api_base"]
    {
        refused(&gateway, CHAT_PATH, &json!({ "model": "m", field: {} }).to_string(), field).await;
    }
    let picture = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://10.0.0.1/"}}]}]}"#;
    refused(&gateway, CHAT_PATH, picture, "image_url").await;
    assert_eq!(gateway.ask(&Request::unary()).await.status(), 200);
}

over_h2! {
    what_asks_too_much_is_refused_before_an_engine_is_touched,
    a_body_cannot_hide_from_its_guard,
}
