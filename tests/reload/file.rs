//! The configuration changes while the gateway serves: what new requests get, what running ones keep, and
//! what is refused. Case H22, rows R1, R3, R13, R14, R16, R17, G6; backends that leave: reload/backends.

use std::process::Command;

use crate::support;
use crate::support::gateway::exit_code;
use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::{ANSWER, DONE, Request, event, json_answer};
use crate::support::{End, Gateway, Settings, Upstream, checks, streaming, times};
use serde_json::json;

/// A request that this engine is asked, and answers.
async fn served_by(gateway: &Gateway, engine: &mut Upstream) {
    let mut client = gateway.send(&Request::unary()).await;
    engine.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

async fn generation_is(gateway: &Gateway, generation: f64) {
    gateway.wait_metric("config_generation", &[], generation).await;
}

/// H22 i: an unrelated change touches no stream, and new requests follow it.
#[tokio::test]
async fn h22_a_stream_runs_on_through_an_unrelated_change() {
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    let settings = Settings::new(&[engine.addr]);
    let (client, mut call) = streaming(&gateway, &mut engine, &["1"]).await;
    assert_eq!(gateway.ask(&Request::bare("GET", "/new")).await.status(), 404);
    let fixed = json!({ "match": { "path": "/new" }, "respond": { "status": 200, "body": "new\n" } });
    assert_eq!(gateway.reload(settings.route(fixed)).await, 2);
    assert_eq!(gateway.ask(&Request::bare("GET", "/new")).await.text(), "new\n");
    call.chunk(event("2")).await;
    checks::ends_same(client, call, [event("1"), event("2")].concat().as_bytes()).await;
    let line = gateway.wait_access("the stream", |line| line["streaming"] == true).await;
    assert_eq!((&line["generation"], &line["outcome"]), (&1.into(), &"completed".into()), "{line}");
    assert_eq!(gateway.metric("config_last_reload_successful", &[]).await, 1.0);
    assert_eq!(gateway.reloads("applied").await, 1.0);
    gateway.wait_log("is in force as generation 2").await;
    gateway.wait_log("generation 2: + routes").await;
}

/// R1, G6: a hundred reloads under running streams, by signal and by POST, and not a byte is missing. In full a
/// thousand under 200 streams.
#[tokio::test]
async fn r1_streams_run_through_reloads() {
    let (reloads, count) = times((100_u32, 8), (1_000, 200));
    let patient = |settings: Settings| settings.set("timeouts", json!({ "idle": "25s", "total": "10m" }));
    let (gateway, mut engine) = support::one_engine(patient).await;
    let settings = patient(Settings::new(&[engine.addr]));
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(streaming(&gateway, &mut engine, &["begin"]).await);
    }
    let mut sent = event("begin");
    for round in 1..=reloads {
        let next = settings.clone().set("clusters.c.keepalive", format!("{}ms", 3000 + round));
        if round % 4 == 0 {
            gateway.rewrite(next);
            gateway.signal("HUP");
            generation_is(&gateway, f64::from(round) + 1.0).await;
        } else {
            assert_eq!(gateway.reload(next).await, u64::from(round) + 1);
        }
        let event = event(&format!("r{round}"));
        sent.push_str(&event);
        for (client, call) in &mut streams {
            call.chunk(&event).await;
            client.until_len(sent.len()).await;
        }
    }
    for (client, call) in streams {
        checks::ends_same(client, call, sent.as_bytes()).await;
    }
    let lines = gateway.all_access(count).await;
    assert!(lines.iter().all(|line| line["outcome"] == "completed" && line["generation"] == 1), "{lines:?}");
    assert_eq!(gateway.reloads("applied").await, f64::from(reloads));
    assert_eq!(gateway.reloads("failed").await, 0.0);
    checks::at_rest(&gateway).await;
}

