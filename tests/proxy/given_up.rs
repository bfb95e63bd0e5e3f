//! Who takes nothing until he is given up gets a reset: the kernel keeps nothing for him, and what he has does not
//! look whole.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use crate::support::sockets::{connect_narrow, unsent_to};
use crate::support::tls::{Offer, Pair, connect};
use crate::support::wait::{SOON, wait_until, within};
use crate::support::wire::{CHAT_PATH, MIB, Request, chat_of, chunk, event, json_answer};
use crate::support::{Gateway, Settings, Upstream, checks, frames, h2_engine, one_engine, score};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

fn soon_stalled(settings: Settings) -> Settings {
    settings.set("stream.write_stall", "700ms")
}

/// Floods a client that has asked and reads nothing until the engine is left.
async fn flood_until_given_up(upstream: &mut Upstream, client: SocketAddr) {
    let mut call = upstream.call().await;
    call.narrow();
    call.open().await;
    score::struck(1, "a client that does not read");
    let (_, flood) = call.flood(chunk(event(&"x".repeat(64 * 1024))), usize::MAX / 2);
    let flood = tokio::spawn(flood);
    wait_until("the kernel holds bytes for the client", SOON, || unsent_to(client) > 0).await;
    let left = within("the engine is left", SOON, flood).await.expect("the flood does not panic");
    assert!(left.is_none(), "the engine is left by force");
}

/// The kernel has let go of all that was for this socket, whose own kernel knows of a reset.
async fn was_reset(socket: &mut TcpStream) {
    let addr = socket.local_addr().expect("an address");
    wait_until("the kernel holds nothing any more", SOON, || unsent_to(addr) == 0).await;
    let mut bytes = vec![0; 64 * 1024];
    let end = within("the end", SOON, async {
        loop {
            match socket.read(&mut bytes).await {
                Ok(0) => panic!("it ends as if it were whole"),
                Ok(_) => {}
                Err(error) => return error.kind(),
            }
        }
    });
    assert_eq!(end.await, ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_is_given_up_is_reset() {
    let (gateway, mut upstream) = one_engine(soon_stalled).await;
    let mut client = connect_narrow(gateway.addr, 4096).await;
    client.write_all(&Request::chat().bytes()).await.expect("send");
    flood_until_given_up(&mut upstream, client.local_addr().expect("an address")).await;
    assert_eq!(gateway.only_access().await["outcome"], "client_stalled");
    was_reset(&mut client).await;
    checks::at_rest(&gateway).await;
}

/// So is one whose time as a whole is over while a write waits for it.
#[tokio::test]
async fn a_client_whose_time_is_over_is_reset() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("timeouts.total", "1s").set("stream.write_stall", "30s")).await;
    let mut client = connect_narrow(gateway.addr, 4096).await;
    client.write_all(&Request::chat().bytes()).await.expect("send");
    flood_until_given_up(&mut upstream, client.local_addr().expect("an address")).await;
    assert_eq!(gateway.only_access().await["outcome"], "timeout");
    was_reset(&mut client).await;
    checks::at_rest(&gateway).await;
}

#[tokio::test]
async fn a_client_over_tls_that_is_given_up_is_reset() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let named = Pair::make(dir.path(), &["localhost"]).named();
    let (gateway, mut upstream) = one_engine(|settings| {
        soon_stalled(settings).set("server.listen.0.tls", json!({ "certificates": [named] }))
    })
    .await;
    let offer = Offer { alpn: b"\x08http/1.1", ..Offer::default() };
    let mut client = connect(gateway.addr, offer).await.expect("a handshake");
    client.write_all(&Request::chat().bytes()).await.expect("send");
    flood_until_given_up(&mut upstream, client.get_ref().local_addr().expect("an address")).await;
    assert_eq!(gateway.only_access().await["outcome"], "client_stalled");
    // Below TLS: what comes is ciphertext, and only its end counts.
    was_reset(client.get_mut()).await;
    checks::at_rest(&gateway).await;
}

/// A socket that takes nothing ends its HTTP/2 connection, by a reset too.
#[tokio::test]
async fn an_http_2_connection_that_is_given_up_is_reset() {
    let (gateway, mut upstream) = h2_engine(soon_stalled).await;
    let mut client = connect_narrow(gateway.addr, 4096).await;
    client.write_all(&frames::chat_with_open_windows()).await.expect("send");
    flood_until_given_up(&mut upstream, client.local_addr().expect("an address")).await;
    assert_eq!(gateway.only_access().await["outcome"], "client_stalled");
    was_reset(&mut client).await;
    checks::at_rest(&gateway).await;
}

/// An engine that takes a connection and reads nothing of a large request.
async fn deaf_engine() -> (TcpListener, SocketAddr) {
    let socket = TcpSocket::new_v4().expect("socket");
    socket.set_recv_buffer_size(4096).expect("SO_RCVBUF");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("bind");
    let engine = socket.listen(16).expect("listen");
    let addr = engine.local_addr().expect("an address");
    (engine, addr)
}

/// An engine that reads nothing until its time is over gets a reset, whether the rest of the request is still with
/// us or all of it with the kernel.
#[tokio::test]
async fn an_engine_that_reads_nothing_is_reset() {
    for size in [8 * MIB, 100 * 1024] {
        let (engine, addr) = deaf_engine().await;
        let settings = Settings::new(&[addr]).set("timeouts.first_event", "1s").set("timeouts.unary", "1s");
        let gateway = Gateway::start(settings).await;
        let mut client = gateway.send(&Request::post(CHAT_PATH, chat_of(size))).await;
        let (mut held, _) = within("a connection", SOON, engine.accept()).await.expect("accept");
        wait_until("the kernel holds bytes for the engine", SOON, || unsent_to(addr) > 0).await;
        score::struck(1, "an engine that does not read");
        assert_eq!(client.answer().await.status(), 504, "{size}");
        was_reset(&mut held).await;
        checks::at_rest(&gateway).await;
    }
}

/// An answer that fits the socket has been written, and its connection is closed: what its client does not take the
/// kernel offers for half a minute, not for five.
#[tokio::test]
async fn the_rest_of_a_whole_answer_is_not_offered_for_ever() {
    let brief = |settings: Settings| settings.set("server.request.keepalive", "300ms");
    let (gateway, mut upstream) = one_engine(brief).await;
    let mut client = connect_narrow(gateway.addr, 4096).await;
    client.write_all(&Request::unary().bytes()).await.expect("send");
    let answer = format!("{{\"choices\":[],\"padding\":\"{}\"}}", "x".repeat(90 * 1024));
    upstream.call().await.answer(json_answer(&answer)).await;
    assert_eq!(gateway.only_access().await["outcome"], "completed");
    gateway.wait_metric("connections_active", &[], 0.0).await;
    score::struck(1, "a client that does not read");
    let addr = client.local_addr().expect("an address");
    assert!(unsent_to(addr) > 0, "the kernel holds what has been written");
    wait_until("the kernel holds nothing any more", Duration::from_secs(100), || unsent_to(addr) == 0).await;
    was_reset(&mut client).await;
}
