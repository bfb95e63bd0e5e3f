//! Listeners beside the plain port: unix sockets, IPv6, client certificates, the redirect to https.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support;
use crate::support::certificates::Authority;
use crate::support::frames;
use crate::support::tls::{Offer, Pair, connect, connect_showing};
use crate::support::wait::{SOON, within};
use crate::support::wire::{ANSWER, Request, event, json_answer, whole_stream};
use crate::support::{Client, Gateway, Settings, Upstream, checks, one_engine};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A second listener beside the first.
fn beside(settings: Settings, listener: serde_json::Value) -> Settings {
    settings.set("server.listen", json!([{ "address": "127.0.0.1:0" }, listener]))
}

/// Everything that comes over a unix socket until it ends.
async fn over_unix(path: &Path, bytes: &[u8]) -> String {
    let mut stream = within("connect", SOON, UnixStream::connect(path)).await.expect("connect");
    stream.write_all(bytes).await.expect("send");
    let mut told = Vec::new();
    within("an answer", SOON, stream.read_to_end(&mut told)).await.expect("read");
    String::from_utf8(told).expect("UTF-8")
}

/// A unix socket has its mode, serves streams, and is told at the start.
#[tokio::test]
async fn a_unix_socket_serves() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("http.sock");
    let address = format!("unix:{}", path.display());
    // One that somebody has left behind is in nobody's way.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bind"));
    let (gateway, mut upstream) =
        one_engine(|settings| beside(settings, json!({ "address": address, "mode": "0600" }))).await;
    assert_eq!(gateway.listeners[1], address);
    assert_eq!(path.metadata().expect("a socket").permissions().mode() & 0o777, 0o600);
    let request = Request::chat().lines(&["Connection: close", "X-Forwarded-For: 192.0.2.7"]).bytes();
    let asking = tokio::spawn(async move { over_unix(&path, &request).await });
    let mut call = upstream.call().await;
    assert_eq!(call.request.head.get("x-forwarded-for"), None, "nobody vouches for what it says");
    call.open().await;
    call.chunk(whole_stream()).await;
    call.finish().await;
    let told = asking.await.expect("an answer");
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    assert!(told.contains(&event("1")) || told.contains("data: "), "{told}");
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["client"]), (&json!("completed"), &json!(null)), "{line}");
    // The port beside it serves as well.
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// Who connects to a unix socket is believed where the file says so.
#[tokio::test]
async fn a_proxy_on_a_unix_socket_can_be_trusted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("http.sock");
    let listener = json!({ "address": format!("unix:{}", path.display()), "proxy_protocol": true });
    let (gateway, mut upstream) = one_engine(|settings| {
        beside(settings, listener).set("server.trusted_proxies", json!(["unix:", "192.0.2.0/24"]))
    })
    .await;
    let bytes = [
        &b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n"[..],
        &Request::unary().lines(&["Connection: close", "X-Forwarded-For: 198.51.100.9"]).bytes(),
    ]
    .concat();
    let asking = tokio::spawn(async move { over_unix(&path, &bytes).await });
    let call = upstream.call().await;
    assert_eq!(call.request.head.get("x-forwarded-for"), Some("198.51.100.9, 192.0.2.7"));
    call.answer(json_answer(ANSWER)).await;
    assert!(asking.await.expect("an answer").starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(gateway.only_access().await["client"], "198.51.100.9");
}

/// IPv6 has a listener of its own; the client's address is told as it is.
#[tokio::test]
async fn ipv6_is_served() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return support::not_run("ipv6_is_served", "this machine has no IPv6 loopback address");
    }
    let both = |settings| beside(settings, json!({ "address": "[::1]:0" }));
    let (gateway, mut upstream) = one_engine(both).await;
    assert!(gateway.listener(1).is_ipv6());
    for (listener, address) in [(gateway.listener(0), "127.0.0.1"), (gateway.listener(1), "::1")] {
        let mut client = Client::connect(listener).await;
        client.send(Request::unary().bytes()).await;
        let call = upstream.call().await;
        assert_eq!(call.request.head.get("x-forwarded-for"), Some(address));
        call.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
        gateway.wait_access(address, |line| line["client"] == address).await;
    }
}

/// A gateway that serves only clients of an authority.
async fn guarded(authority: &Authority) -> (Gateway, Upstream, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (one, other) = (Pair::make(dir.path(), &["localhost"]), Pair::make(dir.path(), &["other.test"]));
    let ca = dir.path().join("clients.pem");
    std::fs::write(&ca, authority.pem()).expect("write");
    let tls = json!({ "certificates": [one.named(), other.named()], "client_ca": ca });
    let (gateway, upstream) = one_engine(|settings| settings.set("server.listen.0.tls", tls)).await;
    (gateway, upstream, dir)
}