/// R3: an exchange lives by one configuration: what the engine is sent is of the generation in its line.
#[tokio::test]
async fn r3_no_request_sees_two_generations() {
    let mut engine = Upstream::start().await;
    let settings = |generation: u64| {
        let route = json!({ "name": format!("g{generation}"), "match": { "path": "/v1/embeddings" }, "cluster": "c" });
        Settings::new(&[engine.addr])
            .set("clusters.c.headers", json!({ "set": { "x-generation": generation.to_string() } }))
            .route(route)
    };
    let gateway = Gateway::start(settings(1)).await;
    let all: Vec<Settings> = (2..=40).map(settings).collect();
    let asking = async {
        let mut asked = Vec::new();
        for _ in 0..150 {
            let mut client = gateway.send(&Request::post("/v1/embeddings", r#"{"model":"m"}"#)).await;
            let call = engine.call().await;
            asked.push(call.request.head.get("x-generation").expect("set").to_owned());
            call.answer(json_answer(ANSWER)).await;
            assert_eq!(client.answer().await.status(), 200);
        }
        asked
    };
    let reloading = async {
        for settings in all {
            gateway.reload(settings).await;
        }
    };
    let (asked, ()) = tokio::join!(asking, reloading);
    let lines = gateway.all_access(150).await;
    let generations: std::collections::HashSet<&String> = asked.iter().collect();
    assert!(generations.len() > 3, "the reloads were not under way: {generations:?}");
    for (line, sent) in lines.iter().zip(&asked) {
        assert_eq!(line["generation"].to_string(), *sent, "{line}");
        assert_eq!(line["route"], format!("g{sent}"), "{line}");
    }
}

/// R13: a storm of signals is served by few readings, and the last file is in force behind it.
#[tokio::test]
async fn r13_a_storm_of_signals_is_coalesced() {
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    let (client, call) = streaming(&gateway, &mut engine, &["1"]).await;
    gateway.rewrite(Settings::new(&[engine.addr]).set("clusters.c.keepalive", "3s"));
    let storm = format!("for i in $(seq 1000); do kill -HUP {}; done", gateway.pid());
    assert!(Command::new("sh").args(["-c", &storm]).status().expect("sh").success());
    generation_is(&gateway, 2.0).await;
    // A word behind the storm is answered, so nothing is queued up.
    assert_eq!(gateway.admin_post("/reload").await.json()["generation"], 2);
    assert_eq!(gateway.reloads("applied").await, 1.0);
    let read = gateway.reloads("unchanged").await;
    assert!(read < 900.0, "each signal was served by itself: {read}");
    checks::ends_same(client, call, event("1").as_bytes()).await;
}

/// R14: what is settled at the start is refused as a whole, with its name and line.
#[tokio::test]
async fn r14_a_change_under_server_is_refused_whole() {
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    let other = Upstream::start().await;
    let changed = Settings::new(&[other.addr]).set("server.threads", 3).set("log.format", "text");
    gateway.rewrite(changed);
    let answer = gateway.admin_post("/reload").await;
    assert_eq!(answer.status(), 422, "{}", answer.text());
    let problems = answer.json()["problems"].to_string();
    let file = gateway.file().display().to_string();
    assert!(
        problems.contains(&format!("{file}:1: server.threads: differs from what is running")),
        "{problems}"
    );
    assert!(problems.contains("log.format: differs"), "{problems}");
    gateway.wait_log("server.threads: differs from what is running").await;
    assert_eq!(gateway.metric("config_last_reload_successful", &[]).await, 0.0);
    served_by(&gateway, &mut engine).await;
    generation_is(&gateway, 1.0).await;
    assert_eq!(other.connections(), 0);
    assert_eq!(gateway.status().await["last_reload"]["result"], "refused");
}

/// R16: good, bad, good again; and a process that starts on the bad file does not.
#[tokio::test]
async fn r16_after_a_bad_file_a_good_one_is_enough() {
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    let good = Settings::new(&[engine.addr]).set("clusters.c.keepalive", "3s");
    gateway.rewrite_text("routes: [\n");
    assert_eq!(gateway.admin_post("/reload").await.status(), 422);
    served_by(&gateway, &mut engine).await;
    let file = gateway.file();
    assert_eq!(exit_code(&["run", "-c", file.to_str().expect("UTF-8")]), Some(64));
    assert_eq!(exit_code(&["check", "-c", file.to_str().expect("UTF-8")]), Some(64));
    let shown = gateway.admin_get("/config").await.json();
    assert_eq!(shown["clusters"]["c"]["profile"], "openai", "the running one is shown");
    assert_eq!(gateway.reload(good).await, 2);
    assert_eq!(gateway.metric("config_last_reload_successful", &[]).await, 1.0);
    served_by(&gateway, &mut engine).await;
}

/// R17: on its way out the gateway keeps what it has.
#[tokio::test]
async fn r17_a_reload_during_the_drain_is_ignored() {
    let drain = |settings: Settings| settings.set("server.shutdown.drain", "10m");
    let (mut gateway, mut engine) = support::one_engine(drain).await;
    let (client, call) = streaming(&gateway, &mut engine, &["1"]).await;
    gateway.terminate();
    let leaving = || async { gateway.admin_get("/readyz").await.status() == 503 };
    wait_until_async("it is leaving", SOON, leaving).await;
    gateway.rewrite(drain(Settings::new(&[engine.addr])).set("clusters.c.keepalive", "3s"));
    gateway.signal("HUP");
    gateway.wait_log("the gateway is on its way out, and the configuration stays as it is").await;
    assert_eq!(gateway.admin_post("/reload").await.status(), 503);
    generation_is(&gateway, 1.0).await;
    checks::ends_same(client, call, event("1").as_bytes()).await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
}

/// What says the same is no new generation, however it is written; the level of the log changes in place.
#[tokio::test]
async fn what_says_the_same_is_no_new_generation() {
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    let settings = Settings::new(&[engine.addr]);
    gateway.rewrite_text(format!("# a remark\n{}\n", gateway.text_of(settings.clone())));
    let answer = gateway.admin_post("/reload").await.json();
    assert_eq!((&answer["result"], &answer["generation"]), (&"unchanged".into(), &1.into()), "{answer}");
    assert_eq!(gateway.reload(settings.set("log.level", "debug")).await, 2);
    // A failure that follows another within the second is told at this level only.
    for _ in 0..2 {
        let mut client = gateway.send(&Request::unary()).await;
        engine.call().await.reset();
        assert_eq!(client.answer().await.status(), 502);
    }
    gateway.wait_log("\"level\":\"DEBUG\"").await;
}

/// TLS toward a backend that a reload brings is there with it.
#[tokio::test]
async fn a_reload_brings_a_backend_behind_tls() {
    let authority = support::certificates::Authority::new();
    let mut secure = Upstream::with_tls(&authority.vouches_for(&["127.0.0.1"])).await;
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    served_by(&gateway, &mut engine).await;
    let tls = Settings::new(&[secure.addr]).https(json!({ "ca": authority.file() }));
    gateway.reload(tls).await;
    served_by(&gateway, &mut secure).await;
    gateway.reload(Settings::new(&[engine.addr])).await;
    served_by(&gateway, &mut engine).await;
}

/// A stream outlives its route and its cluster.
#[tokio::test]
async fn a_whole_stream_on_a_generation_that_is_gone_ends_well() {
    let (gateway, mut engine) = support::one_engine(support::as_is).await;
    let (mut client, mut call) = streaming(&gateway, &mut engine, &["1"]).await;
    // Its cluster and its route are gone, and a small answer of the gateway's own stands there instead.
    let gone =
        json!([{ "match": { "path": "/v1/chat/completions" }, "respond": { "status": 200, "body": "x" } }]);
    let other = Settings::new(&[engine.addr]).set("routes", gone);
    gateway.reload(other).await;
    assert_eq!(gateway.ask(&Request::chat()).await.text(), "x");
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("1"), DONE].concat().as_bytes());
}

crate::over_h2! {
    h22_a_stream_runs_on_through_an_unrelated_change,
    r1_streams_run_through_reloads,
}
