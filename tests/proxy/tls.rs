//! TLS toward clients: ALPN, certificates by name, time for the handshake, and files that cannot be used.

use crate::support;
use crate::support::frames;
use crate::support::gateway::{config_file, exit_code, output};
use crate::support::tls::{Offer, Pair, connect, h2_client};
use crate::support::wait::{SOON, within};
use crate::support::wire::{ANSWER, CHAT_PATH, DONE, MIB, Request, chunk, event, json_answer, whole_stream};
use crate::support::{Client, End, Gateway, Settings, Upstream, checks};
use openssl::ssl::SslVersion;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A gateway with TLS on its only listener, one certificate for each list of names, and one engine.
async fn secured(
    names: &[&[&str]],
    adjust: impl FnOnce(Settings) -> Settings,
) -> (Gateway, Upstream, Vec<Pair>, TempDir) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let pairs: Vec<Pair> = names.iter().map(|names| Pair::make(dir.path(), names)).collect();
    let upstream = Upstream::start().await;
    let named: Vec<Value> = pairs.iter().map(Pair::named).collect();
    let settings =
        Settings::new(&[upstream.addr]).set("server.listen.0.tls", json!({ "certificates": named }));
    (Gateway::start(adjust(settings)).await, upstream, pairs, dir)
}

async fn localhost() -> (Gateway, Upstream, Vec<Pair>, TempDir) {
    secured(&[&["localhost"]], support::as_is).await
}

/// H08: ten streams beside each other over TLS, each event at the client before the next is written.
#[tokio::test]
async fn h08_ten_streams_over_tls_are_prompt() {
    let (gateway, mut upstream, ..) = localhost().await;
    let mut first = h2_client(gateway.addr).await;
    let mut open = Vec::new();
    for _ in 0..10 {
        let mut client = first.sibling();
        client.send(Request::chat().bytes()).await;
        let mut call = upstream.call().await;
        assert_eq!(call.request.head.get("x-forwarded-proto"), Some("https"));
        call.open().await;
        assert_eq!(client.head().await.status(), 200);
        open.push((client, call, String::new()));
    }
    for n in 0..5 {
        for (client, call, sent) in &mut open {
            let event = event(&n.to_string());
            call.chunk(&event).await;
            *sent += &event;
            client.until_body(sent.as_bytes()).await;
        }
    }
    for (client, mut call, mut sent) in open {
        call.chunk(DONE).await;
        sent += DONE;
        checks::ends_same(client, call, sent.as_bytes()).await;
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 10.0).await;
    checks::at_rest(&gateway).await;
}

/// A client that offers HTTP/1.1, or nothing, gets that; connections are kept.
#[tokio::test]
async fn http_1_is_served_over_tls() {
    let (gateway, mut upstream, ..) = localhost().await;
    for alpn in [&b"\x08http/1.1"[..], b"\x05other", b""] {
        let mut stream = connect(gateway.addr, Offer { alpn, ..Offer::default() }).await.unwrap();
        for _ in 0..2 {
            stream.write_all(&Request::unary().bytes()).await.unwrap();
            upstream.call().await.answer(json_answer(ANSWER)).await;
            let mut read = Vec::new();
            while !read.ends_with(ANSWER.as_bytes()) {
                let count = within("the answer", SOON, stream.read_buf(&mut read)).await.unwrap();
                assert!(count > 0, "{}", String::from_utf8_lossy(&read));
            }
            assert!(read.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&read));
        }
    }
    assert_eq!(upstream.connections(), 1);
}

/// TLS 1.2 is the least.
#[tokio::test]
async fn versions_before_1_2_are_refused() {
    let (gateway, ..) = localhost().await;
    for newest in [SslVersion::TLS1, SslVersion::TLS1_1] {
        let told = connect(gateway.addr, Offer { newest, ..Offer::default() }).await.unwrap_err();
        assert!(told.contains("alert protocol version"), "the gateway refuses, not the client: {told}");
    }
    let stream =
        connect(gateway.addr, Offer { newest: SslVersion::TLS1_2, ..Offer::default() }).await.unwrap();
    assert_eq!(stream.ssl().version_str(), "TLSv1.2");
    assert_eq!(stream.ssl().selected_alpn_protocol(), Some(&b"h2"[..]));
}

