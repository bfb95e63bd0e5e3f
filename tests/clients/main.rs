//! Client packages as people use them, through the gateway: each sees answers, tool calls and usage, is
//! heard when it cancels, and can read an error before and during a stream.
//!
//! Chat and completions come from a simulated engine, Responses and Messages from an engine that replays
//! recorded streams. The packages are installed below `target/`, in versions that are pinned here. Where
//! that is not possible (no interpreter, no network) a test notes that it was not run, which
//! `scripts/test.sh` counts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod install;
mod replay;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use streamgate::sim;
use support::wait::{SOON, wait_until};
use support::{Gateway, Settings, checks};

use install::Installed;
use replay::Replay;

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_package_for_python() {
    check("the_openai_package_for_python", install::python().await, "openai_cases.py", 15, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_anthropic_package_for_python() {
    check("the_anthropic_package_for_python", install::python().await, "anthropic_cases.py", 8, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain_for_python() {
    check("langchain_for_python", install::python().await, "langchain_cases.py", 9, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_package_for_node() {
    check("the_openai_package_for_node", install::node().await, "openai_cases.mjs", 10, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ai_sdk_for_node() {
    check("the_ai_sdk_for_node", install::node().await, "ai_cases.mjs", 11, 1).await;
}

/// Runs a script of cases, which must be so many, and of which so many cancel a replayed stream.
async fn check(test: &str, installed: Result<Installed, String>, script: &str, cases: usize, cancels: usize) {
    let installed = match installed {
        Ok(installed) => installed,
        Err(why) => return support::not_run(test, &why),
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    let (first_event, inter_token) = (Duration::from_millis(20), Duration::from_millis(4));
    let settings = sim::Settings { listen, first_event, inter_token, ..sim::Settings::default() };
    let engine = sim::Engine::bind(settings).await.unwrap();
    let engine_addr = engine.local_addr().unwrap();
    tokio::spawn(engine.run(std::future::pending()));
    let replay = Replay::start().await;
    let gateway = Gateway::start(
        Settings::new(&[engine_addr])
            .set("routes.0.models", json!(["sim-model"]))
            .set("routes.0.match.model", "sim*")
            .set("routes.0.include_usage", true)
            .set("timeouts.idle", "2s")
            // Each package meets the gateway's comments where an engine is silent.
            .set("stream.heartbeat", "200ms")
            .set("clusters.replay", json!({
                "profile": "vllm", "backends": [{ "name": "r", "url": format!("http://{}", replay.addr) }],
            }))
            .route(json!({
                "name": "replay", "cluster": "replay",
                "match": {
                    "path": ["/v1/responses", "/v1/messages", "/v1/messages/count_tokens"], "model": "*-*",
                },
            })),
    )
    .await;
    let (url, engine_url) = (format!("http://{}", gateway.addr), format!("http://{engine_addr}"));
    let mut run = Command::new(&installed.program);
    run.arg(installed.scripts.join(script)).args([url, engine_url]);
    let output =
        tokio::task::spawn_blocking(move || run.stdin(Stdio::null()).output().unwrap()).await.unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(report.matches("ok: ").count(), cases, "{report}");
    wait_until("the engine sees each cancel", SOON, || replay.cancelled() == cancels).await;
    assert!(gateway.metric("heartbeats_total", &[]).await > 0.0, "each package met a comment");
    checks::at_rest(&gateway).await;
}

/// A folder of this crate.
fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}
