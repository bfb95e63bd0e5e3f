//! Gateways of one's own: the example that redacts, as a process, and the other hooks in this one.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::upstream::either;
use crate::support::wait::SOON;
use crate::support::wire::{ANSWER, CHAT, CHAT_PATH, DONE, FINISH, Request, USAGE, event, json_answer};
use crate::support::{Client, End, Gateway, Settings, Upstream, as_is, checks, open_stream, sse};
use streamgate::config::{Config, Environment};
use streamgate::embed::Running;
use streamgate::hooks::{Admit, Candidate, ChooseBackend, Facts};
use streamgate::rejection::{Class, Refusal};

const SECRET: &str = "sk-abcdEFGH0123_-ab";

/// The example. `cargo test` builds it beside this binary.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("this binary");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps");
    let example: PathBuf = profile.join("examples/redact");
    assert!(example.is_file(), "{} is missing: cargo build --example redact", example.display());
    example
}

/// The example in front of one engine.
async fn redacting(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream) {
    let upstream = Upstream::start().await;
    let settings = adjust(Settings::new(&[upstream.addr]));
    (Gateway::start_by(Command::new(example()), settings).await, upstream)
}

#[tokio::test]
async fn a_pattern_is_gone_wherever_it_is_split_and_all_else_is_exact() {
    let (gateway, mut upstream) = redacting(as_is).await;
    for split in 0..=SECRET.len() {
        let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
        let (one, two) = SECRET.split_at(split);
        call.chunk([&event("hello"), ": a comment\n"].concat()).await;
        client.until_body([&event("hello"), ": a comment\n"].concat().as_bytes()).await;
        call.chunk(event(&format!("key {one}"))).await;
        // From its 16th letter on it is one; what is shorter may yet become one.
        let known = if split >= 19 { "key [redacted]" } else { "key " };
        let seen = [event("hello"), ": a comment\n".into(), event(known)].concat();
        client.until_body(seen.as_bytes()).await;
        call.chunk([&event(&format!("{two}; task-force.")), FINISH, USAGE, DONE].concat()).await;
        let rest = if split >= 19 { "; task-force." } else { "[redacted]; task-force." };
        let sent = [&seen, &*event(rest), FINISH, USAGE, DONE].concat();
        checks::ends_same(client, call, sent.as_bytes()).await;
    }
    let lines = gateway.all_access(SECRET.len() + 1).await;
    assert!(lines.iter().all(|line| line["usage"]["completion"] == 3 && line["events"] == 6), "{lines:?}");
}

#[tokio::test]
async fn what_was_held_back_for_nothing_comes_before_the_end() {
    let (gateway, mut upstream) = redacting(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(event("I ask-")).await;
    client.until_body(event("I a").as_bytes()).await;
    call.chunk([FINISH, DONE].concat()).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    let body = String::from_utf8(client.take_body()).expect("text");
    assert!(body.ends_with(&[FINISH, DONE].concat()), "{body}");
    let held: serde_json::Value = serde_json::from_str(&sse::data(body.as_bytes())[1]).expect("a chunk");
    assert_eq!(held["choices"][0]["delta"]["content"], "sk-", "{body}");
    assert_eq!(held["id"], "c1");
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_redacted_too() {
    let (gateway, mut upstream) = redacting(as_is).await;
    for (sent, got) in
        [(ANSWER.replace("\"x\"", &format!("\"{SECRET}.\"")), "\"[redacted].\""), (ANSWER.into(), "\"x\"")]
    {
        let mut client = gateway.send(&Request::unary()).await;
        upstream.call().await.answer(json_answer(&sent)).await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.end), (200, End::Clean));
        assert_eq!(String::from_utf8_lossy(&answer.body), ANSWER.replace("\"x\"", got));
    }
    let line = &gateway.all_access(2).await[0];
    assert_eq!(line["usage"]["completion"], 3, "{line}");
}

fn delta(delta: &str) -> String {
    format!("data: {{\"id\":\"c1\",\"choices\":[{{\"index\":0,\"delta\":{{{delta}}}}}]}}\n\n")
}

fn arguments(call: u64, piece: &str) -> String {
    format!("{{\"index\":{call},\"function\":{{\"arguments\":\"{piece}\"}}}}")
}