/// The server name chooses the certificate: the exact name, then `*.`, then the first of the file.
#[tokio::test]
async fn the_server_name_chooses_the_certificate() {
    let names: [&[&str]; 3] = [&["first.test"], &["*.wild.test", "also.test"], &["exact.wild.test"]];
    let (gateway, _upstream, pairs, _dir) = secured(&names, support::as_is).await;
    let cases = [
        ("first.test", 0),
        ("unknown.test", 0),
        ("a.wild.test", 1),
        ("A.WILD.TEST", 1),
        ("also.test", 1),
        ("a.b.wild.test", 0),
        ("wild.test", 0),
        ("exact.wild.test", 2),
    ];
    for (name, wanted) in cases {
        let stream = connect(gateway.addr, Offer { name, ..Offer::default() }).await.unwrap();
        let shown = stream.ssl().peer_certificate().unwrap().to_der().unwrap();
        assert_eq!(shown, pairs[wanted].der(), "{name}");
        assert_eq!(stream.ssl().selected_alpn_protocol(), Some(&b"h2"[..]), "{name}");
    }
}

/// A renewed certificate is shown to connections that come after a reload; the file of settings is the same.
#[tokio::test]
async fn a_renewed_certificate_is_taken_on_reload() {
    let (gateway, mut upstream, pairs, dir) = localhost().await;
    let (mut client, mut call) = {
        let mut client = h2_client(gateway.addr).await;
        client.send(Request::chat().bytes()).await;
        (client, upstream.call().await)
    };
    let renewed = Pair::make(dir.path(), &["localhost"]);
    assert_eq!(gateway.admin_post("/reload").await.json()["result"], "unchanged");
    let shown = async || {
        let stream = connect(gateway.addr, Offer::default()).await.unwrap();
        stream.ssl().peer_certificate().unwrap().to_der().unwrap()
    };
    assert_eq!(shown().await, renewed.der());
    std::fs::write(&pairs[0].cert, "no certificate").unwrap();
    let answer = gateway.admin_post("/reload").await;
    assert_eq!(answer.status(), 422, "{}", answer.text());
    assert!(answer.text().contains("server.listen[0].tls.certificates[0]"), "{}", answer.text());
    assert_eq!(shown().await, renewed.der(), "the one that was good is still shown");
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    call.chunk(DONE).await;
    checks::ends_same(client, call, DONE.as_bytes()).await;
}

/// Leaving is seen through TLS: by a reset of the stream, and by the end of the connection.
#[tokio::test]
async fn leaving_over_tls_stops_the_engine() {
    for by_reset in [true, false] {
        let (gateway, mut upstream, ..) = localhost().await;
        let mut client = h2_client(gateway.addr).await;
        client.send(Request::chat().bytes()).await;
        let mut call = upstream.call().await;
        call.open().await;
        call.chunk(event("1")).await;
        assert_eq!(client.head().await.status(), 200);
        client.until_body(event("1").as_bytes()).await;
        let kept = if by_reset {
            client.h2().cancel();
            Some(client)
        } else {
            client.close();
            None
        };
        checks::cancel(&gateway, &mut call, "stream").await;
        drop(kept);
    }
}

/// A client that takes nothing is cut through TLS as well, whatever it speaks.
#[tokio::test]
async fn a_client_that_takes_nothing_is_cut() {
    let short = |settings: Settings| settings.set("stream.write_stall", "700ms");
    for alpn in [&b"\x08http/1.1"[..], b"\x02h2"] {
        let (gateway, mut upstream, ..) = secured(&[&["localhost"]], short).await;
        let mut stream = connect(gateway.addr, Offer { alpn, ..Offer::default() }).await.unwrap();
        if alpn.ends_with(b"h2") {
            stream.write_all(&frames::chat_with_open_windows()).await.unwrap();
        } else {
            stream.write_all(&Request::chat().bytes()).await.unwrap();
        }
        let mut call = upstream.call().await;
        call.open().await;
        let (_, flood) = call.flood(chunk(event(&"x".repeat(10_000))), 64 * MIB);
        assert!(within("the engine is left", 2 * SOON, flood).await.is_none());
        assert_eq!(gateway.only_access().await["outcome"], "client_stalled");
        checks::at_rest(&gateway).await;
    }
}