/// With `client_ca` only a client that shows a certificate of that authority is served, whatever name it asks
/// for and whatever it speaks.
#[tokio::test]
async fn only_clients_with_a_certificate_are_served() {
    let authority = Authority::new();
    let (gateway, mut upstream, _dir) = guarded(&authority).await;
    let known = authority.vouches_for(&["client.test"]);
    for (name, alpn) in [("localhost", &b"\x08http/1.1"[..]), ("other.test", b""), ("other.test", b"\x02h2")]
    {
        let offer = Offer { name, alpn, ..Offer::default() };
        let mut stream = connect_showing(gateway.addr, offer, &known).await.expect("a handshake");
        let request =
            if alpn.ends_with(b"h2") { frames::chat_with_open_windows() } else { Request::chat().bytes() };
        stream.write_all(&request).await.expect("send");
        let mut call = upstream.call().await;
        call.open().await;
        call.chunk(whole_stream()).await;
        call.finish().await;
        let mut first = [0; 9];
        within("an answer", SOON, stream.read_exact(&mut first)).await.expect("an answer");
    }
    let strangers = [
        Authority::new().vouches_for(&["client.test"]),
        authority.vouched_for(&["client.test"]),
        support::certificates::Identity::of_its_own(&["client.test"]),
    ];
    for (n, stranger) in (1..).zip(&strangers) {
        for name in ["localhost", "other.test"] {
            let offer = Offer { name, ..Offer::default() };
            refused(connect_showing(gateway.addr, offer, stranger).await).await;
        }
        gateway.wait_metric("connections_refused_total", &[("reason", "tls")], f64::from(2 * n)).await;
    }
    refused(connect(gateway.addr, Offer::default()).await).await;
    // TLS 1.2 tells the client in the handshake itself.
    let old = Offer { newest: openssl::ssl::SslVersion::TLS1_2, ..Offer::default() };
    assert!(connect(gateway.addr, old).await.is_err());
    gateway.wait_metric("connections_refused_total", &[("reason", "tls")], 8.0).await;
    upstream.assert_not_asked();
    assert_eq!(gateway.all_access(3).await.len(), 3);
}

/// In TLS 1.3 a client learns behind its own part of the handshake that it is not wanted.
async fn refused(connected: Result<tokio_openssl::SslStream<tokio::net::TcpStream>, String>) {
    let Ok(mut stream) = connected else { return };
    drop(stream.write_all(&Request::chat().bytes()).await);
    let mut answer = Vec::new();
    let read = within("the connection ends", SOON, stream.read_to_end(&mut answer)).await;
    assert!(read.is_err() || answer.is_empty(), "{:?}", String::from_utf8_lossy(&answer));
}

/// The authority is read again on reload: the new one's clients come in, the old one's do not. A file that is
/// none changes nothing.
#[tokio::test]
async fn the_authority_of_clients_is_read_again() {
    let (old, new) = (Authority::new(), Authority::new());
    let (gateway, mut upstream, dir) = guarded(&old).await;
    let (of_old, of_new) = (old.vouches_for(&["a.test"]), new.vouches_for(&["b.test"]));
    let file = dir.path().join("clients.pem");
    let offer = Offer { alpn: b"", ..Offer::default() };
    std::fs::write(&file, "no certificate").expect("write");
    let answer = gateway.admin_post("/reload").await;
    assert_eq!(answer.status(), 422, "{}", answer.text());
    assert!(answer.text().contains("server.listen[0].tls.client_ca"), "{}", answer.text());
    served(connect_showing(gateway.addr, offer, &of_old).await, &mut upstream).await;
    refused(connect_showing(gateway.addr, offer, &of_new).await).await;
    std::fs::write(&file, new.pem()).expect("write");
    assert_eq!(gateway.admin_post("/reload").await.json()["result"], "unchanged");
    served(connect_showing(gateway.addr, offer, &of_new).await, &mut upstream).await;
    refused(connect_showing(gateway.addr, offer, &of_old).await).await;
}

async fn served(
    connected: Result<tokio_openssl::SslStream<tokio::net::TcpStream>, String>,
    upstream: &mut Upstream,
) {
    let mut stream = connected.expect("a handshake");
    stream.write_all(&Request::unary().bytes()).await.expect("send");
    upstream.call().await.answer(json_answer(ANSWER)).await;
    let mut status = [0; 12];
    within("an answer", SOON, stream.read_exact(&mut status)).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200");
}

