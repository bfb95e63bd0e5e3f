//! What clients of each endpoint are told when a stream goes well, is cut, goes silent or brings the
//! engine's own error; and how they are refused before a stream begins.
//!
//! Engines replay the streams of `tests/golden`. What the client got, and what was written into the
//! books, is compared with `tests/golden/told/<dialect>-<case>.told`; `UPDATE_GOLDEN=1 cargo test --test
//! proxy/dialects` writes these anew.

use std::path::{Path, PathBuf};

use crate::support;
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{Request, answer, json_answer};
use crate::support::{Client, End, Gateway, Settings, checks, one_engine};
use serde_json::{Value, json};

/// An endpoint, a healthy stream of it and one in which the engine fails.
struct Endpoint {
    name: &'static str,
    path: &'static str,
    healthy: &'static str,
    /// Its events that reach the client before the engine is cut or goes silent.
    delivered: usize,
    failing: &'static str,
}

/// The Messages path has a prefix in front, as a gateway beside others would have.
const ENDPOINTS: [Endpoint; 5] = [
    Endpoint {
        name: "chat",
        path: "/v1/chat/completions",
        healthy: "vllm-reasoning",
        delivered: 3,
        failing: "vllm-error-then-done",
    },
    Endpoint {
        name: "completions",
        path: "/v1/completions",
        healthy: "vllm-completions",
        delivered: 2,
        failing: "vllm-completions-error",
    },
    Endpoint {
        name: "responses",
        path: "/v1/responses",
        healthy: "vllm-responses",
        delivered: 9,
        failing: "openai-responses-failed",
    },
    Endpoint {
        name: "messages",
        path: "/anthropic/v1/messages",
        healthy: "vllm-messages",
        delivered: 3,
        failing: "vllm-messages-error",
    },
    Endpoint {
        name: "transcription",
        path: "/v1/audio/transcriptions",
        healthy: "openai-transcription",
        delivered: 2,
        failing: "vllm-error-then-done",
    },
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn stream(name: &str) -> String {
    std::fs::read_to_string(golden(&format!("{name}.sse"))).expect("a stream")
}

/// The first events of a stream, and what comes after them.
fn split(stream: &str, events: usize) -> (&str, &str) {
    let (at, _) = stream.match_indices("\n\n").nth(events - 1).expect("enough events");
    stream.split_at(at + 2)
}

fn everything(settings: Settings) -> Settings {
    settings.set("timeouts.idle", "1500ms").route(json!({
        "name": "all", "cluster": "c", "include_usage": false,
        "match": { "path": [
            "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/responses/*",
            "/v1/messages", "/anthropic/v1/messages", "/v1/messages/count_tokens", "/v1/rerank", "/score",
            "/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/speech",
        ] },
    }))
}

impl Endpoint {
    /// A request for a stream, in the way of the endpoint.
    fn request(&self) -> Request {
        let request = if self.name == "transcription" {
            Request::bare("POST", self.path)
                .header("Content-Type: multipart/form-data; boundary=b")
                .body("--b\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n--b--\r\n")
        } else {
            Request::post(self.path, "{\"model\":\"m\",\"stream\":true}")
        };
        request.header("X-Request-Id: req-1")
    }

    /// Compares what the client got with the golden file.
    async fn told(&self, case: &str, gateway: &Gateway, client: &Client) {
        let line = gateway.only_access().await;
        let body = String::from_utf8_lossy(client.body());
        let told = format!(
            "{body}--- end of the body\nstatus {} outcome {} error {} events {} first token {}\nusage {}\n",
            line["status"],
            line["outcome"],
            line["error"],
            line["events"],
            !line["first_token_ms"].is_null(),
            line["usage"],
        );
        let file = golden(&format!("told/{}-{case}.told", self.name));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &told).expect("writable");
        }
        let want = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(told, want, "{}: UPDATE_GOLDEN=1 accepts it", file.display());
        checks::at_rest(gateway).await;
    }
}

/// A healthy stream whose first events are with the client.
struct Begun {
    gateway: Gateway,
    client: Client,
    call: support::Call,
    /// The events that the engine has not sent yet.
    rest: String,
}

async fn begun(endpoint: &Endpoint) -> Begun {
    let (gateway, mut upstream) = one_engine(everything).await;
    let healthy = stream(endpoint.healthy);
    let (first, rest) = split(&healthy, endpoint.delivered);
    let mut client = gateway.send(&endpoint.request()).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(first).await;
    assert_eq!(client.head().await.status(), 200);
    client.until_body(first.as_bytes()).await;
    Begun { gateway, client, call, rest: rest.to_owned() }
}

#[tokio::test]
async fn a_healthy_stream_passes_as_it_is() {
    for endpoint in ENDPOINTS {
        let Begun { gateway, mut client, mut call, rest } = begun(&endpoint).await;
        call.chunk(rest).await;
        call.finish().await;
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), stream(endpoint.healthy).as_bytes());
        endpoint.told("healthy", &gateway, &client).await;
    }
}

