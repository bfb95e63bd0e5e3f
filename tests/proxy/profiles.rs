//! The particulars of vendors: what is asked of them, and what their streams are taken for.

use crate::support;
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{CHAT_PATH, DONE, FINISH, Request, USAGE, answer, event};
use crate::support::{End, Gateway, Settings, Upstream, checks, one_engine, two_engines};
use serde_json::{Value, json};

const PROFILES: [&str; 5] = ["vllm", "deepseek", "sglang", "llamacpp", "openai"];
/// A client that says nothing of usage.
const PLAIN: &str = "{\"model\":\"m\", \"stream\":true,  \"messages\":[]}";

fn profile(name: &'static str) -> impl FnOnce(Settings) -> Settings {
    move |settings| settings.set("clusters.c.profile", name).set("routes.0.include_usage", true)
}

fn golden(name: &str) -> String {
    let file = format!("{}/tests/golden/{name}.sse", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(file).expect("a stream")
}

/// Sends `request`, answers with `stream`, and gives what the engine was asked and what the client got.
async fn streamed(
    gateway: &Gateway,
    upstream: &mut Upstream,
    request: &Request,
    stream: &str,
) -> (Vec<u8>, String) {
    let mut client = gateway.send(request).await;
    let mut call = upstream.call().await;
    let asked = call.request.body.clone();
    call.open().await;
    call.chunk(stream).await;
    call.finish().await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    (asked, String::from_utf8_lossy(client.body()).into_owned())
}

/// Usage is asked for where an engine would not tell it, and only there.
#[tokio::test]
async fn usage_is_asked_of_those_who_would_not_tell_it() {
    for name in PROFILES {
        let (gateway, mut upstream) = one_engine(profile(name)).await;
        let request = Request::post(CHAT_PATH, PLAIN);
        let (asked, got) =
            streamed(&gateway, &mut upstream, &request, &[&event("a"), FINISH, DONE].concat()).await;
        let patched = PLAIN.replacen('{', "{\"stream_options\":{\"include_usage\":true},", 1);
        let want = if name == "deepseek" { PLAIN } else { &patched };
        assert_eq!(String::from_utf8_lossy(&asked), want, "{name}");
        assert_eq!(got, [&event("a"), FINISH, DONE].concat(), "{name}");
    }
}

/// The frame that only we asked for is cut out, and nothing that looks a little like it.
#[tokio::test]
async fn nothing_but_the_usage_frame_is_cut() {
    let (gateway, mut upstream) = one_engine(profile("vllm")).await;
    let filter = "data: {\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n";
    let running = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n";
    let with_error = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7},\"error\":{\"code\":500}}\n\n";
    let kept = [filter, ": note\n\n", &event("a"), running, FINISH, with_error].concat();
    let request = Request::post(CHAT_PATH, PLAIN);
    let (_, got) = streamed(&gateway, &mut upstream, &request, &[&kept, USAGE, DONE].concat()).await;
    assert_eq!(got, [&kept, DONE].concat());
}

/// DeepSeek's usage rides on the last chunk, unasked; an extra frame of an older version was not asked for
/// by us either, so it stays.
#[tokio::test]
async fn deepseek_tells_usage_unasked_and_loses_nothing() {
    for stream in [golden("deepseek-keep-alive"), [&event("a"), FINISH, USAGE, DONE].concat()] {
        let (gateway, mut upstream) = one_engine(profile("deepseek")).await;
        let request = Request::post(CHAT_PATH, PLAIN);
        let (_, got) = streamed(&gateway, &mut upstream, &request, &stream).await;
        checks::same(got.as_bytes(), stream.as_bytes());
        let line = gateway.only_access().await;
        assert_eq!((&line["usage"]["prompt"], &line["usage"]["source"]), (&7.into(), &"reported".into()));
    }
}

