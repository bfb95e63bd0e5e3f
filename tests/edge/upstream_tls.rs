//! TLS toward backends: who is believed, what is said when nobody is, and that nothing else differs.

use std::net::ToSocketAddrs;

use crate::support::certificates::Authority;
use crate::support::channel::Tls;
use crate::support::wait::{SOON, within};
use crate::support::wire::{self, Request};
use crate::support::{
    End, Gateway, Gone, Settings, Upstream, as_is, one_engine_over_tls, relayed, streaming,
};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

const LOCAL: &str = "127.0.0.1";

fn trusting(authority: &Authority) -> Value {
    json!({ "ca": authority.file() })
}

#[tokio::test]
async fn streams_flow_over_tls_and_only_http_1_1_is_offered() {
    let (gateway, mut upstream) = one_engine_over_tls(as_is).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["a", "b"]).await;
    assert_eq!((call.hello().sni.as_deref(), &*call.hello().alpn), (None, &b"\x08http/1.1"[..]));
    assert_eq!(call.request.head.get("host"), Some(&*upstream.addr.to_string()));
    call.chunk(wire::event("c")).await;
    client.until_body([wire::event("a"), wire::event("b"), wire::event("c")].concat().as_bytes()).await;
    call.chunk(wire::DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    assert_eq!(gateway.only_access().await["outcome"], "completed");
}