#[tokio::test]
async fn a_cut_stream_ends_in_the_error_of_its_dialect() {
    for endpoint in ENDPOINTS {
        let Begun { gateway, mut client, mut call, rest } = begun(&endpoint).await;
        call.chunk(&rest[..20]).await;
        call.close();
        assert_eq!(client.end().await, End::Clean);
        endpoint.told("cut", &gateway, &client).await;
    }
}

/// A stream that only its connection ends is whole where the dialect says so: by its end marker, or why it stopped. Of an
/// endpoint that has neither nothing is known.
#[tokio::test]
async fn a_stream_that_ends_with_its_connection_is_whole_if_it_says_so() {
    for endpoint in ENDPOINTS {
        let healthy = stream(endpoint.healthy);
        let (first, _) = split(&healthy, endpoint.delivered);
        for (sent, is_cut) in [(&*healthy, false), (first, endpoint.name != "transcription")] {
            let (gateway, mut upstream) = one_engine(everything).await;
            let mut client = gateway.send(&endpoint.request()).await;
            let mut call = upstream.call().await;
            call.send(format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{sent}")).await;
            call.close();
            assert_eq!(client.head().await.status(), 200);
            assert_eq!(client.end().await, End::Clean);
            let line = gateway.only_access().await;
            let error =
                String::from_utf8_lossy(client.body()).strip_prefix(sent).expect("all of it").to_owned();
            let (outcome, marked) = if is_cut { ("upstream_error", true) } else { ("completed", false) };
            assert_eq!(line["outcome"], outcome, "{}: {line}", endpoint.name);
            assert_eq!(
                (error.contains("upstream_disconnected"), error.is_empty()),
                (marked, !marked),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_silent_stream_ends_in_the_error_of_its_dialect() {
    for endpoint in ENDPOINTS {
        let Begun { gateway, mut client, mut call, .. } = begun(&endpoint).await;
        call.gone().await;
        assert_eq!(client.end().await, End::Clean);
        endpoint.told("idle", &gateway, &client).await;
    }
}

#[tokio::test]
async fn an_engines_own_error_passes_and_is_counted() {
    for endpoint in ENDPOINTS {
        let (gateway, mut upstream) = one_engine(everything).await;
        let mut client = gateway.send(&endpoint.request()).await;
        let mut call = upstream.call().await;
        call.open().await;
        let failing = stream(endpoint.failing);
        call.chunk(&failing).await;
        call.finish().await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), failing.as_bytes());
        endpoint.told("error", &gateway, &client).await;
    }
}

/// A failure before the engine said a word is told in a stream that was begun early: there is no
/// response yet that `response.failed` could carry, so it names the request.
#[tokio::test]
async fn a_response_that_never_began_is_told_all_the_same() {
    let (gateway, mut upstream) =
        one_engine(|settings| everything(settings).set("stream.early_headers", "50ms")).await;
    let mut client = gateway.send(&ENDPOINTS[2].request()).await;
    let call = upstream.call().await;
    assert_eq!(client.head().await.status(), 200);
    call.reset();
    assert_eq!(client.end().await, End::Clean);
    let events = support::sse::parse(client.body());
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let data: Value = serde_json::from_str(&event.data).expect("JSON");
    assert_eq!((event.name.as_str(), &data["type"]), ("response.failed", &"response.failed".into()));
    assert_eq!((&data["sequence_number"], &data["response"]["id"]), (&0.into(), &"resp_req-1".into()));
    assert_eq!(data["response"]["model"], "m");
    assert!(data["response"]["created_at"].as_u64().is_some_and(|at| at > 1_700_000_000), "{data}");
    assert_eq!(data["response"]["error"]["code"], "upstream_disconnected");
}

/// Pings say that an engine is alive, not that it works: the idle clock goes on.
#[tokio::test]
async fn pings_pass_but_do_not_hide_a_stuck_engine() {
    let Begun { gateway, mut client, mut call, .. } = begun(&ENDPOINTS[3]).await;
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    within("the gateway gives the engine up", SOON, async {
        while call.try_send(support::wire::chunk(ping)).await.is_ok() {
            silence(ms(50)).await;
        }
    })
    .await;
    assert_eq!(client.end().await, End::Clean);
    let events = support::sse::parse(client.body());
    assert!(events.iter().filter(|event| event.name == "ping").count() > 1, "{events:?}");
    assert_eq!(events.last().map(|event| event.name.as_str()), Some("error"));
    assert_eq!(gateway.only_access().await["error"], "idle_timeout");
}

#[tokio::test]
async fn rejections_have_the_form_of_the_endpoint() {
    let (gateway, upstream) =
        one_engine(|settings| everything(settings).set("routes.0.match.model", "known")).await;
    for path in ["/v1/responses", "/v1/rerank", "/v1/audio/speech"] {
        let unknown = gateway.ask(&Request::post(path, "{\"model\":\"x\"}")).await;
        checks::rejected(&unknown, 404, "model_not_found");
        assert_eq!(unknown.head.get("request-id"), None, "{path}");
    }
    // The anthropic package reads `error.type`, `error.message`, `error.details.error_code` and `request-id`.
    for path in ["/v1/messages", "/v1/messages/count_tokens", "/no/such/prefix/v1/messages"] {
        let request = Request::post(path, "{\"model\":\"x\"}").header("X-Request-Id: req-1");
        let unknown = gateway.ask(&request).await;
        let (code, message) = if path.starts_with("/v1") {
            ("model_not_found", "the model `x` is not served here")
        } else {
            ("not_found", "there is no such path here")
        };
        assert_eq!((unknown.status(), unknown.head.get("request-id")), (404, Some("req-1")));
        let want = json!({
            "type": "error",
            "error": {
                "type": "not_found_error", "message": message, "code": code, "details": { "error_code": code },
            },
            "request_id": "req-1",
        });
        assert_eq!(unknown.json(), want);
    }
    assert_eq!(upstream.connections(), 0);
}

/// What whole answers cost is read wherever an endpoint tells it.
#[tokio::test]
async fn usage_of_whole_answers_is_read() {
    let numbers = "0.0156,".repeat(30_000);
    let long = format!(
        "{{\"object\":\"list\",\"data\":[{{\"embedding\":[{numbers}0]}}],\"usage\":{{\"prompt_tokens\":7,\"total_tokens\":7}}}}"
    );
    let cases = [
        ("/v1/embeddings", long.as_str(), json!({ "prompt": 7, "completion": null })),
        (
            "/v1/rerank",
            "{\"results\":[],\"usage\":{\"prompt_tokens\":56,\"total_tokens\":56}}",
            json!({ "prompt": 56 }),
        ),
        (
            "/score",
            "{\"data\":[],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9,\"completion_tokens\":0}}",
            json!({ "prompt": 9, "completion": 0 }),
        ),
        (
            "/v1/responses",
            "{\"object\":\"response\",\"error\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":3,\"output_tokens_details\":{\"reasoning_tokens\":2}}}",
            json!({ "prompt": 7, "completion": 3, "reasoning": 2 }),
        ),
        (
            "/v1/messages",
            "{\"type\":\"message\",\"usage\":{\"input_tokens\":7,\"output_tokens\":3,\"cache_read_input_tokens\":4}}",
            json!({ "prompt": 11, "completion": 3, "cached": 4 }),
        ),
    ];
    for (path, body, want) in cases {
        let (gateway, mut upstream) = one_engine(everything).await;
        let mut client = gateway.send(&Request::post(path, "{\"model\":\"m\"}")).await;
        upstream.call().await.answer(json_answer(body)).await;
        checks::same(&client.answer().await.body, body.as_bytes());
        let line = gateway.only_access().await;
        assert_eq!(line["usage"]["source"], "reported", "{line}");
        for (name, figure) in want.as_object().expect("an object") {
            assert_eq!(&line["usage"][name], figure, "{path}: {line}");
        }
    }
}

/// Uploads and spoken answers are bytes: routed by path, whatever they hold.
#[tokio::test]
async fn audio_passes_byte_for_byte() {
    let (gateway, mut upstream) = one_engine(everything).await;
    let mut sound: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    sound.extend_from_slice(b"{\"model\":\"x\",\"stream\":true}");
    let head = b"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n";
    let body = [&head[..], &sound, b"\r\n--b--\r\n"].concat();
    for path in ["/v1/audio/transcriptions", "/v1/audio/translations"] {
        let upload =
            Request::bare("POST", path).header("Content-Type: multipart/form-data; boundary=b").body(&body);
        for request in [upload.clone(), upload.chunked(10_000)] {
            let mut client = gateway.send(&request).await;
            let call = upstream.call().await;
            checks::same(&call.request.body, &body);
            let kind = call.request.head.get("content-type").map(str::to_owned);
            assert_eq!(kind.as_deref(), Some("multipart/form-data; boundary=b"));
            call.answer(json_answer("{\"text\":\"hi\"}")).await;
            assert_eq!(client.answer().await.text(), "{\"text\":\"hi\"}");
        }
    }
    let mut client =
        gateway.send(&Request::post("/v1/audio/speech", "{\"model\":\"m\",\"input\":\"hi\"}")).await;
    upstream.call().await.answer(answer("200 OK", &["Content-Type: audio/mpeg"], &sound)).await;
    let spoken = client.answer().await;
    assert_eq!(spoken.head.get("content-type"), Some("audio/mpeg"));
    checks::same(&spoken.body, &sound);
    assert!(gateway.all_access(5).await.iter().all(|line| line["outcome"] == "completed"));
}
