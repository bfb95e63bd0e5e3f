//! The usage log against the engine's own counters, over exchanges of every kind and with aborts in every phase.

use std::collections::HashMap;

use futures::stream::{self, StreamExt};
use serde_json::Value;

use super::support::engine::TOKENS;
use super::support::wire::{CHAT_PATH, Request};
use super::support::{Engine, Gateway, Settings, checks, times};
use super::{UsageFile, figures};

/// Exchanges at the same time.
const AT_ONCE: usize = 48;
/// Tokens that an engine writes at once.
const STEP: u64 = 1;
/// So slow that what is generated between a client's leaving and the engine's noticing is a step at most, but for a
/// stalled machine.
const PACE: &str = "\"sim\":{\"inter-token\":\"30ms\"}";

/// One exchange; what it does depends on its number.
async fn exchange(gateway: &Gateway, number: usize) {
    let content = "x".repeat(number % 97);
    let chat = |more: &str| {
        let body = format!("{{\"model\":\"m\",\"messages\":[\"{content}\"],\"max_tokens\":12,{PACE}{more}}}");
        Request::post(CHAT_PATH, body)
    };
    let streamed = chat(",\"stream\":true");
    let asking = chat(",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    match number % 9 {
        0 | 1 => drop(gateway.ask(&streamed).await),
        2 => drop(gateway.ask(&asking).await),
        3 => drop(gateway.ask(&chat("")).await),
        4 => {
            let body = format!("{{\"model\":\"m\",\"input\":[\"{content}\",\"b\"]}}");
            assert_eq!(gateway.ask(&Request::post("/v1/embeddings", body)).await.status(), 200);
        }
        // In the stream, after another number of its tokens each time.
        5 => {
            let mut client = gateway.send(&streamed).await;
            client.until_body_holds(format!("tok{}#", number / 9 % 11).as_bytes()).await;
            client.close();
        }
        // In the prefill, in an answer that is no stream, in the upload.
        6 => gateway.send(&streamed).await.close(),
        7 => gateway.send(&chat("")).await.reset(),
        _ => {
            let bytes = streamed.bytes();
            let mut client = gateway.client().await;
            client.send(&bytes[..bytes.len() - 5]).await;
            client.close();
        }
    }
}

#[tokio::test]
async fn the_usage_log_adds_up_against_the_engines_counters() {
    let (file, engine) = (UsageFile::new(), Engine::start().await);
    let settings = file
        .set(Settings::new(&[engine.addr]))
        .set("clusters.c.profile", "vllm")
        .set("clusters.c.continuous_usage", true)
        .set("routes.0.include_usage", true)
        .set("log.usage_rotate.size", "1GiB");
    let gateway = Gateway::start(settings).await;
    let count = times(600, 10_000);
    stream::iter(0..count).for_each_concurrent(AT_ONCE, |number| exchange(&gateway, number)).await;
    checks::at_rest(&gateway).await;
    gateway.all_access(count).await;
    engine.wait_count("running", 0).await;
    let stats = engine.stats().await;
    let aborts: HashMap<&str, u64> = stats["aborts"]
        .as_array()
        .expect("aborts")
        .iter()
        .filter_map(|abort| Some((abort["request_id"].as_str()?, abort["tokens"].as_u64()?)))
        .collect();
    let lines = file.lines();
    let (mut prompts, mut guessed_prompts, mut exact, mut cut, mut left, mut late) = (0, 0, 0, 0, 0, 0);
    for line in &lines {
        let (prompt, completion, source) = figures(line);
        let (prompt, completion) = (prompt.expect("a prompt"), completion.expect("a completion"));
        let generated = line["request_id"].as_str().and_then(|id| aborts.get(id));
        match (source, generated) {
            ("reported", None) => {
                (prompts, exact) = (prompts + prompt, exact + completion);
            }
            // It had all before its client left.
            ("reported", Some(_)) => {
                (prompts, cut) = (prompts + prompt, cut + completion);
            }
            ("running", Some(&generated)) => {
                assert!(completion <= generated, "{generated} tokens generated: {line}");
                late += usize::from(generated > completion + STEP);
                (prompts, cut, left) = (prompts + prompt, cut + generated, left + 1);
            }
            // Its client left when the engine had just written its last.
            ("running", None) => {
                assert!(completion <= TOKENS as u64, "{line}");
                (prompts, cut, left) = (prompts + prompt, cut + TOKENS as u64, left + 1);
            }
            ("estimated", generated) => {
                guessed_prompts += prompt;
                // A whole answer is billed as asked for, since nothing of it was seen.
                let generated = generated.copied().unwrap_or_default();
                late += usize::from(generated > completion.max(STEP));
                (cut, left) = (cut + generated, left + usize::from(generated > 0));
            }
            other => panic!("{other:?}: {line}"),
        }
    }
    let total = |name: &str| stats[name].as_u64().expect(name);
    assert!(left > 0 && exact > 0 && lines.len() > count / 2, "{left} left, {} lines", lines.len());
    assert!(late * 4 <= left, "{late} of {left} are further from the truth than a step");
    assert_eq!(exact + cut, total("tokens"), "every token is in a line");
    assert!(prompts <= total("prompt_tokens") && total("prompt_tokens") <= prompts + guessed_prompts);
    assert_reported(&lines, &gateway, exact).await;
}

/// The metrics say the same as the lines.
async fn assert_reported(lines: &[Value], gateway: &Gateway, exact: u64) {
    let labels = [("kind", "completion"), ("source", "reported")];
    let told = gateway.metric("tokens_total", &labels).await;
    let sum: u64 =
        lines.iter().filter_map(|line| Some(figures(line)).filter(|line| line.2 == "reported")?.1).sum();
    assert_eq!(told, sum as f64);
    assert!(sum >= exact);
}