/// Plain HTTP on a port that speaks TLS is told so in the clear, counted and logged; what is no HTTP is not.
#[tokio::test]
async fn plain_http_is_pointed_to_https() {
    let (gateway, mut upstream, ..) = localhost().await;
    for (n, request) in (1..).zip([
        Request::chat(),
        Request::bare("GET", "/healthz"),
        Request::post("/v1/a", vec![b'x'; 100_000]),
    ]) {
        let mut client = Client::connect(gateway.addr).await;
        client.send(request.bytes()).await;
        let answer = client.answer().await;
        checks::rejected(&answer, 400, "invalid_request");
        assert!(answer.text().contains("use https"), "{}", answer.text());
        client.closed().await;
        gateway.wait_metric("connections_refused_total", &[("reason", "plain_http")], f64::from(n)).await;
        gateway.wait_metric("tls_handshakes_total", &[("result", "plain_http")], f64::from(n)).await;
    }
    for line in gateway.all_access(3).await {
        assert_eq!(
            (&line["status"], &line["error"], &line["client"]),
            (&400.into(), &"invalid_request".into(), &"127.0.0.1".into())
        );
    }
    gateway.wait_log("plain HTTP on a listener with tls (the last from 127.0.0.1)").await;
    let mut garbage = Client::connect(gateway.addr).await;
    garbage.send("SSH-2.0-x\r\n").await;
    garbage.closed().await;
    assert!(!String::from_utf8_lossy(garbage.raw()).contains("HTTP"));
    gateway.wait_metric("connections_refused_total", &[("reason", "tls")], 1.0).await;
    assert_eq!(gateway.metric("requests_total", &[]).await, 3.0);
    upstream.assert_not_asked();
    // A client with TLS is served beside them.
    let mut client = h2_client(gateway.addr).await;
    client.send(Request::unary().bytes()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// A handshake that does not come has no longer than a head.
#[tokio::test]
async fn handshakes_are_bounded_in_time() {
    let short = |settings: Settings| settings.set("server.request.header_timeout", "2s");
    let (gateway, mut upstream, ..) = secured(&[&["localhost"]], short).await;
    for said in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        let mut client = Client::over(TcpStream::connect(gateway.addr).await.unwrap());
        client.send(said).await;
        client.closed().await;
    }
    let mut client = h2_client(gateway.addr).await;
    client.send(Request::chat().bytes()).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(whole_stream()).await;
    call.finish().await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), whole_stream().as_bytes());
    assert_eq!(gateway.only_access().await["path"], CHAT_PATH);
    let agreed = [("result", "ok"), ("version", "TLSv1.3"), ("protocol", "h2")];
    for (labels, times) in [(&agreed[..], 1.0), (&[("result", "timeout")], 2.0), (&[], 3.0)] {
        gateway.wait_metric("tls_handshakes_total", labels, times).await;
    }
}

/// Files that cannot be used end the start, and a check, with the place and the fix.
#[test]
fn unusable_files_are_errors_of_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (Pair::make(dir.path(), &["one.test"]), Pair::make(dir.path(), &["two.test"]));
    let (missing, text) = (dir.path().join("missing.pem"), dir.path().join("text.pem"));
    std::fs::write(&text, "no PEM").unwrap();
    let cases = [
        (&missing, &one.key, 75, "cannot be read"),
        (&one.cert, &missing, 75, "cannot be read"),
        (&text, &one.key, 64, "is no certificate"),
        (&one.cert, &text, 64, "is no private key"),
        (&one.key, &one.key, 64, "is no certificate"),
        (&one.cert, &two.key, 64, "does not belong"),
    ];
    for (cert, key, code, words) in cases {
        let certificates = json!([{ "cert": two.cert, "key": two.key }, { "cert": cert, "key": key }]);
        let settings = Settings::new(&["127.0.0.1:1".parse().unwrap()])
            .set("server.listen.0.tls", json!({ "certificates": certificates }));
        let (_dir, file) = config_file(&settings.text(&dir.path().join("access.log")));
        let file = file.to_str().unwrap();
        for command in ["check", "run"] {
            assert_eq!(exit_code(&[command, "-c", file]), Some(code), "{command}: {words}");
            let (_, told) = output(&[command, "-c", file], &[]);
            let place = format!("{file}:1: server.listen[0].tls.certificates[1]");
            assert!(told.contains(&place), "{told}");
            assert!(told.contains(words), "{told}");
            assert!(told.matches("No such file").count() <= 1, "{told}");
        }
    }
}