/// A text goes on behind others of its choice: what is held back of it stays so until it ends.
#[tokio::test]
async fn a_text_that_goes_on_behind_others_is_one_text() {
    let (gateway, mut upstream) = redacting(as_is).await;
    let (one, two) = SECRET.split_at(8);
    let content = [format!("\"content\":\"{one}\""), format!("\"content\":\"{two}\"")];
    let tools = [0, 1, 0];
    let between =
        ["", "\"role\":\"assistant\"", "\"content\":null", "\"reasoning_content\":\"hm\",\"content\":null"];
    let mut streams: Vec<[String; 3]> =
        between.iter().map(|between| [delta(&content[0]), delta(between), delta(&content[1])]).collect();
    let pieces = [one, "{}", two];
    let call = |n: usize| delta(&format!("\"tool_calls\":[{}]", arguments(tools[n], pieces[n])));
    streams.push([call(0), call(1), call(2)]);
    for stream in streams {
        let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
        call.chunk([&stream.concat(), FINISH, USAGE, DONE].concat()).await;
        call.finish().await;
        assert_eq!(client.end().await, End::Clean);
        let body = String::from_utf8(client.take_body()).expect("text");
        assert!(body.contains("[redacted]") && body.ends_with(&[FINISH, USAGE, DONE].concat()), "{body}");
        assert!(!body.contains(&one[3..]) && !body.contains(&two[2..]), "{body}");
    }
}

/// Texts where it does not read, or a key that is not written as one.
#[tokio::test]
async fn texts_in_other_places_are_broken_off() {
    let (gateway, mut upstream) = redacting(as_is).await;
    let twice = format!("\"tool_calls\":[{},{}]", arguments(0, "a"), arguments(0, "b"));
    for odd in [
        delta(&twice),
        delta("\"content\":[{\"type\":\"text\",\"text\":\"a\"}]"),
        delta("\"function_call\":{\"arguments\":\"a\"}"),
        delta("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\\u0073k-\"}}]"),
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":{\"content\":[]}}]}\n\n".to_owned(),
        "data: {\"choices\":[],\"note\":\"\\u0073k-\"}\n\n".to_owned(),
        [FINISH, &event("more")].concat(),
    ] {
        let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
        call.chunk(event("a")).await;
        client.until_body(event("a").as_bytes()).await;
        call.chunk(&odd).await;
        assert_eq!(client.end().await, End::Broken, "{odd}");
        call.gone().await;
    }
    let mut client = gateway.send(&Request::unary()).await;
    let hidden = ANSWER.replace("\"x\"", &format!("\"\\u0073{}\"", &SECRET[1..]));
    upstream.call().await.answer(json_answer(&hidden)).await;
    checks::rejected(&client.answer().await, 502, "withheld");
}

/// An event over `event_hold`, a tail that never ends, a body of another type, and another endpoint.
#[tokio::test]
async fn what_cannot_be_redacted_does_not_pass() {
    let (gateway, mut upstream) = redacting(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(event("a")).await;
    client.until_body(event("a").as_bytes()).await;
    call.chunk(event(&format!("{}{SECRET}", "x".repeat(40_000)))).await;
    assert_eq!(client.end().await, End::Broken);
    checks::same(client.body(), event("a").as_bytes());
    call.gone().await;
    let line = gateway.wait_access("withheld", |line| line["error"] == "withheld").await;
    assert_eq!(line["outcome"], "rejected", "{line}");

    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let unended = event(SECRET);
    call.chunk(unended.trim_end()).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), format!("{}\n", event("[redacted]").trim_end()).as_bytes());

    let mut client = gateway.send(&Request::unary()).await;
    let text = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{SECRET}",
        SECRET.len()
    );
    upstream.call().await.answer(text).await;
    checks::rejected(&client.answer().await, 502, "withheld");

    let refused = gateway.ask(&Request::post("/v1/embeddings", "{\"model\":\"m\",\"input\":\"hi\"}")).await;
    checks::rejected(&refused, 403, "forbidden");
    upstream.assert_not_asked();
}

#[test]
fn what_keeps_the_example_from_starting_is_said_in_a_sentence() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let broken = dir.path().join("broken.yaml");
    std::fs::write(&broken, "nonsense: 1\n").expect("write the file");
    let missing = dir.path().join("missing.yaml");
    let said = |arguments: &[&OsStr]| {
        let output = Command::new(example()).args(arguments).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let usage = "redact: usage: redact run|upgrade -c FILE\n".to_owned();
    assert_eq!(said(&[]), (Some(64), usage));
    let (code, text) = said(&["run".as_ref(), "-c".as_ref(), broken.as_ref()]);
    let begin = format!("redact: {}:1: nonsense: ", broken.display());
    assert!(code == Some(64) && text.starts_with(&begin), "{code:?} {text}");
    let (code, text) = said(&["run".as_ref(), "-c".as_ref(), missing.as_ref()]);
    let begin = format!("redact: {}: ", missing.display());
    assert!(code == Some(75) && text.starts_with(&begin), "{code:?} {text}");
}