#[tokio::test]
async fn an_idle_connection_serves_the_next_request() {
    let (gateway, mut upstream) = one_engine_over_tls(as_is).await;
    for count in 1..=3 {
        relayed(&gateway, &mut upstream, &Request::unary()).await;
        gateway.all_access(count).await;
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn the_name_is_the_urls_host_and_the_prefix_comes_before_the_path() {
    let authority = Authority::new();
    let ip = ("localhost", 0).to_socket_addrs().expect("localhost").next().expect("an address").ip();
    let mut upstream = Upstream::on(ip, Some(Tls::of(&authority.vouches_for(&["localhost"])))).await;
    let authority_of_url = format!("localhost:{}", upstream.addr.port());
    let settings = Settings::new(&[upstream.addr])
        .set("clusters.c.backends.0.url", format!("https://{authority_of_url}/base/v1x/"))
        .set("clusters.c.tls", trusting(&authority));
    let gateway = Gateway::start(settings).await;
    let mut client = gateway.send(&Request::post("/v1/chat/completions?a=b", wire::CHAT_UNARY)).await;
    let call = upstream.call().await;
    assert_eq!(call.hello().sni.as_deref(), Some("localhost"));
    assert_eq!(call.request.head.line, "POST /base/v1x/v1/chat/completions?a=b HTTP/1.1");
    assert_eq!(call.request.head.get("host"), Some(&*authority_of_url));
    call.answer(wire::json_answer(wire::ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

#[tokio::test]
async fn another_name_is_asked_for_and_checked_where_the_file_says_so() {
    let authority = Authority::new();
    let mut upstream = Upstream::with_tls(&authority.vouches_for(&["engine.test"])).await;
    let tls = json!({ "ca": authority.file(), "sni": "Engine.test" });
    let gateway = Gateway::start(Settings::new(&[upstream.addr]).https(tls)).await;
    let mut client = gateway.send(&Request::unary()).await;
    let call = upstream.call().await;
    assert_eq!(call.hello().sni.as_deref(), Some("engine.test"));
    call.answer(wire::json_answer(wire::ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

#[tokio::test]
async fn the_systems_authorities_are_believed_where_no_file_is_named() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut upstream = Upstream::with_tls(&authority.vouches_for(&[LOCAL])).await;
    let settings = || Settings::new(&[upstream.addr]).https(json!({}));
    let file = |authority: &Authority| authority.file().to_str().expect("UTF-8").to_owned();
    let without = Gateway::start_in(settings(), &[("SSL_CERT_FILE", &file(&other))]).await;
    let with = Gateway::start_in(settings(), &[("SSL_CERT_FILE", &file(&authority))]).await;
    assert_eq!(without.ask(&Request::unary()).await.status(), 502);
    relayed(&with, &mut upstream, &Request::unary()).await;
}

/// The engine is refused with these words in the log, and another node answers in its place.
async fn refused(bad: Upstream, authority: &Authority, words: &str) {
    let mut good = Upstream::with_tls(&authority.vouches_for(&[LOCAL])).await;
    let alone = Gateway::start(Settings::new(&[bad.addr]).https(trusting(authority))).await;
    let answer = alone.ask(&Request::chat()).await;
    assert_eq!((answer.status(), &answer.json()["error"]["code"]), (502, &json!("upstream_error")));
    assert!(!answer.text().contains("certificate"), "{}", answer.text());
    alone.wait_log(words).await;
    assert_eq!(alone.only_access().await["attempts"], 1);

    let both = Gateway::start(Settings::new(&[bad.addr, good.addr]).https(trusting(authority))).await;
    for _ in 0..2 {
        let mut client = both.send(&Request::chat()).await;
        good.call().await.stream("from the good one").await;
        assert_eq!(client.answer().await.status(), 200);
    }
    let retried = [("reason", "connect")];
    both.wait_metric_where("a connect is retried", "retries_total", &retried, |retries| retries > 0.0).await;
}

#[tokio::test]
async fn an_unknown_authority_is_not_believed() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let bad = Upstream::with_tls(&stranger.vouches_for(&[LOCAL])).await;
    refused(bad, &authority, "no authority that is trusted here has signed it").await;
}

#[tokio::test]
async fn a_certificate_for_another_name_or_address_is_not_believed() {
    let authority = Authority::new();
    for other in ["127.0.0.2", "localhost"] {
        let bad = Upstream::with_tls(&authority.vouches_for(&[other])).await;
        refused(bad, &authority, "it is not for 127.0.0.1").await;
    }
}

#[tokio::test]
async fn a_certificate_whose_time_is_over_is_not_believed() {
    let authority = Authority::new();
    let bad = Upstream::with_tls(&authority.vouched_for(&[LOCAL])).await;
    refused(bad, &authority, "its certificate was refused: certificate has expired").await;
}

#[tokio::test]
async fn a_port_that_speaks_plain_http_is_told() {
    let authority = Authority::new();
    let bad = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let addr = bad.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = bad.accept().await {
            use tokio::io::AsyncWriteExt;
            // The gateway may have left already.
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await);
            drop(stream.read(&mut [0; 1024]).await);
        }
    });
    let gateway = Gateway::start(Settings::new(&[addr]).https(trusting(&authority))).await;
    assert_eq!(gateway.ask(&Request::chat()).await.status(), 502);
    gateway.wait_log("is it plain HTTP on this port?").await;
}

#[tokio::test]
async fn a_backend_that_closes_in_the_handshake_is_told() {
    let authority = Authority::new();
    let bad = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let addr = bad.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = bad.accept().await {
            drop(stream.read(&mut [0; 1024]).await);
        }
    });
    let gateway = Gateway::start(Settings::new(&[addr]).https(trusting(&authority))).await;
    assert_eq!(gateway.ask(&Request::chat()).await.status(), 502);
    gateway.wait_log("the TLS handshake failed").await;
}

/// A port that accepts and then says nothing.
async fn silent() -> (std::net::SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    (listener.local_addr().expect("bound"), listener)
}

#[tokio::test]
async fn a_handshake_without_end_is_a_connect_timeout() {
    let authority = Authority::new();
    let (addr, listener) = silent().await;
    let mut good = Upstream::with_tls(&authority.vouches_for(&[LOCAL])).await;
    let gateway = Gateway::start(Settings::new(&[addr]).https(trusting(&authority))).await;
    let mut client = gateway.send(&Request::chat()).await;
    let _held = within("the gateway connects", SOON, listener.accept()).await.expect("accept");
    let answer = client.answer().await;
    assert_eq!((answer.status(), &answer.json()["error"]["code"]), (504, &json!("connect_timeout")));
    gateway.wait_log("no TLS connection in 2s").await;

    let settings = Settings::new(&[addr, good.addr]).https(trusting(&authority));
    let gateway = Gateway::start(settings).await;
    let mut client = gateway.send(&Request::chat()).await;
    good.call().await.stream("a").await;
    assert_eq!(client.answer().await.status(), 200);
}

#[tokio::test]
async fn leaving_during_the_handshake_ends_it() {
    let authority = Authority::new();
    let (addr, listener) = silent().await;
    let settings = Settings::new(&[addr]).https(trusting(&authority)).set("timeouts.connect", "60s");
    let gateway = Gateway::start(settings).await;
    let client = gateway.send(&Request::chat()).await;
    let (mut engine, _) = within("the gateway connects", SOON, listener.accept()).await.expect("accept");
    let mut hello = [0; 64];
    let begun = within("the handshake begins", SOON, engine.read(&mut hello)).await.expect("read");
    assert!(begun > 0 && hello[0] == 22, "no handshake record: {:?}", &hello[..begun]);
    client.close();
    let mut rest = Vec::new();
    within("the gateway leaves", SOON, engine.read_to_end(&mut rest)).await.expect("read");
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["phase"]), (&json!("client_closed"), &json!("connect")));
}

