//! The metrics as a whole: their names and labels, what documents them, and what a scrape costs.

use std::collections::BTreeSet;

use crate::support;
use crate::support::metrics::value;
use crate::support::sockets::Refusing;
use crate::support::tls::{Pair, h2_client};
use crate::support::wire::{ANSWER, DONE, FINISH, Request, answer, event, json_answer};
use crate::support::{Client, Engine, Gateway, Settings, as_is, one_engine};
use serde_json::{Value, json};

/// Documented, and not told by the gateway below: each needs a neighbour or an attack that other tests are about.
const ELSEWHERE: [&str; 5] = [
    // tests/faults_client/h2.rs
    "streamgate_h2_goaways_total",
    // tests/keys/limits_shared.rs
    "streamgate_limit_store_total",
    "streamgate_limit_store_up",
    // tests/faults_backend/status.rs: only where a pooled connection happens to be dead.
    "streamgate_resends_total",
    // tests/telemetry/traces.rs
    "streamgate_trace_spans",
];

/// The names in the tables of the chapter on metrics.
fn documented() -> BTreeSet<String> {
    let text = include_str!("../../docs/operations.md");
    let (_, chapter) = text.split_once("\n## Metrics\n").expect("the chapter");
    let (chapter, _) = chapter.split_once("\n## ").expect("the next chapter");
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" |").next());
    let names = cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`'));
    names.map(|name| if is_foreign(name) { name.to_owned() } else { format!("streamgate_{name}") }).collect()
}

fn is_foreign(name: &str) -> bool {
    name.starts_with("gen_ai_") || name.starts_with("process_")
}

/// The names in a scrape, each of which has a help text, a type, and all its series in one place.
fn told(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut helped = None;
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(help.ends_with('.') && help.len() > 10, "{line}");
            helped = Some(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(helped.take().as_deref(), Some(name), "a type follows its help");
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            let has_unit = ["_seconds", "_tokens_per_second"].iter().any(|unit| name.ends_with(unit));
            assert!(kind != "histogram" || has_unit, "{name} has no unit");
            current = name.to_owned();
        } else {
            assert!(line.starts_with(&current), "{line} under {current}");
        }
    }
    names
}

/// Everything that can be counted in front of two engines, of which one is down: TLS, keys with limits, sessions, a
/// slot to wait for, heartbeats, checks, retries up to the end of their budget.
fn busy(engine: &Engine, dead: &[Refusing; 2], pair: &Pair) -> Settings {
    let down = |n: usize| json!({ "name": format!("down{n}"), "url": format!("http://{}", dead[n].addr()) });
    let tight = json!({ "profile": "openai", "backends": [down(0), down(1)], "scrape": null,
        "health": support::settings::unwatched(), "retry": { "budget": "0%", "floor": "1/h" } });
    let checked = json!({ "profile": "openai", "scrape": null,
        "backends": [{ "name": "u1", "url": format!("http://{}", engine.addr) }],
        "health": { "active": { "path": "/health", "every": "100ms" } } });
    Settings::new(&[engine.addr, dead[0].addr()])
        .set("server.listen.0.tls", json!({ "certificates": [pair.named()] }))
        .keys(&[("team-a", "k1")])
        .set("keys.0.limits", json!({ "tokens": "1000000/h" }))
        .set("stream.heartbeat", "50ms")
        .set("clusters.c.balance", Value::Null)
        .set("clusters.c.affinity", json!({ "by": ["session"] }))
        .set("clusters.c.backends.0.max_inflight", 1)
        .set("clusters.c.health.passive.consecutive", 1)
        .set("clusters.tight", tight)
        .set("routes.1.cluster", "tight")
        .set("clusters.checked", checked)
        .route(json!({ "name": "checked", "match": { "path": "/v1/responses" }, "cluster": "checked" }))
}

fn chat(tokens: usize, pace: &str) -> Request {
    Request::chat().lines(&[
        "X-Session-Id: s1",
        &format!("x-sim-tokens: {tokens}"),
        &format!("x-sim-inter-token: {pace}"),
    ])
}

/// Has everything counted that ends by itself.
async fn work(first: &mut Client) {
    // The second finds the slot of the first taken and the other backend down, so that it waits; heartbeats come while
    // tokens do not.
    let mut both = [first.sibling(), first.sibling()];
    for client in &mut both {
        client.send(chat(3, "200ms").bytes()).await;
    }
    for client in &mut both {
        assert_eq!(client.answer().await.status(), 200);
    }
    // The first is tried twice for nothing, the second of the floor, the third has nothing left.
    for _ in 0..3 {
        let mut client = first.sibling();
        client.send(Request::post("/v1/completions", "{\"model\":\"m\",\"prompt\":\"a\"}").bytes()).await;
        assert_eq!(client.answer().await.status(), 502);
    }
}

/// Every name of a busy gateway is in the table of the documents, and every name of the table is told.
#[tokio::test]
async fn every_name_is_documented_and_every_documented_name_is_told() {
    let (engine, dir) = (Engine::start().await, tempfile::tempdir().expect("temporary directory"));
    let dead = [Refusing::start(), Refusing::start()];
    let gateway = Gateway::start(busy(&engine, &dead, &Pair::make(dir.path(), &["localhost"]))).await;
    let mut first = h2_client(gateway.addr).await;
    work(&mut first).await;
    let mut leaving = first.sibling();
    leaving.send(chat(100, "50ms").bytes()).await;
    assert_eq!(leaving.head().await.status(), 200);
    leaving.until_len(1).await;
    leaving.close();
    gateway.wait_metric("cancels_total", &[("phase", "stream")], 1.0).await;
    for counted in ["retry_budget_exhausted_total", "ejections_total", "health_checks_total"] {
        gateway.wait_metric_where(counted, counted, &[], |times| times >= 1.0).await;
    }

    let (mut told, mut documented) = (told(&gateway.admin_get("/metrics").await.text()), documented());
    for name in ELSEWHERE {
        assert!(documented.remove(name), "{name} is not documented");
        told.remove(name);
    }
    let unknown: Vec<_> = told.difference(&documented).collect();
    assert!(unknown.is_empty(), "not in docs/operations.md: {unknown:?}");
    let missing: Vec<_> = documented.difference(&told).collect();
    assert!(missing.is_empty(), "only in docs/operations.md: {missing:?}");
}

/// What the conventions count of one exchange; the three histograms in the order of the documents.
fn operations(text: &str, labels: &[(&str, &str)]) -> [f64; 3] {
    ["request_duration", "time_to_first_token", "time_per_output_token"]
        .map(|name| value(text, &format!("gen_ai_server_{name}_seconds_count"), labels))
}

#[tokio::test]
async fn the_names_of_the_conventions_have_labels_of_the_configuration_only() {
    let named = |settings: Settings| settings.set("routes.0.models", json!(["m"]));
    let (gateway, mut engine) = one_engine(named).await;
    let (mut client, mut call) = support::open_stream(&gateway, &mut engine).await;
    // Two arrivals: those that come together have no pace.
    call.chunk(event("1")).await;
    client.until_body(event("1").as_bytes()).await;
    call.chunk([&event("2"), FINISH, DONE].concat()).await;
    call.finish().await;
    client.end().await;
    for (path, body, reply) in [
        ("/v1/chat/completions", "{\"model\":\"a client's\",\"messages\":[]}", json_answer(ANSWER)),
        ("/v1/embeddings", "{\"model\":\"m\",\"input\":\"a\"}", json_answer("{\"data\":[]}")),
        ("/v1/chat/completions", "{\"model\":\"m\",\"messages\":[]}", answer("422 No", &[], "{}")),
        ("/v1/chat/completions", "{\"model\":\"m\",\"messages\":[]}", answer("500 No", &[], "{}")),
    ] {
        let mut client = gateway.send(&Request::post(path, body)).await;
        engine.call().await.answer(reply).await;
        client.answer().await;
    }
    gateway.all_access(5).await;
    let text = gateway.admin_get("/metrics").await.text();
    let of = |operation, model, error| {
        operations(
            &text,
            &[
                ("gen_ai_operation_name", operation),
                ("gen_ai_provider_name", "openai"),
                ("gen_ai_request_model", model),
                ("error_type", error),
            ],
        )
    };
    let whole = [("gen_ai_request_model", "m"), ("gen_ai_operation_name", "chat")];
    assert_eq!(operations(&text, &whole), [3.0, 1.0, 1.0], "the stream, and two that failed: {text}");
    assert_eq!(of("chat", "m", "")[0], 1.0);
    assert_eq!(of("chat", "m", "upstream_refused")[0], 1.0);
    assert_eq!(of("chat", "m", "upstream_error")[0], 1.0);
    assert_eq!(of("chat", "other", "")[0], 1.0);
    // The second route names no model at all.
    assert_eq!(of("embeddings", "other", "")[0], 1.0);
    assert!(!text.contains("a client's"), "{text}");
}

#[tokio::test]
async fn the_pace_of_a_stream_is_told_and_what_an_engine_is_spared_by_one_who_leaves() {
    let (gateway, mut engine) = one_engine(as_is).await;
    let (mut client, mut call) = support::open_stream(&gateway, &mut engine).await;
    let mut sent = String::new();
    for n in 0..5 {
        call.chunk(event(&n.to_string())).await;
        sent += &event(&n.to_string());
        client.until_body(sent.as_bytes()).await;
    }
    call.chunk([FINISH, DONE].concat()).await;
    call.finish().await;
    client.end().await;
    gateway.wait_metric("stream_tokens_per_second_count", &[("route", "chat")], 1.0).await;
    let pace = gateway.metric("stream_tokens_per_second_sum", &[]).await;

    let (mut client, mut call) = support::open_stream(&gateway, &mut engine).await;
    call.chunk(event("1")).await;
    client.until_body(event("1").as_bytes()).await;
    client.close();
    call.gone().await;
    gateway.wait_metric("tokens_saved_total", &[("route", "chat")], 4.0).await;
    let seconds = gateway.metric("engine_seconds_saved_total", &[("route", "chat")]).await;
    assert!((seconds * pace - 4.0).abs() < 1e-6, "{seconds} s at {pace} a second");
    assert_eq!(gateway.metric("stream_tokens_per_second_count", &[]).await, 1.0, "one token has no pace");
}
