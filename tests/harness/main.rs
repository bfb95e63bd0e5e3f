//! The harness itself, without a gateway: what it sends it can read, and it tells the ends apart.

#[path = "../support/mod.rs"]
mod support;

// Parts of the gateway's benchmark: it judges answers and makes tables and pictures of figures.
#[allow(dead_code, reason = "some faults of answers only the benchmark itself finds")]
#[path = "../../benches/gateway/judge/mod.rs"]
mod judge;
#[path = "../../benches/gateway/sheet/mod.rs"]
mod sheet;

mod benchmark;
mod mutants;
mod rows;

use support::sockets::{Blackhole, Refusing};
use support::wait::{SOON, ms, within};
use support::wire::{ANSWER, CHAT_PATH, DONE, Request, answer, event, json_answer};
use support::{Client, End, Gone, Leave, Upstream, metrics, sse};

async fn ask(upstream: &mut Upstream, request: &Request) -> (Client, support::Call) {
    let mut client = Client::connect(upstream.addr).await;
    client.send(request.bytes()).await;
    (client, upstream.call().await)
}

#[tokio::test]
async fn requests_are_recorded_whatever_their_framing() {
    let mut upstream = Upstream::start().await;
    let body: String = ('a'..='z').cycle().take(100_000).collect();
    for request in [Request::post(CHAT_PATH, &body), Request::post(CHAT_PATH, &body).chunked(777)] {
        let (mut client, call) = ask(&mut upstream, &request).await;
        assert_eq!(call.request.head.line, "POST /v1/chat/completions HTTP/1.1");
        assert_eq!(call.request.body, body.as_bytes());
        call.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.body, ANSWER.as_bytes());
    }
}

#[tokio::test]
async fn a_connection_serves_one_exchange_after_the_other() {
    let mut upstream = Upstream::start().await;
    let (mut client, call) = ask(&mut upstream, &Request::chat()).await;
    call.stream("x").await;
    let reply = client.answer().await;
    assert_eq!((reply.body, reply.end), ([event("x"), DONE.into()].concat().into_bytes(), End::Clean));
    client.send(Request::chat().bytes()).await;
    let mut call = upstream.call().await;
    assert_eq!((call.connection, upstream.connections()), (0, 1));
    call.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1a;foo=bar\r\n").await;
    call.send("abcdefghijklmnopqrstuvwxyz\r\n0\r\nx-usage: 10\r\n\r\nrest").await;
    assert_eq!(client.answer().await.body.len(), 26);
    call.close();
    client.closed().await;
    assert_eq!(client.raw(), b"rest");
}

#[tokio::test]
async fn ends_are_told_apart() {
    let mut upstream = Upstream::start().await;
    for (bytes, end) in [
        (answer("200 OK", &[], "whole"), End::Clean),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort".to_vec(), End::Broken),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".to_vec(), End::Broken),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil close".to_vec(), End::Clean),
    ] {
        let (mut client, mut call) = ask(&mut upstream, &Request::unary()).await;
        call.send(bytes).await;
        call.close();
        assert_eq!(client.answer().await.end, end);
    }
}

#[tokio::test]
async fn the_engine_sees_how_it_is_left() {
    let mut upstream = Upstream::start().await;
    for (how, seen) in [(Leave::Fin, Gone::Fin), (Leave::Reset, Gone::Reset)] {
        let (client, mut call) = ask(&mut upstream, &Request::unary()).await;
        client.leave(how);
        assert_eq!(call.gone().await, seen);
    }
}

#[tokio::test]
async fn odd_ports_are_odd() {
    let refusing = Refusing::start();
    let refused = tokio::net::TcpStream::connect(refusing.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let blackhole = Blackhole::start().await;
    let connect = tokio::net::TcpStream::connect(blackhole.addr());
    assert!(tokio::time::timeout(ms(500), connect).await.is_err(), "a connect stays unanswered");
}

#[tokio::test]
async fn a_flood_ends_when_nobody_reads_and_the_client_leaves() {
    let mut upstream = Upstream::start().await;
    let (client, call) = ask(&mut upstream, &Request::chat()).await;
    let (_, flood) = call.flood(vec![0; 100_000], usize::MAX / 2);
    client.reset();
    assert!(within("the flood ends", SOON, flood).await.is_none());
}

#[test]
fn the_oracle_reads_streams_as_the_rules_say() {
    let expected = vec!["a", "b\nc", "", "d"];
    let stream = "\u{feff}data: a\n\n: comment\n\ndata:b\ndata: c\nid: 1\n\ndata\n\nevent: x\n\ndata: d\n\ndata: lost\n";
    for line_end in ["\n", "\r\n", "\r"] {
        assert_eq!(sse::data(stream.replace('\n', line_end).as_bytes()), expected, "{line_end:?}");
    }
}

#[test]
fn series_are_summed_by_their_labels() {
    let text =
        "# HELP x_total y\nx_total{a=\"1\",b=\"2\"} 3\nx_total{a=\"1\",b=\"3\"} 4\nx_total_more 9\ny 5\n";
    assert_eq!(metrics::value(text, "x_total", &[]), 7.0);
    assert_eq!(metrics::value(text, "x_total", &[("b", "3"), ("a", "1")]), 4.0);
    assert_eq!(metrics::value(text, "x_total", &[("b", "4")]), 0.0);
    assert_eq!(metrics::value(text, "y", &[]), 5.0);
}