#[tokio::test]
async fn leaving_during_the_prefill_or_the_stream_stops_the_engine() {
    let far = |settings: Settings| settings.set("timeouts.first_event", "60s").set("timeouts.idle", "60s");
    let (gateway, mut upstream) = one_engine_over_tls(far).await;
    let client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    client.close();
    // A FIN, or a reset where the engine's session tickets lay unread: either ends the work.
    call.gone().await;
    let (client, mut call) = streaming(&gateway, &mut upstream, &["a"]).await;
    client.close();
    assert_eq!(call.gone().await, Gone::Fin);
    let lines = gateway.all_access(2).await;
    let phases: Vec<&Value> = lines.iter().map(|line| &line["phase"]).collect();
    assert_eq!(phases, ["first_event", "stream"]);
    gateway.wait_metric("in_flight", &[], 0.0).await;
}

#[tokio::test]
async fn a_closed_idle_connection_is_replaced() {
    let (gateway, mut upstream) = one_engine_over_tls(as_is).await;
    relayed(&gateway, &mut upstream, &Request::unary()).await;
    gateway.all_access(1).await;
    let mut client = gateway.send(&Request::unary()).await;
    let call = upstream.call().await;
    assert_eq!(call.connection, 0, "the idle connection was not used");
    call.close();
    let call = upstream.call().await;
    assert_eq!(call.connection, 1);
    call.answer(wire::json_answer(wire::ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    assert_eq!(gateway.all_access(2).await[1]["attempts"], 1);
}

#[tokio::test]
async fn an_answer_that_is_cut_without_farewell_is_no_end() {
    let (gateway, mut upstream) = one_engine_over_tls(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"half\":")
        .await;
    assert_eq!(client.head().await.status(), 200);
    client.until_body(b"{\"half\":").await;
    call.close();
    assert_ne!(client.end().await, End::Clean);
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
}

/// Settings with a second cluster `d` for the path of embeddings, at the same address.
fn two_clusters(upstream: &Upstream, first: Value, second: Value) -> Settings {
    let backend = json!([{ "name": "v1", "url": format!("https://{}", upstream.addr) }]);
    Settings::new(&[upstream.addr])
        .https(first)
        .set("clusters.d", json!({ "profile": "openai", "backends": backend, "tls": second }))
        .set("routes.1.cluster", "d")
}

async fn ask_both(gateway: &Gateway, upstream: &mut Upstream) {
    let other = Request::post("/v1/embeddings", "{\"model\":\"m\",\"input\":\"x\"}");
    // The line is written when the connection is back in the pool.
    for (count, request) in (1..).zip([&Request::unary(), &other, &Request::unary(), &other]) {
        relayed(gateway, upstream, request).await;
        gateway.all_access(count).await;
    }
}

#[tokio::test]
async fn connections_are_shared_only_by_the_same_trust_and_name() {
    let (authority, copy) = (Authority::new(), tempfile::tempdir().expect("temporary directory"));
    let copied = copy.path().join("copy.pem");
    std::fs::copy(authority.file(), &copied).expect("copy");
    let bundle = copy.path().join("bundle.pem");
    std::fs::write(&bundle, authority.pem() + &Authority::new().pem()).expect("write");
    let first = || json!({ "ca": authority.file(), "sni": "one.test" });
    for (second, connections) in [
        (json!({ "ca": copied, "sni": "one.test" }), 1),
        (json!({ "ca": authority.file(), "sni": "two.test" }), 2),
        (json!({ "ca": bundle, "sni": "one.test" }), 2),
        (json!({ "verify": false, "sni": "one.test" }), 2),
    ] {
        let mut upstream = Upstream::with_tls(&authority.vouches_for(&["one.test", "two.test"])).await;
        let gateway = Gateway::start(two_clusters(&upstream, first(), second.clone())).await;
        ask_both(&gateway, &mut upstream).await;
        assert_eq!(upstream.connections(), connections, "{second}");
    }
}

#[tokio::test]
async fn unchecked_certificates_are_taken_and_warned_of() {
    let stranger = Authority::new();
    let mut upstream = Upstream::with_tls(&stranger.vouched_for(&["other.test"])).await;
    let settings = Settings::new(&[upstream.addr]).https(json!({ "verify": false }));
    let gateway = Gateway::start(settings).await;
    relayed(&gateway, &mut upstream, &Request::unary()).await;
    gateway.wait_log("certificates of the backends are not checked").await;
}