#[tokio::test]
async fn a_client_that_leaves_still_stops_the_engine() {
    let (gateway, mut upstream) = redacting(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(event("key sk-abc")).await;
    client.until_body(event("key ").as_bytes()).await;
    client.close();
    checks::cancel(&gateway, &mut call, "stream").await;
}

/// A backend and a fate by header.
struct ByHeader;

impl ChooseBackend for ByHeader {
    fn choose(&self, request: &Facts<'_>, candidates: &[Candidate<'_>]) -> Option<usize> {
        let wanted = request.headers.get("x-backend")?.to_str().ok()?;
        assert_ne!(wanted, "panic", "a test asks for it");
        candidates.iter().position(|backend| backend.name == wanted)
    }
}

impl Admit for ByHeader {
    fn admit(&self, request: &Facts<'_>) -> Result<(), Refusal> {
        assert_eq!((request.route, request.model, request.path), ("chat", Some("m"), CHAT_PATH));
        if request.headers.contains_key("x-poor") {
            let refusal = Refusal::new(Class::TooMany, "the budget is spent").code("budget_spent");
            return Err(refusal.retry_after(Duration::from_secs(60)));
        }
        Ok(())
    }
}

/// A gateway in this process with both hooks, and where it serves. Its `u3` takes one attempt at a time.
async fn in_process(engines: [&Upstream; 3]) -> (Running, std::net::SocketAddr) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let settings =
        Settings::new(&engines.map(|engine| engine.addr)).set("clusters.c.backends.2.max_inflight", 1);
    let text = settings.text(&dir.path().join("access.log"));
    let config = Config::parse(&text, &Environment::detect()).expect("a configuration");
    let gateway =
        streamgate::Gateway::builder(config).choose(ByHeader).admit(ByHeader).build().expect("built");
    let running = tokio::task::spawn_blocking(|| gateway.start()).await.expect("no panic").expect("started");
    let url = running.listening().clients[0].clone();
    (running, url.trim_start_matches("http://").parse().expect("an address"))
}

async fn send(addr: std::net::SocketAddr, header: &str) -> Client {
    let mut client = Client::connect(addr).await;
    client.send(Request::post(CHAT_PATH, CHAT).header(header).header("Connection: close").bytes()).await;
    client
}

#[tokio::test]
async fn hooks_choose_and_admit() {
    let (mut one, mut two, mut three) =
        (Upstream::start().await, Upstream::start().await, Upstream::start().await);
    let (running, addr) = in_process([&one, &two, &three]).await;
    for _ in 0..3 {
        let mut client = send(addr, "x-backend: u2").await;
        two.call().await.stream("a").await;
        checks::streamed(&mut client, "a").await;
    }
    one.assert_not_asked();
    let mut first = send(addr, "x-backend: u3").await;
    let busy = three.call().await;
    // The one that is wanted is full, so the hook cannot have it.
    let mut client = send(addr, "x-backend: u3").await;
    let (call, _) = either(&mut one, &mut two).await;
    call.stream("b").await;
    checks::streamed(&mut client, "b").await;
    three.assert_not_asked();
    busy.stream("c").await;
    checks::streamed(&mut first, "c").await;

    let refused = send(addr, "x-poor: 1").await.answer().await;
    checks::rejected(&refused, 429, "budget_spent");
    assert_eq!(refused.head.get("retry-after"), Some("60"));

    let failed = send(addr, "x-backend: panic").await.answer().await;
    assert_eq!(failed.status(), 500, "a panic is an error of its own exchange");
    let mut client = send(addr, "x-backend: u1").await;
    one.call().await.stream("d").await;
    checks::streamed(&mut client, "d").await;
    two.assert_not_asked();

    let stopped = tokio::task::spawn_blocking(|| running.stop());
    tokio::time::timeout(SOON * 2, stopped).await.expect("in time").expect("no panic").expect("drained");
    assert!(tokio::net::TcpStream::connect(addr).await.is_err(), "nobody listens any more");
}
