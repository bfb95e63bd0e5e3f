//! Heads at the admin listener: what is wrong with one is told, and nothing is read without end.

use crate::support::{Client, Gateway, as_is, one_engine};

/// What is answered to these bytes, which end the connection.
async fn refused(gateway: &Gateway, bytes: impl AsRef<[u8]>) -> (u16, String) {
    let mut client = Client::connect(gateway.admin).await;
    // It may be refused before all of it is sent.
    drop(client.try_send(bytes).await);
    let answer = client.answer().await;
    assert_eq!(answer.head.get("connection"), Some("close"));
    client.closed().await;
    (answer.status(), answer.text())
}

#[tokio::test]
async fn a_request_names_one_host() {
    let (gateway, _engine) = one_engine(as_is).await;
    for hosts in ["", "Host: localhost\r\nHost: localhost\r\n"] {
        let (status, text) = refused(&gateway, format!("GET /livez HTTP/1.1\r\n{hosts}\r\n")).await;
        assert_eq!((status, text.contains("exactly one Host")), (400, true), "{hosts}: {text}");
    }
    let (status, text) = refused(&gateway, "hello\r\n\r\n").await;
    assert_eq!((status, text.contains("HTTP/1.1")), (400, true), "{text}");
    // HTTP/1.0 has none, and its connection ends with the answer.
    let mut old = Client::connect(gateway.admin).await;
    old.send("GET /livez HTTP/1.0\r\n\r\n").await;
    assert_eq!(old.answer().await.status(), 200);
    old.closed().await;
}

#[tokio::test]
async fn a_head_has_a_bound() {
    let (gateway, _engine) = one_engine(as_is).await;
    let head = |value: usize| format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(value));
    let mut client = Client::connect(gateway.admin).await;
    // One after the other on a connection, byte by byte where it begins.
    for _ in 0..2 {
        client.send("G").await;
        client.send(format!("{}\r\n\r\n", &head(15_000)[1..])).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    let many = format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(100));
    for large in [format!("{}\r\n\r\n", head(17_000)), head(1_000_000), many] {
        let (status, text) = refused(&gateway, large).await;
        assert_eq!((status, text.contains("16384 bytes")), (431, true), "{text}");
    }
}

/// What asks next may have come with the request before.
#[tokio::test]
async fn requests_may_come_together() {
    let (gateway, _engine) = one_engine(as_is).await;
    let mut client = Client::connect(gateway.admin).await;
    client.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2)).await;
    assert_eq!(client.answer().await.text(), "ok\n");
}