/// Comments hold a queued stream open: they reach the client as they come, but are no data.
#[tokio::test]
async fn keep_alive_comments_pass_and_are_no_data() {
    let (gateway, mut upstream) =
        one_engine(|settings| profile("deepseek")(settings).set("timeouts.first_event", "1500ms")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    let comment = ": keep-alive\n\n";
    call.chunk(comment).await;
    client.until_body(comment.as_bytes()).await;
    within("the gateway gives the engine up", SOON, async {
        while call.try_send(support::wire::chunk(comment)).await.is_ok() {
            silence(ms(50)).await;
        }
    })
    .await;
    assert_eq!(client.end().await, End::Clean);
    let line = gateway.only_access().await;
    assert_eq!((&line["error"], &line["events"]), (&"first_event_timeout".into(), &0.into()), "{line}");
}

/// Blank lines hold a queued whole answer open: they pass at once, and the JSON behind them is read.
#[tokio::test]
async fn blank_lines_before_an_answer_pass_at_once() {
    let (gateway, mut upstream) = one_engine(profile("deepseek")).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 200);
    call.chunk("\n").await;
    client.until_body(b"\n").await;
    call.chunk("\n\n").await;
    client.until_body(b"\n\n\n").await;
    call.chunk(support::wire::ANSWER).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), format!("\n\n\n{}", support::wire::ANSWER).as_bytes());
    checks::usage(&gateway).await;
}

/// What each engine says when it fails in the middle is a failure, whatever end marker follows and
/// whichever profile is set.
#[tokio::test]
async fn streams_are_taken_for_what_they_are() {
    for (stream, outcome) in [
        ("vllm-error-then-done", "upstream_error"),
        ("vllm-old-error", "upstream_error"),
        ("sglang-error", "upstream_error"),
        ("llamacpp-old-error", "upstream_error"),
        ("deepseek-out-of-resources", "truncated"),
        ("sglang-abort", "truncated"),
        ("vllm-reasoning", "completed"),
        ("deepseek-reasoning-content", "completed"),
        ("sglang-chat", "completed"),
        ("llamacpp-usage-own-frame", "completed"),
        ("vllm-missing-done", "completed"),
    ] {
        let vendor = stream.split('-').next().expect("a vendor");
        let own = PROFILES.into_iter().find(|name| *name == vendor).expect("a profile");
        for name in [own, "openai"] {
            let (gateway, mut upstream) = one_engine(profile(name)).await;
            let sent = golden(stream);
            let (_, got) = streamed(&gateway, &mut upstream, &Request::chat(), &sent).await;
            checks::same(got.as_bytes(), sent.as_bytes());
            let line = gateway.only_access().await;
            assert_eq!(line["outcome"], outcome, "{stream} as {name}: {line}");
            assert!(!line["first_token_ms"].is_null(), "{stream} as {name}: {line}");
            gateway.wait_metric("requests_total", &[("outcome", outcome)], 1.0).await;
        }
    }
}

/// An empty account (402) and every other client error but 429 are nothing that another node could mend.
#[tokio::test]
async fn client_errors_are_never_retried() {
    let (gateway, mut one, mut two) = two_engines(profile("deepseek")).await;
    let statuses = [
        "400 Bad Request",
        "401 Unauthorized",
        "402 Payment Required",
        "403 Forbidden",
        "404 Not Found",
        "409 Conflict",
        "413 Too Large",
        "422 Unprocessable",
    ];
    let body = json!({ "error": { "message": "no", "type": "unknown_error", "param": null, "code": "x" } });
    for status in statuses {
        let mut client = gateway.send(&Request::chat()).await;
        let (call, other) = support::upstream::either(&mut one, &mut two).await;
        call.answer(answer(status, &["Content-Type: application/json"], body.to_string())).await;
        let got = client.answer().await;
        assert!(status.starts_with(&got.status().to_string()), "{status}: {}", got.status());
        assert_eq!(got.json(), body);
        other.assert_not_asked();
    }
    let lines = gateway.all_access(statuses.len()).await;
    assert!(lines.iter().all(|line: &Value| line["attempts"] == 1 && line["outcome"] == "completed"));
    assert_eq!(gateway.metric("retries_total", &[]).await, 0.0);
}
