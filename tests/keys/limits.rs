//! Limits of keys and addresses: what passes, what the refused are told, what those who leave are charged.
//! Cases H11 and C16, rows R8 and G16. Buckets of an hour fill so slowly that no test sees it.

use std::time::Duration;

use crate::support::wire::{
    ANSWER, CHAT, CHAT_PATH, CHAT_UNARY, DONE, Request, USAGE, answer, event, json_answer,
};
use crate::support::{
    Answer, Call, Client, Gateway, Settings, Upstream, checks, one_engine, open_stream, streaming,
};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

/// The key of the cases has these limits; there is another, which has none.
fn limited(settings: Settings, limits: Value) -> Settings {
    settings.keys(&[("team-a", "k1"), ("team-b", "k2")]).set("keys.0.limits", limits)
}

async fn gateway(limits: Value) -> (Gateway, Upstream) {
    one_engine(|settings| limited(settings, limits)).await
}

/// A request that the engine answers.
async fn served(gateway: &Gateway, engine: &mut Upstream, request: &Request) -> Answer {
    let mut client = gateway.send(request).await;
    engine.call().await.answer(json_answer(ANSWER)).await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer
}

/// What an answer tells of requests or tokens: limit, remaining, reset.
fn told(answer: &Answer, what: &str) -> [Option<String>; 3] {
    ["limit", "remaining", "reset"]
        .map(|part| answer.head.get(&format!("x-ratelimit-{part}-{what}")).map(str::to_owned))
}

fn remaining(answer: &Answer, what: &str) -> u64 {
    told(answer, what)[1].as_ref().expect("a header").parse().expect("a number")
}

