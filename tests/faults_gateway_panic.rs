//! G11: a panic of the gateway's own, in each phase of an exchange. The client is told where there is still a way to,
//! the log names the request and the phase, nothing is left counted, and nobody else notices.

mod support;

use support::wire::{ANSWER, CHAT, CHAT_UNARY, DONE, Request, event, json_answer};
use support::{Client, End, Gateway, Settings, Upstream, checks, streaming};

/// Who asks to meet the fault.
const PATH: &str = "/v1/chat/completions?panic";

/// A gateway that panics in this phase, and somebody else's stream through it.
struct Fault {
    gateway: Gateway,
    engine: Upstream,
    neighbour: (Client, support::Call),
    phase: &'static str,
    fds: usize,
}

impl Fault {
    async fn in_phase(phase: &'static str) -> Self {
        let mut engine = Upstream::start().await;
        // A panic writes its backtrace first, which takes its time on a busy machine.
        let settings = Settings::new(&[engine.addr]).set("timeouts.idle", "25s");
        let gateway = Gateway::start_in(settings, &[("STREAMGATE_PANIC_IN", phase)]).await;
        let fds = gateway.fd_count();
        support::score::struck(1, "a panic");
        let neighbour = streaming(&gateway, &mut engine, &["a"]).await;
        Self { gateway, engine, neighbour, phase, fds }
    }

    async fn ask(&self, body: &str) -> Client {
        self.gateway.send(&Request::post(PATH, body).header("X-Request-Id: the-unlucky-one")).await
    }

    /// It has been told of, counted once, and left nothing behind.
    async fn settled(mut self, outcome: &str) {
        let line = self.gateway.wait_access("it", |line| line["request_id"] == "the-unlucky-one").await;
        assert_eq!(line["outcome"], outcome, "{}: {line}", self.phase);
        self.gateway.wait_log(&format!("it panicked in {}", self.phase)).await;
        let log = self.gateway.log();
        let told = log.lines().filter(|line| line.contains("panicked"));
        let told: Vec<&str> =
            told.filter(|line| !line.contains("panicked at src/proxy/shelter.rs")).collect();
        assert_eq!(told.len(), 1, "{log}");
        assert!(told[0].contains("the-unlucky-one") || self.phase == "request_filter", "{told:?}");

        let (mut client, mut call) = self.neighbour;
        call.chunk(event("b")).await;
        call.chunk(DONE).await;
        client.until_body([event("a"), event("b"), DONE.to_owned()].concat().as_bytes()).await;
        call.finish().await;
        assert_eq!(client.end().await, End::Clean);
        drop(client);
        self.gateway.all_access(2).await;
        checks::at_rest(&self.gateway).await;
        self.gateway.nobody_ejected().await;
        checks::alive(&self.gateway, &mut self.engine, self.fds).await;
    }
}

#[tokio::test]
async fn g11_a_panic_before_the_engine_is_asked_is_told() {
    for phase in ["request_filter", "upstream_peer", "upstream_request_filter"] {
        let mut fault = Fault::in_phase(phase).await;
        let answer = fault.ask(CHAT).await.answer().await;
        assert_eq!((answer.status(), &answer.json()["error"]["code"]), (500, &"internal".into()), "{phase}");
        fault.engine.assert_not_asked();
        fault.settled("abandoned").await;
    }
}

#[tokio::test]
async fn g11_a_panic_before_the_head_has_gone_out_is_told() {
    for phase in ["upstream_response_filter", "response_filter"] {
        for body in [CHAT, CHAT_UNARY] {
            let mut fault = Fault::in_phase(phase).await;
            let mut client = fault.ask(body).await;
            let mut call = fault.engine.call().await;
            // Not all of the answer, so that the gateway has a reason to leave.
            match body {
                CHAT => call.open().await,
                _ => call.send(&json_answer(ANSWER)[..80]).await,
            }
            let answer = client.answer().await;
            assert_eq!(
                (answer.status(), &answer.json()["error"]["code"]),
                (500, &"internal".into()),
                "{phase}"
            );
            call.gone().await;
            fault.settled("abandoned").await;
        }
    }
}

/// A body that has begun is broken off, which no client takes for its end.
#[tokio::test]
async fn g11_a_panic_within_a_stream_breaks_it() {
    let mut fault = Fault::in_phase("response_body_filter").await;
    let mut client = fault.ask(CHAT).await;
    let mut call = fault.engine.call().await;
    call.open().await;
    call.chunk(event("a")).await;
    assert_eq!(client.head().await.status(), 200);
    client.until_body(event("a").as_bytes()).await;
    call.chunk(event("b")).await;
    assert_eq!(client.end().await, End::Broken);
    checks::same(client.body(), event("a").as_bytes());
    call.gone().await;
    fault.settled("abandoned").await;
}

/// The engine fails, and so does what should make an answer of that.
#[tokio::test]
async fn g11_a_panic_while_a_failure_is_handled_ends_the_request() {
    let mut fault = Fault::in_phase("error_while_proxy").await;
    let mut client = fault.ask(CHAT).await;
    fault.engine.call().await.reset();
    assert_eq!(client.answer().await.status(), 502, "what the engine did is still known");
    fault.settled("upstream_error").await;

    let mut fault = Fault::in_phase("fail_to_proxy").await;
    let mut client = fault.ask(CHAT).await;
    fault.engine.call().await.reset();
    client.closed().await;
    fault.settled("abandoned").await;
}

#[tokio::test]
async fn g11_a_panic_behind_the_answer_changes_nothing() {
    let mut fault = Fault::in_phase("logging").await;
    let mut client = fault.ask(CHAT_UNARY).await;
    fault.engine.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.body, ANSWER.as_bytes());
    fault.settled("abandoned").await;
}

over_h2!(
    g11_a_panic_before_the_engine_is_asked_is_told,
    g11_a_panic_before_the_head_has_gone_out_is_told,
    g11_a_panic_within_a_stream_breaks_it,
    g11_a_panic_behind_the_answer_changes_nothing,
);
