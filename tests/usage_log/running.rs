//! `continuous_usage`: what a stream has used is known with each event, and the client that did not ask sees none of it.

use serde_json::json;

use super::support::wire::{CHAT_PATH, DONE, Request, USAGE};
use super::support::{Gateway, Settings, Upstream, checks, one_engine};
use super::{UsageFile, figures};

fn running(settings: Settings) -> Settings {
    settings
        .set("clusters.c.profile", "vllm")
        .set("clusters.c.continuous_usage", true)
        .set("routes.0.include_usage", true)
}

/// An event with its usage, and how it reads without.
fn counted(n: u64) -> (String, String) {
    let event = |usage: &str| {
        format!(
            "data: {{\"id\":\"c1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"t{n}\"}}}}]{usage},\"x\":1}}\n\n"
        )
    };
    let usage =
        format!(",\"usage\":{{\"prompt_tokens\":7,\"total_tokens\":{},\"completion_tokens\":{n}}}", 7 + n);
    (event(&usage), event(""))
}

async fn ask(gateway: &Gateway, engine: &mut Upstream, options: &str) -> (String, String, String) {
    let request = format!("{{\"model\":\"m\",\"stream\":true{options},\"messages\":[]}}");
    let mut client = gateway.send(&Request::post(CHAT_PATH, request)).await;
    let mut call = engine.call().await;
    let asked = String::from_utf8(call.request.body.clone()).expect("UTF-8");
    call.open().await;
    let (with, without): (Vec<_>, Vec<_>) = (1..=3).map(counted).unzip();
    let (with, without) = (with.concat(), without.concat());
    // In pieces that split events.
    for piece in with.as_bytes().chunks(50) {
        call.chunk(piece).await;
    }
    call.chunk([USAGE, DONE].concat()).await;
    call.finish().await;
    let got = client.answer().await.text();
    let got = if got.starts_with(&with) {
        got.replacen(&with, "with ", 1)
    } else {
        got.replacen(&without, "without ", 1)
    };
    (asked, got, with)
}

#[tokio::test]
async fn running_usage_is_asked_for_and_shown_only_to_who_asked() {
    let (gateway, mut engine) = one_engine(running).await;
    let both = "{\"include_usage\":true,\"continuous_usage_stats\":true}";
    for (options, shown) in [
        (String::new(), format!("without {DONE}")),
        (",\"stream_options\":{\"include_usage\":true}".into(), format!("without {USAGE}{DONE}")),
        (format!(",\"stream_options\":{both}"), format!("with {USAGE}{DONE}")),
    ] {
        let (asked, got, _) = ask(&gateway, &mut engine, &options).await;
        let asked: serde_json::Value = serde_json::from_str(&asked).expect("JSON");
        let want = json!({ "include_usage": true, "continuous_usage_stats": true });
        assert_eq!(asked["stream_options"], want, "{options}");
        assert_eq!(got, shown, "{options}");
    }
    checks::at_rest(&gateway).await;
}

#[tokio::test]
async fn a_stream_that_is_left_is_known_to_the_token() {
    let file = UsageFile::new();
    let (gateway, mut engine) = one_engine(|settings| file.set(running(settings))).await;
    let plain = Request::post(CHAT_PATH, "{\"model\":\"m\",\"stream\":true,\"messages\":[]}");
    let mut client = gateway.send(&plain).await;
    let mut call = engine.call().await;
    call.open().await;
    let ((one, shown_one), (two, shown_two)) = (counted(3), counted(5));
    call.chunk(one + &two).await;
    client.until_body_holds((shown_one + &shown_two).as_bytes()).await;
    client.close();
    call.gone().await;
    // Two events and five tokens: an engine may put several into one.
    assert_eq!(figures(&file.wait_lines(1).await[0]), (Some(7), Some(5), "running"));
}