/// A file of authorities that cannot be used ends the start, and a check, with the place.
#[test]
fn an_unusable_authority_is_an_error_of_the_start() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let pair = Pair::make(dir.path(), &["localhost"]);
    let text = dir.path().join("text.pem");
    std::fs::write(&text, "no PEM").expect("write");
    for (ca, code, words) in
        [(dir.path().join("missing.pem"), 75, "cannot be read"), (text, 64, "is no certificate")]
    {
        let tls = json!({ "certificates": [pair.named()], "client_ca": ca });
        let settings = Settings::new(&["127.0.0.1:1".parse().unwrap()]).set("server.listen.0.tls", tls);
        let (_dir, file) = support::gateway::config_file(&settings.text(&dir.path().join("access.log")));
        for command in ["check", "run"] {
            let (exit, told) = support::gateway::output(&[command, "-c", file.to_str().unwrap()], &[]);
            assert_eq!(exit, Some(code), "{told}");
            assert!(told.contains(":1: server.listen[0].tls.client_ca") && told.contains(words), "{told}");
        }
    }
}

/// Every request on a listener that redirects is sent to https, with its path and query, by a Host that is one.
#[tokio::test]
async fn plain_http_is_sent_to_https() {
    let redirects =
        |port: u16| move |settings: Settings| settings.set("server.listen.0.redirect_https", port);
    let (gateway, mut upstream) = one_engine(redirects(8443)).await;
    let table = [
        (Request::bare("GET", "/v1/models?a=b%20c"), "https://gateway.test:8443/v1/models?a=b%20c"),
        (Request::bare("GET", "/no/such/path"), "https://gateway.test:8443/no/such/path"),
        (Request::bare("GET", "//evil.example/"), "https://gateway.test:8443//evil.example/"),
        (Request::bare("HEAD", "/"), "https://gateway.test:8443/"),
        (Request::bare("OPTIONS", "*"), "https://gateway.test:8443/"),
        (Request::unary(), "https://gateway.test:8443/v1/chat/completions"),
        (
            Request::bare("GET", "/a").without("host").header("Host: [2001:db8::7]:8080"),
            "https://[2001:db8::7]:8443/a",
        ),
        (
            Request::bare("GET", "/a").without("host").header("Host: llm.example.com:8080"),
            "https://llm.example.com:8443/a",
        ),
    ];
    for (request, location) in table {
        let mut client = gateway.client().await;
        client.expect_no_body();
        client.send(request.bytes()).await;
        let head = client.head().await;
        assert_eq!((head.status(), head.get("location")), (308, Some(location)));
        assert!(head.get("x-request-id").is_some(), "{head:?}");
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 8.0).await;
    upstream.assert_not_asked();
    let (gateway, _upstream) = one_engine(redirects(443)).await;
    let mut client = gateway.send(&Request::bare("GET", "/")).await;
    assert_eq!(client.head().await.get("location"), Some("https://gateway.test/"));
}

/// A browser follows no redirect of a preflight, and must not be led to: behind one that it follows it no more names
/// the page's origin (`Origin: null`), so that a page has to use the https address itself. A request that needs no
/// preflight names the origin it was sent by, so that the page sees a redirect and not a failed connection.
#[tokio::test]
async fn a_preflight_is_sent_to_https_like_everything_else() {
    let (gateway, mut upstream) = one_engine(|settings| {
        settings
            .set("server.listen.0.redirect_https", 8443)
            .set("cors", json!({ "origins": ["https://chat.example.com"] }))
    })
    .await;
    let origin = "Origin: https://chat.example.com";
    let preflight =
        Request::bare("OPTIONS", "/v1/models").lines(&[origin, "Access-Control-Request-Method: POST"]);
    for request in [preflight, Request::bare("GET", "/v1/models").header(origin)] {
        let mut client = gateway.send(&request).await;
        client.expect_no_body();
        let head = client.head().await;
        assert_eq!((head.status(), head.get("location")), (308, Some("https://gateway.test:8443/v1/models")));
        assert_eq!(head.get("access-control-allow-methods"), None);
        assert_eq!(head.get("access-control-allow-origin"), Some("https://chat.example.com"));
    }
    upstream.assert_not_asked();
}

/// A Host that a browser could take for something else is no place to send it to.
#[tokio::test]
async fn nobody_is_sent_to_a_strange_host() {
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("server.listen.0.redirect_https", 443)).await;
    let hosts = [
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "evil.example%2f",
        "a:b",
        "a..b",
        "[::1",
        "a~b",
        "x:65536",
        ":80",
        "",
    ];
    for host in hosts {
        let request = Request::bare("GET", "/").without("host").header(&format!("Host: {host}"));
        let answer = gateway.ask(&request).await;
        checks::rejected(&answer, 400, "invalid_request");
        assert_eq!(answer.head.get("location"), None);
    }
    // A client of HTTP/1.0 need not say to whom it speaks.
    let answer = gateway.ask(&Request::bare("GET", "/").http10()).await;
    checks::rejected(&answer, 400, "invalid_request");
    upstream.assert_not_asked();
    gateway.wait_metric("requests_total", &[("outcome", "rejected")], hosts.len() as f64 + 1.0).await;
}
