//! Proxies in front of the gateway: whose word is believed, by header and by PROXY, and how many connections
//! one address may have.

use std::net::SocketAddr;

use crate::support;
use crate::support::sockets::many_descriptors;
use crate::support::tls::{Offer, Pair};
use crate::support::wait::{SOON, within};
use crate::support::wire::{ANSWER, DONE, Request, event, json_answer};
use crate::support::{
    Client, Gateway, Row, Settings, Told, Upstream, checks, one_engine, relayed, streaming,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

/// Proxies on the loopback network; others of it are none.
const PROXIES: &str = "127.0.0.1/32";

fn trusting(settings: Settings) -> Settings {
    settings.set("server.trusted_proxies", json!([PROXIES, "10.0.0.0/8"]))
}

fn per_ip(max: usize) -> impl FnOnce(Settings) -> Settings {
    move |settings| settings.set("server.connections", json!({ "per_ip": max }))
}

/// Takes connections that begin with a PROXY header.
fn introduced(settings: Settings) -> Settings {
    trusting(settings).set("server.listen.0.proxy_protocol", true)
}

/// A client with an address of the loopback network.
async fn client_from(ip: [u8; 4], gateway: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((ip, 0))).expect("bind");
    Client::over(within("connect", SOON, socket.connect(gateway)).await.expect("connect"))
}

/// PROXY v2 for TCP over IPv4 from 192.0.2.7.
fn binary() -> Vec<u8> {
    let addresses = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0, 80];
    [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".as_slice(), &addresses].concat()
}

/// Asks once over a connection that begins so, and gives the client that the engine and the access log heard of.
async fn asked_as(gateway: &Gateway, upstream: &mut Upstream, before: &[u8], request: &Request) -> String {
    let mut client = Client::connect(gateway.addr).await;
    client.send([before, &request.bytes()].concat()).await;
    let call = upstream.call().await;
    let heard = call.request.head.get("x-forwarded-for").expect("a client").to_owned();
    let id = call.request.head.get("x-request-id").expect("an id").to_owned();
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
    let line = gateway.wait_access(&id, |line| line["request_id"] == id).await;
    assert_eq!(line["client"], heard.split(", ").next().expect("a client"), "{line}");
    heard
}

