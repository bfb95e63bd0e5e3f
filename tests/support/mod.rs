//! The black-box harness: a gateway process between raw-socket clients and raw-socket engines.
//!
//! Everything here speaks bytes, never the library's own types, so that a fault shared by the
//! gateway and its tests cannot hide. A test is a dialogue: the client sends, the engine answers
//! when the test says so, and each side's view is asserted in turn. Waiting is always on a value
//! with a deadline ([`wait`]).

#![allow(dead_code, unused_imports, reason = "every test file is a crate of its own and uses its own part")]

pub(crate) mod browser;
pub(crate) mod certificates;
pub(crate) mod channel;
pub(crate) mod checks;
pub(crate) mod client;
pub(crate) mod engine;
pub(crate) mod fleet;
pub(crate) mod frames;
pub(crate) mod framing;
pub(crate) mod front;
pub(crate) mod gateway;
pub(crate) mod group;
pub(crate) mod h2;
pub(crate) mod haproxy;
pub(crate) mod keys;
pub(crate) mod metrics;
pub(crate) mod netns;
pub(crate) mod operator;
pub(crate) mod protocol;
pub(crate) mod redis;
pub(crate) mod relay;
pub(crate) mod row;
pub(crate) mod score;
pub(crate) mod settings;
pub(crate) mod settled;
pub(crate) mod sockets;
pub(crate) mod sse;
pub(crate) mod tls;
pub(crate) mod told;
pub(crate) mod tun;
pub(crate) mod upstream;
pub(crate) mod wait;
pub(crate) mod wire;

pub(crate) use client::{Answer, Client, End, Leave};
pub(crate) use engine::Engine;
pub(crate) use gateway::Gateway;
pub(crate) use group::MemoryGroup;
pub(crate) use row::Row;
pub(crate) use settings::Settings;
pub(crate) use told::Told;
pub(crate) use upstream::{Call, Gone, Recorded, Upstream};

/// A gateway in front of one engine.
pub(crate) async fn one_engine(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream) {
    let upstream = Upstream::start().await;
    let gateway = Gateway::start(adjust(Settings::new(&[upstream.addr]))).await;
    (gateway, upstream)
}

/// A gateway in front of one engine, which maps session ids so.
pub(crate) async fn mapped(from: &[&str], to: &[&str]) -> (Gateway, Upstream) {
    one_engine(|settings| settings.session(from, to)).await
}

/// A gateway in front of one engine that speaks TLS, and is believed.
pub(crate) async fn one_engine_over_tls(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream) {
    let authority = certificates::Authority::new();
    let upstream = Upstream::with_tls(&authority.vouches_for(&["127.0.0.1"])).await;
    let tls = serde_json::json!({ "ca": authority.file() });
    let gateway = Gateway::start(adjust(Settings::new(&[upstream.addr]).https(tls))).await;
    (gateway, upstream)
}

/// A gateway in front of two engines.
pub(crate) async fn two_engines(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream, Upstream) {
    let (one, two) = (Upstream::start().await, Upstream::start().await);
    let gateway = Gateway::start(adjust(Settings::new(&[one.addr, two.addr]))).await;
    (gateway, one, two)
}

/// How often a row does its deed: a few times where each change is tested, as often as its matrix says where
/// `STREAMGATE_FULL` is set.
pub(crate) fn times<T>(few: T, in_full: T) -> T {
    if std::env::var_os("STREAMGATE_FULL").is_some() { in_full } else { few }
}

/// For a test that needs nothing but the settings of the cases.
pub(crate) fn as_is(settings: Settings) -> Settings {
    settings
}

/// Starts a stream and reads its head at the client.
pub(crate) async fn open_stream(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    let mut client = gateway.send(&wire::Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    (client, call)
}

/// A stream that has brought these events to the client.
pub(crate) async fn streaming(
    gateway: &Gateway,
    upstream: &mut Upstream,
    contents: &[&str],
) -> (Client, Call) {
    let (mut client, mut call) = open_stream(gateway, upstream).await;
    let events: String = contents.iter().map(|content| wire::event(content)).collect();
    call.chunk(&events).await;
    client.until_body(events.as_bytes()).await;
    (client, call)
}

/// Sends a request, lets the engine answer it, and gives what the engine was asked.
pub(crate) async fn relayed(gateway: &Gateway, upstream: &mut Upstream, request: &wire::Request) -> Recorded {
    let mut client = gateway.send(request).await;
    let call = upstream.call().await;
    let recorded = call.request.clone();
    call.answer(wire::json_answer(wire::ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    recorded
}

/// Notes that a test could not run here, and why, in the file that `scripts/test.sh` names.
pub(crate) fn not_run(test: &str, why: &str) {
    let line = format!("{test}: {}\n", why.replace('\n', " "));
    eprint!("not run: {line}");
    if let Some(file) = std::env::var_os("STREAMGATE_NOT_RUN") {
        let file = std::fs::OpenOptions::new().append(true).open(file);
        std::io::Write::write_all(&mut file.expect("the file of tests not run"), line.as_bytes())
            .expect("write");
    }
}

/// A gateway whose clients speak HTTP/2, in front of one engine.
pub(crate) async fn h2_engine(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream) {
    protocol::speak(protocol::Protocol::H2c);
    one_engine(adjust).await
}

/// Another stream of `first`'s connection, opened.
pub(crate) async fn sibling(first: &mut Client, upstream: &mut Upstream) -> (Client, Call) {
    let mut client = first.sibling();
    client.send(wire::Request::chat().bytes()).await;
    let mut call = upstream.call().await;
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    (client, call)
}
