//! What docs/from-nginx.md says is the same in nginx and in streamgate, held side by side: the nginx.conf of the page
//! and the file it becomes, in front of the same engine.

mod nginx;
#[path = "../support/mod.rs"]
mod support;

use std::net::SocketAddr;

use nginx::Nginx;
use serde_json::{Value, json};
use support::settings::unwatched;
use support::wire::{ANSWER, Request, chat_of, json_answer};
use support::{Answer, Client, End, Gateway, Settings, Upstream, not_run};

const KIB: usize = 1024;

/// nginx and streamgate, both in front of one engine.
struct Pair {
    nginx: Nginx,
    gateway: Gateway,
    engine: Upstream,
}

/// The example, on ports of the kernel's choice, without TLS and with one engine.
fn example(engine: SocketAddr) -> Settings {
    let backends: Value = json!([{ "name": "gpu-1", "url": format!("http://{engine}") }]);
    Settings::example("from-nginx")
        .set("server.listen.0", json!({ "address": "127.0.0.1:0" }))
        .set("server.listen.1.address", "127.0.0.1:0")
        .set("clusters.vllm.backends", backends)
        .set("clusters.vllm.health", unwatched())
        .set("clusters.vllm.scrape", Value::Null)
        .set("routes.1.include_usage", false)
}

impl Pair {
    /// `None`, and told, where there is no nginx.
    async fn start(test: &str) -> Option<Self> {
        let engine = Upstream::start().await;
        let Some(nginx) = Nginx::start(engine.addr).await else {
            not_run(test, "there is no nginx on this machine");
            return None;
        };
        let gateway = Gateway::start(example(engine.addr)).await;
        Some(Self { nginx, gateway, engine })
    }

    fn both(&self) -> [SocketAddr; 2] {
        [self.nginx.addr, self.gateway.listener(0)]
    }

    /// What both answer without an engine.
    async fn ask(&self, request: &Request) -> [Answer; 2] {
        let [nginx, gateway] = self.both();
        [ask(nginx, request).await, ask(gateway, request).await]
    }
}

async fn ask(addr: SocketAddr, request: &Request) -> Answer {
    let mut client = Client::connect(addr).await;
    client.send(request.bytes()).await;
    client.answer().await
}

#[tokio::test]
async fn what_is_answered_without_an_engine_is_the_same() {
    let Some(pair) = Pair::start("what_is_answered_without_an_engine_is_the_same").await else { return };
    for answer in pair.ask(&Request::bare("GET", "/robots.txt")).await {
        let media = answer.head.get("content-type").map(|media| media.split(';').next());
        assert_eq!((answer.status(), media), (200, Some(Some("text/plain"))));
        assert_eq!(answer.text(), "User-agent: *\nDisallow: /\n");
    }
    for path in ["/", "/metrics", "/v1/chat/completions/", "/v1/models/x", "/tokenize"] {
        for answer in pair.ask(&Request::bare("GET", path)).await {
            assert_eq!(answer.status(), 404, "{path}");
        }
    }
    for answer in pair.ask(&Request::post("/v1/embeddings", chat_of(65 * KIB))).await {
        assert_eq!(answer.status(), 413);
    }
    for answer in pair.ask(&Request::bare("GET", &format!("/{}", "a".repeat(9 * KIB)))).await {
        assert_eq!(answer.status(), 414);
    }
}

/// Events flow at once, byte for byte, and what the engine is sent is the same but for their names.
#[tokio::test]
async fn streams_are_the_same() {
    let Some(mut pair) = Pair::start("streams_are_the_same").await else { return };
    let request = Request::chat().header("Cookie: a=b").header("X-Forwarded-For: 1.2.3.4");
    for addr in pair.both() {
        let mut client = Client::connect(addr).await;
        client.send(request.bytes()).await;
        let mut call = pair.engine.call().await;
        let head = &call.request.head;
        assert_eq!((head.get("x-team"), head.get("cookie")), (Some("search"), None));
        assert_eq!(head.get("x-forwarded-for"), Some("127.0.0.1"), "who is not trusted is not believed");
        assert!(head.get("x-request-id").is_some_and(|id| id.len() == 32));
        assert_eq!(call.request.body, request.framed_body());
        call.open().await;
        let mut sent = String::new();
        for text in ["one", "two", "three"] {
            let event = support::wire::event(text);
            sent.push_str(&event);
            call.chunk(&event).await;
            if text == "one" {
                assert_eq!(client.head().await.status(), 200);
            }
            // Before the next one is sent.
            client.until_len(sent.len()).await;
        }
        call.finish().await;
        assert_eq!(client.end().await, End::Clean);
        assert_eq!(String::from_utf8_lossy(client.body()), sent);
    }
}

/// A client that leaves during the prefill ends its request at the engine.
#[tokio::test]
async fn leaving_is_the_same() {
    let Some(mut pair) = Pair::start("leaving_is_the_same").await else { return };
    for addr in pair.both() {
        let mut client = Client::connect(addr).await;
        client.send(Request::chat().bytes()).await;
        let mut call = pair.engine.call().await;
        drop(client);
        call.gone().await;
    }
}

/// A minute's requests may come at once, and not one more.
#[tokio::test]
async fn limits_are_the_same() {
    let Some(mut pair) = Pair::start("limits_are_the_same").await else { return };
    for addr in pair.both() {
        let mut answered = 0;
        let refused = loop {
            let mut client = Client::connect(addr).await;
            client.send(Request::unary().bytes()).await;
            let answer = tokio::select! {
                answer = client.answer() => break answer,
                call = pair.engine.call() => {
                    call.answer(json_answer(ANSWER)).await;
                    client.answer().await
                }
            };
            assert_eq!(answer.status(), 200);
            answered += 1;
        };
        assert_eq!(refused.status(), 429);
        // Both give back ten a second while we ask; nginx counts the burst on top of the first.
        assert!((600..1_800).contains(&answered), "{answered}");
    }
}

#[tokio::test]
async fn plain_http_is_sent_to_https() {
    let Some(pair) = Pair::start("plain_http_is_sent_to_https").await else { return };
    let request =
        Request::bare("POST", "/v1/chat/completions?x=1").without("host").header("Host: llm.example.com");
    for addr in [pair.nginx.plain, pair.gateway.listener(1)] {
        let answer = ask(addr, &request).await;
        assert_eq!(answer.status(), 308);
        assert_eq!(
            answer.head.get("location"),
            Some("https://llm.example.com/v1/chat/completions?x=1"),
            "{addr}"
        );
    }
}