/// What a client claims of itself is replaced, whatever it claims.
#[tokio::test]
async fn nobody_is_believed_without_a_reason() {
    let (gateway, mut upstream) = one_engine(support::as_is).await;
    let spoofed = Request::unary().lines(&[
        "X-Forwarded-For: 192.0.2.66",
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: evil.example",
        "Forwarded: for=192.0.2.66;proto=https;host=evil.example",
        "X-Forwarded-Port: 443",
        "X_Forwarded_User: root",
        "X-Real-IP: 192.0.2.66",
    ]);
    let asked = relayed(&gateway, &mut upstream, &spoofed).await;
    assert_eq!(asked.head.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(asked.head.all("x-forwarded-proto"), ["http"]);
    assert_eq!(asked.head.all("x-forwarded-host"), ["gateway.test"]);
    for name in ["forwarded", "x-forwarded-port", "x_forwarded_user", "x-real-ip"] {
        assert_eq!(asked.head.get(name), None, "{name}");
    }
    assert_eq!(gateway.only_access().await["client"], "127.0.0.1");
}

/// A trusted proxy is believed for the hop it has seen, and no further than its own kind vouches.
#[tokio::test]
async fn a_trusted_proxy_names_the_client() {
    let (gateway, mut upstream) = one_engine(trusting).await;
    let table = [
        (vec!["X-Forwarded-For: 192.0.2.7"], "192.0.2.7, 127.0.0.1"),
        (vec!["X-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.1.1.1"], "192.0.2.7, 10.1.1.1, 127.0.0.1"),
        (vec!["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 2001:db8::7"], "2001:db8::7, 127.0.0.1"),
        (vec!["X-Forwarded-For: 192.0.2.7, <script>"], "127.0.0.1"),
        (vec![], "127.0.0.1"),
    ];
    for (lines, heard) in table {
        let request = Request::unary().lines(&lines);
        assert_eq!(asked_as(&gateway, &mut upstream, b"", &request).await, heard, "{lines:?}");
    }
    let request = Request::unary().lines(&[
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: llm.example",
        "X-Forwarded-Port: 443",
        "Forwarded: for=6.6.6.6",
    ]);
    let asked = relayed(&gateway, &mut upstream, &request).await;
    assert_eq!(asked.head.get("x-forwarded-proto"), Some("https"));
    assert_eq!(asked.head.get("x-forwarded-host"), Some("llm.example"));
    assert_eq!(asked.head.get("x-forwarded-port"), Some("443"));
    assert_eq!(asked.head.get("forwarded"), None, "it is not read, so it is not handed on");
    // Another address of the same machine is no proxy.
    let mut other = client_from([127, 0, 0, 2], gateway.addr).await;
    other.send(Request::unary().header("X-Forwarded-For: 192.0.2.7").bytes()).await;
    let call = upstream.call().await;
    assert_eq!(call.request.head.get("x-forwarded-for"), Some("127.0.0.2"));
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(other.answer().await.status(), 200);
}

/// One address has its places and no more; others, and what runs, do not notice.
#[tokio::test]
async fn one_address_has_so_many_connections() {
    let (gateway, mut upstream) = one_engine(per_ip(2)).await;
    let (client, mut call) = streaming(&gateway, &mut upstream, &["a"]).await;
    let second = gateway.client().await;
    gateway.wait_metric("connections_active", &[], 2.0).await;
    for refused in 1..=3 {
        let mut third = gateway.client().await;
        checks::rejected(&third.answer().await, 503, "overloaded");
        third.closed().await;
        gateway.wait_metric("connections_refused_total", &[("reason", "per_ip")], f64::from(refused)).await;
    }
    gateway
        .wait_log("server.connections.per_ip = 2 are open from one address (the last from 127.0.0.1)")
        .await;
    assert_eq!(gateway.log().matches("connections refused").count(), 1, "told once: {}", gateway.log());
    let mut other = client_from([127, 0, 0, 2], gateway.addr).await;
    other.send(Request::unary().bytes()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(other.answer().await.status(), 200);
    // A place that is given back is taken again.
    second.close();
    gateway.wait_metric("connections_active", &[], 2.0).await;
    let mut next = gateway.client().await;
    next.send(Request::unary().bytes()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(next.answer().await.status(), 200);
    call.chunk(DONE).await;
    checks::ends_same(client, call, [&event("a"), DONE].concat().as_bytes()).await;
    assert_eq!(gateway.metric("connections_refused_total", &[("reason", "max")]).await, 0.0);
}

/// C17: a flood of connections from one address is turned away, and everybody else is served all the while.
#[tokio::test]
async fn c17_a_flood_from_one_address_is_turned_away() {
    many_descriptors();
    let row =
        Row::start(1, |settings| per_ip(20)(settings).set("server.request.header_timeout", "60s")).await;
    let gateway = row.gateway.addr;
    let flood = tokio::spawn(async move {
        let mut open = Vec::new();
        for _ in 0..1000 {
            open.push(client_from([127, 0, 0, 2], gateway).await);
        }
        open
    });
    for _ in 0..10 {
        assert_eq!(row.streams(5).await, vec![Told::whole(); 5]);
    }
    let flood = flood.await.expect("all were taken or refused");
    row.gateway.wait_metric("connections_refused_total", &[("reason", "per_ip")], 980.0).await;
    row.told("completed", 50, json!({ "client": "127.0.0.1", "status": 200 })).await;
    row.gateway
        .wait_log("server.connections.per_ip = 20 are open from one address (the last from 127.0.0.2)")
        .await;
    let told = row.gateway.log().matches("connections refused").count();
    assert!(told < 60, "{told} lines for 980 connections");
    drop(flood);
    row.gateway.wait_metric("connections_active", &[], 0.0).await;
    let mut again = client_from([127, 0, 0, 2], gateway).await;
    again.send(Request::chat().bytes()).await;
    assert_eq!(Told::of(&again.answer().await), Told::whole(), "its places have come back");
}

/// A proxy's connections are those of many, and have no bound of their own; those that it introduces have.
#[tokio::test]
async fn connections_are_counted_by_whom_the_proxy_names() {
    let (gateway, mut upstream) = one_engine(|settings| per_ip(1)(trusting(settings))).await;
    let (_first, _call) = streaming(&gateway, &mut upstream, &["a"]).await;
    let (_second, _call) = streaming(&gateway, &mut upstream, &["b"]).await;

    let (gateway, mut upstream) = one_engine(|settings| per_ip(1)(introduced(settings))).await;
    let mut clients = Vec::new();
    for line in ["PROXY TCP4 192.0.2.7 10.0.0.1 1 80\r\n", "PROXY TCP6 2001:db8::1 ::1 1 80\r\n"] {
        let mut client = Client::connect(gateway.addr).await;
        client.send([line.as_bytes(), &Request::unary().bytes()].concat()).await;
        upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
        clients.push(client);
    }
    for line in ["PROXY TCP4 192.0.2.7 10.0.0.1 2 80\r\n", "PROXY TCP6 2001:db8::2 ::1 2 80\r\n"] {
        let mut again = Client::connect(gateway.addr).await;
        again.send(line).await;
        checks::rejected(&again.answer().await, 503, "overloaded");
    }
    gateway.wait_metric("connections_refused_total", &[("reason", "per_ip")], 2.0).await;
    let told = gateway.all_access(4).await;
    let refused: Vec<_> =
        told.iter().filter(|line| line["status"] == 503).map(|line| &line["client"]).collect();
    assert_eq!(refused, ["192.0.2.7", "2001:db8::2"]);
}

/// Both versions of the header name the client; what follows it, in the same packet or byte by byte, is HTTP.
#[tokio::test]
async fn a_proxy_header_names_the_client() {
    let (gateway, mut upstream) = one_engine(introduced).await;
    let line = b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n";
    let request = Request::unary();
    for before in [&line[..], &binary()] {
        assert_eq!(asked_as(&gateway, &mut upstream, before, &request).await, "192.0.2.7");
    }
    // A health check of the proxy itself has its own address.
    let check = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    assert_eq!(asked_as(&gateway, &mut upstream, check, &request).await, "127.0.0.1");
    let mut slow = Client::connect(gateway.addr).await;
    for byte in [&line[..], &Request::unary().bytes()].concat() {
        slow.send([byte]).await;
    }
    let call = upstream.call().await;
    assert_eq!(call.request.head.get("x-forwarded-for"), Some("192.0.2.7"));
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(slow.answer().await.status(), 200);
    // Whom the header names is believed no more than any other client.
    let claims = Request::unary().header("X-Forwarded-For: 6.6.6.6");
    assert_eq!(asked_as(&gateway, &mut upstream, line, &claims).await, "192.0.2.7");
    // Least of all where it names nobody.
    let mut nobody = Client::connect(gateway.addr).await;
    nobody.send([b"PROXY UNKNOWN\r\n", &*claims.bytes()].concat()).await;
    let call = upstream.call().await;
    assert_eq!(call.request.head.get("x-forwarded-for"), None);
    call.answer(json_answer(ANSWER)).await;
    assert_eq!(nobody.answer().await.status(), 200);
    gateway.wait_access("nobody", |line| line["client"].is_null()).await;
    // Unless it is a proxy as well.
    let chained = b"PROXY TCP4 10.0.0.9 10.0.0.1 4711 80\r\n";
    assert_eq!(asked_as(&gateway, &mut upstream, chained, &claims).await, "6.6.6.6, 10.0.0.9");
}

/// The header comes before TLS, and HTTP/2 works behind it.
#[tokio::test]
async fn a_proxy_header_comes_before_tls() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let pair = Pair::make(dir.path(), &["localhost"]);
    let tls = json!({ "certificates": [pair.named()] });
    let (gateway, mut upstream) =
        one_engine(|settings| introduced(settings).set("server.listen.0.tls", tls)).await;
    for alpn in [&b"\x08http/1.1"[..], b"\x02h2"] {
        let offer = Offer { alpn, ..Offer::default() };
        let mut stream =
            support::tls::connect_behind(gateway.addr, offer, &binary()).await.expect("a handshake");
        if alpn.ends_with(b"h2") {
            stream.write_all(&support::frames::chat_with_open_windows()).await.expect("send");
        } else {
            stream.write_all(&Request::chat().bytes()).await.expect("send");
        }
        let mut call = upstream.call().await;
        assert_eq!(call.request.head.get("x-forwarded-for"), Some("192.0.2.7"));
        assert_eq!(call.request.head.get("x-forwarded-proto"), Some("https"));
        call.open().await;
        call.chunk(DONE).await;
        call.finish().await;
        let mut first = [0; 9];
        within("an answer", SOON, stream.read_exact(&mut first)).await.expect("an answer");
    }
    let lines = gateway.all_access(2).await;
    assert!(lines.iter().all(|line| line["client"] == "192.0.2.7"), "{lines:?}");
}

/// Whoever does not begin with the header, or not in time, is closed without an answer and counted.
#[tokio::test]
async fn what_is_no_proxy_header_is_closed() {
    let short = |settings: Settings| introduced(settings).set("server.request.header_timeout", "2s");
    let (gateway, mut upstream) = one_engine(short).await;
    let bad: [&[u8]; 6] = [
        &Request::chat().bytes(),
        b"PROXY TCP4 192.0.2.7\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1 80\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x01x",
        b"\x16\x03\x01\x02\0",
        // Nothing more comes: it is given up at its deadline.
        b"PROXY TCP4 192.0",
    ];
    for (n, bytes) in (1..).zip(bad) {
        let mut client = Client::connect(gateway.addr).await;
        client.send(bytes).await;
        client.closed().await;
        assert_eq!(client.raw(), b"", "no answer to {bytes:?}");
        gateway.wait_metric("connections_refused_total", &[("reason", "proxy_header")], f64::from(n)).await;
    }
    gateway.wait_log("no PROXY header, though the listener wants one").await;
    // Whoever is no proxy may not say for whom he asks.
    let mut other = client_from([127, 0, 0, 2], gateway.addr).await;
    drop(other.try_send(b"PROXY TCP4 192.0.2.7 10.0.0.1 1 80\r\n").await);
    other.closed().await;
    gateway.wait_metric("connections_refused_total", &[("reason", "not_trusted")], 1.0).await;
    gateway.wait_log("takes connections of server.trusted_proxies only (the last from 127.0.0.2)").await;
    gateway.wait_metric("connections_active", &[], 0.0).await;
    upstream.assert_not_asked();
    assert_eq!(gateway.metric("requests_total", &[]).await, 0.0);
}

/// On a listener that is not marked the header is a bad request, even from a proxy.
#[tokio::test]
async fn an_unasked_proxy_header_is_a_bad_request() {
    let (gateway, mut upstream) = one_engine(trusting).await;
    for header in [b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n".to_vec(), binary()] {
        let mut client = Client::connect(gateway.addr).await;
        client.send([header, Request::chat().bytes()].concat()).await;
        checks::rejected(&client.answer().await, 400, "invalid_request");
        client.closed().await;
    }
    upstream.assert_not_asked();
    assert!(gateway.all_access(2).await.iter().all(|line| line["client"] == "127.0.0.1"));
}

crate::over_h2!(nobody_is_believed_without_a_reason);