/// A refusal of this limit, by what the client, the metrics, the access line and the log are told.
async fn denied(gateway: &Gateway, answer: &Answer, limit: &str, times: f64) {
    checks::rejected(answer, 429, "rate_limited");
    assert_eq!(answer.json()["error"]["type"], "rate_limit_error");
    let seconds: u64 = answer.head.get("retry-after").expect("Retry-After").parse().expect("whole seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
    gateway.wait_metric("limit_denials_total", &[("limit", limit)], times).await;
    gateway.wait_metric("limit_denials_total", &[], times).await;
    gateway.wait_metric("requests_total", &[("outcome", "limited")], times).await;
    gateway.wait_access("limited", |line| line["outcome"] == "limited" && line["status"] == 429).await;
    gateway.wait_log(&format!("has reached its limit {limit}: 1 request refused")).await;
}

#[tokio::test]
async fn requests_pass_up_to_their_limit_and_the_rest_is_told_when_to_come_back() {
    let (gateway, mut engine) = gateway(json!({ "requests": "3/h" })).await;
    for left in ["2", "1", "0"] {
        let answer = served(&gateway, &mut engine, &Request::unary()).await;
        let [limit, remaining, reset] = told(&answer, "requests");
        assert_eq!((limit.as_deref(), remaining.as_deref()), (Some("3"), Some(left)));
        assert!(reset.is_some_and(|reset| reset.ends_with('s')));
        assert_eq!(told(&answer, "tokens"), [None, None, None], "there is no such limit");
    }
    // The body is not waited for.
    let mut client = gateway.client().await;
    client.send(Request::unary().head()).await;
    let answer = client.answer().await;
    denied(&gateway, &answer, "requests", 1.0).await;
    assert_eq!((answer.head.get("retry-after"), remaining(&answer, "requests")), (Some("60"), 0));
    gateway.wait_log("key team-a has reached its limit requests").await;
    engine.assert_not_asked();
    let answer = served(&gateway, &mut engine, &Request::unary().with_key("k2")).await;
    assert_eq!(told(&answer, "requests"), [None, None, None]);
}

#[tokio::test]
async fn what_an_engine_says_of_limits_is_not_said_to_clients_who_have_their_own() {
    let (gateway, mut engine) = gateway(json!({ "requests": "3/h" })).await;
    for (request, want) in [(Request::unary(), None), (Request::unary().with_key("k2"), Some("7"))] {
        let mut client = gateway.send(&request).await;
        let headers = ["x-ratelimit-limit-requests: 9", "x-ratelimit-remaining-tokens: 7"];
        engine.call().await.answer(answer("200 OK", &headers, ANSWER)).await;
        let answer = client.answer().await;
        assert_eq!(answer.head.get("x-ratelimit-remaining-tokens"), want);
        let limit = if want.is_some() { "9" } else { "3" };
        assert_eq!(answer.head.get("x-ratelimit-limit-requests"), Some(limit));
    }
}

/// The tokens of a request that is estimated at this many bytes of prompt.
fn prompt(body: &str) -> u64 {
    body.len().div_ceil(4) as u64
}

/// A body that asks for at most so many tokens.
fn asking_for(body: &str, tokens: u64) -> String {
    body.replacen('{', &format!("{{\"max_tokens\":{tokens},"), 1)
}

#[tokio::test]
async fn tokens_are_reserved_first_and_settled_by_what_the_engine_tells() {
    let (gateway, mut engine) = gateway(json!({ "tokens": "1000/h" })).await;
    let large = asking_for(CHAT, 800);
    let (mut client, mut call) = open(&gateway, &mut engine, &Request::post(CHAT_PATH, &large)).await;
    let refused = gateway.ask(&Request::post(CHAT_PATH, &large)).await;
    denied(&gateway, &refused, "tokens", 1.0).await;
    assert_eq!(remaining(&refused, "tokens"), 200 - prompt(&large), "all of it is reserved");
    engine.assert_not_asked();

    call.chunk([&event("a"), USAGE, DONE].concat()).await;
    call.finish().await;
    assert_eq!(client.answer().await.status(), 200);
    gateway.wait_access("completed", |line| line["outcome"] == "completed").await;
    let answer = served(&gateway, &mut engine, &Request::post(CHAT_PATH, asking_for(CHAT_UNARY, 1))).await;
    let reserved = prompt(&asking_for(CHAT_UNARY, 1)) + 1;
    assert_eq!(remaining(&answer, "tokens"), 1000 - 10 - reserved, "7 and 3 were used");
}

/// What is used beyond a limit is a debt, which is told with its keys; who passes is counted for each limit it has.
#[tokio::test]
async fn who_passes_and_who_is_in_debt_is_counted() {
    let (gateway, mut engine) = gateway(json!({ "tokens": "100/h", "requests": "9/h" })).await;
    gateway.wait_metric("limit_keys_in_debt", &[], 0.0).await;
    let mut client = gateway.send(&Request::post(CHAT_PATH, asking_for(CHAT_UNARY, 1))).await;
    let used = ANSWER.replace("\"total_tokens\":10", "\"total_tokens\":500");
    engine.call().await.answer(json_answer(&used)).await;
    assert_eq!(client.answer().await.status(), 200);
    gateway.wait_metric("limit_debt_tokens", &[], 400.0).await;
    gateway.wait_metric("limit_keys_in_debt", &[], 1.0).await;
    served(&gateway, &mut engine, &Request::unary().with_key("k2")).await;
    let refused = gateway.ask(&Request::post(CHAT_PATH, asking_for(CHAT_UNARY, 1))).await;
    denied(&gateway, &refused, "tokens", 1.0).await;
    for (limit, passed) in [("requests", 2.0), ("tokens", 1.0), ("concurrent", 0.0), ("per_ip", 0.0)] {
        assert_eq!(gateway.metric("limit_passed_total", &[("limit", limit)]).await, passed, "{limit}");
    }
}

async fn open(gateway: &Gateway, engine: &mut Upstream, request: &Request) -> (Client, Call) {
    let client = gateway.send(request).await;
    let mut call = engine.call().await;
    call.open().await;
    (client, call)
}

/// What is left, by the next answer: what its own request reserves is added again.
async fn left(gateway: &Gateway, engine: &mut Upstream) -> u64 {
    let body = asking_for(CHAT_UNARY, 1);
    let answer = served(gateway, engine, &Request::post(CHAT_PATH, &body)).await;
    remaining(&answer, "tokens") + prompt(&body) + 1
}

#[tokio::test]
async fn who_leaves_is_charged_for_the_prompt_and_what_was_generated() {
    let (gateway, mut engine) = gateway(json!({ "tokens": "10000/h" })).await;
    let (client, mut call) = streaming(&gateway, &mut engine, &["1", "2", "3"]).await;
    client.close();
    call.gone().await;
    gateway.wait_metric("requests_total", &[("outcome", "client_closed")], 1.0).await;
    let want = 10_000 - prompt(CHAT) - 3;
    assert_eq!(left(&gateway, &mut engine).await, want);

    // Before the first token: the prefill was for nothing, and is charged. The one before used 10.
    let client = gateway.send(&Request::chat()).await;
    let mut call = engine.call().await;
    client.close();
    call.gone().await;
    gateway.wait_metric("requests_total", &[("outcome", "client_closed")], 2.0).await;
    let want = want - 10 - prompt(CHAT);
    assert_eq!(left(&gateway, &mut engine).await, want);

    // Nobody saw what was generated of an answer that does not stream: all that it asked for is charged.
    let body = asking_for(CHAT_UNARY, 500);
    let client = gateway.send(&Request::post(CHAT_PATH, &body)).await;
    let mut call = engine.call().await;
    client.close();
    call.gone().await;
    gateway.wait_metric("requests_total", &[("outcome", "client_closed")], 3.0).await;
    let want = want - 10 - prompt(&body) - 500;
    assert_eq!(left(&gateway, &mut engine).await, want);

    // An engine that refuses has done nothing.
    let mut client = gateway.send(&Request::post(CHAT_PATH, &body)).await;
    engine.call().await.answer(answer("400 Bad Request", &[], "{}")).await;
    assert_eq!(client.answer().await.status(), 400);
    gateway.all_access(7).await;
    assert_eq!(left(&gateway, &mut engine).await, want - 10);
}

/// C16: a loop of requests that are given up before their first token, streams and others.
#[tokio::test]
async fn c16_who_gives_up_early_again_and_again_has_to_wait() {
    let (gateway, mut engine) = gateway(json!({ "early_cancels": "4/h" })).await;
    // Who has had a token may leave.
    for round in 1..=6 {
        let (client, mut call) = streaming(&gateway, &mut engine, &["a"]).await;
        client.close();
        call.gone().await;
        gateway.wait_metric("requests_total", &[("outcome", "client_closed")], f64::from(round)).await;
    }
    for (round, request) in (7..).zip([Request::chat(), Request::unary(), Request::chat(), Request::unary()])
    {
        let client = gateway.send(&request).await;
        let mut call = engine.call().await;
        client.close();
        call.gone().await;
        gateway.wait_metric("requests_total", &[("outcome", "client_closed")], f64::from(round)).await;
    }
    let answer = gateway.ask(&Request::chat()).await;
    denied(&gateway, &answer, "early_cancels", 1.0).await;
    for _ in 0..40 {
        assert_eq!(gateway.ask(&Request::chat()).await.status(), 429);
    }
    engine.assert_not_asked();
    served(&gateway, &mut engine, &Request::unary().with_key("k2")).await;
    checks::at_rest(&gateway).await;
}

/// H11: who leaves in a stream gives its place back, again and again.
#[tokio::test]
async fn h11_a_place_is_free_again_when_its_client_has_left() {
    let (gateway, mut engine) = gateway(json!({ "concurrent": 1 })).await;
    for round in 1..=200 {
        let (client, mut call) = streaming(&gateway, &mut engine, &["1", "2", "3"]).await;
        if round == 1 {
            let answer = gateway.ask(&Request::chat()).await;
            denied(&gateway, &answer, "concurrent", 1.0).await;
            assert_eq!(answer.head.get("retry-after"), Some("1"));
        }
        client.close();
        call.gone().await;
        gateway.wait_metric("requests_total", &[("outcome", "client_closed")], f64::from(round)).await;
    }
    assert_eq!(gateway.metric("limit_denials_total", &[]).await, 1.0);
    checks::at_rest(&gateway).await;
}

/// A client that has read the end of its answer may come again at once, on another connection as well.
#[tokio::test]
async fn a_place_is_free_again_when_its_answer_is_whole() {
    let (gateway, mut engine) = gateway(json!({ "concurrent": 1 })).await;
    for _ in 0..100 {
        served(&gateway, &mut engine, &Request::unary()).await;
        let (mut client, call) = open_stream(&gateway, &mut engine).await;
        call.finish().await;
        client.end().await;
    }
    assert_eq!(gateway.metric("limit_denials_total", &[]).await, 0.0);
}

#[tokio::test]
async fn a_key_has_so_many_connections_and_no_more() {
    let (gateway, mut engine) = gateway(json!({ "connections": 1 })).await;
    let mut first = gateway.client().await;
    for _ in 0..2 {
        first.send(Request::unary().bytes()).await;
        engine.call().await.answer(json_answer(ANSWER)).await;
        first.answer().await;
    }
    let mut second = gateway.client().await;
    second.send(Request::unary().bytes()).await;
    let answer = second.answer().await;
    denied(&gateway, &answer, "connections", 1.0).await;
    second.closed().await;
    engine.assert_not_asked();
    served(&gateway, &mut engine, &Request::unary().with_key("k2")).await;
    first.close();
    gateway.wait_metric("connections_active", &[], 0.0).await;
    served(&gateway, &mut engine, &Request::unary()).await;
}

#[tokio::test]
async fn an_address_has_so_many_requests_whoever_asks() {
    let (gateway, mut engine) = one_engine(|settings| settings.set("limits.per_ip.requests", "2/h")).await;
    for _ in 0..2 {
        let answer = served(&gateway, &mut engine, &Request::unary()).await;
        assert_eq!(told(&answer, "requests"), [None, None, None], "it is no key's limit");
    }
    assert_eq!(
        gateway.ask(&Request::bare("GET", "/nowhere")).await.status(),
        404,
        "costs nothing, and is not counted"
    );
    let answer = gateway.ask(&Request::unary()).await;
    denied(&gateway, &answer, "per_ip", 1.0).await;
    gateway.wait_log("client address 127.0.0.1 has reached its limit per_ip").await;

    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.2:0".parse().expect("an address")).expect("bind");
    let mut other = Client::over(socket.connect(gateway.addr).await.expect("connect"));
    other.send(Request::unary().bytes()).await;
    engine.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(other.answer().await.status(), 200);
}

/// R8: a reload gives nothing back, whichever way the limit is changed.
#[tokio::test]
async fn r8_what_is_left_of_a_limit_stays_through_a_reload() {
    let (gateway, mut engine) = gateway(json!({ "requests": "10/h" })).await;
    let changed = |limits| limited(Settings::new(&[engine.addr]), limits);
    let (raised, lowered) = (changed(json!({ "requests": "20/h" })), changed(json!({ "requests": "2/h" })));
    for _ in 0..5 {
        served(&gateway, &mut engine, &Request::unary()).await;
    }
    gateway.reload(raised).await;
    let answer = served(&gateway, &mut engine, &Request::unary()).await;
    assert_eq!((told(&answer, "requests")[0].as_deref(), remaining(&answer, "requests")), (Some("20"), 4));
    gateway.reload(lowered).await;
    let answer = served(&gateway, &mut engine, &Request::unary()).await;
    assert_eq!(remaining(&answer, "requests"), 1);
    served(&gateway, &mut engine, &Request::unary()).await;
    let answer = gateway.ask(&Request::unary()).await;
    denied(&gateway, &answer, "requests", 1.0).await;
}

/// G16: a key that floods is shed early, and one that behaves does not feel it.
#[tokio::test]
async fn g16_a_key_that_floods_is_shed_and_the_other_is_served() {
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let limits = json!({ "requests": "20/h", "concurrent": 4 });
    let gateway = Gateway::start(limited(Settings::new(&[engine]), limits)).await;
    let dialer = gateway.dialer();
    let flood = (0..20).map(|_| {
        tokio::spawn(async move {
            for _ in 0..100 {
                let mut client = dialer.client().await;
                client.send(Request::unary().bytes()).await;
                client.answer_within(Duration::from_secs(60)).await;
            }
        })
    });
    let flood: Vec<_> = flood.collect();
    for _ in 0..20 {
        assert_eq!(gateway.ask(&Request::unary().with_key("k2")).await.status(), 200);
    }
    for one in flood {
        one.await.expect("the flood ends");
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 40.0).await;
    gateway.wait_metric("requests_total", &[("outcome", "limited")], 1_980.0).await;
    assert!(
        gateway.log().matches("has reached its limit").count() < 100,
        "one line a second, not one a request"
    );
}

crate::over_h2! {
    c16_who_gives_up_early_again_and_again_has_to_wait,
    h11_a_place_is_free_again_when_its_client_has_left,
    who_leaves_is_charged_for_the_prompt_and_what_was_generated,
}
