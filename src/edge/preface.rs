//! Which protocol a client on a plain listener begins with.
//!
//! An HTTP/2 client that knows it may sends the connection preface (RFC 9113, 3.4), which no HTTP/1.1
//! request begins with. Pingora waits for as many bytes as the preface has, for ever; here the first byte
//! that differs settles it, and nobody has longer than for a request head.

use bytes::BytesMut;
use pingora::server::ShutdownWatch;
use tokio::time::Instant;

use super::conn::Conn;
use super::reader::{LAST_CALL, more};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    Http2,
}

/// Looks at the first bytes and leaves them to be read. `None` when the client says too little.
pub(super) async fn look(
    conn: &mut Conn,
    patience: impl Future<Output = ()>,
    shutdown: &mut ShutdownWatch,
) -> Option<Spoken> {
    let mut bytes = BytesMut::new();
    let spoken = tokio::select! {
        spoken = listen(conn, &mut bytes) => spoken,
        () = patience => None,
        () = last_call(shutdown) => None,
    };
    conn.inbound.unread(bytes);
    spoken
}

async fn listen(conn: &mut Conn, bytes: &mut BytesMut) -> Option<Spoken> {
    loop {
        if !more(conn, bytes).await.is_ok_and(|count| count > 0) {
            return None;
        }
        let length = bytes.len().min(PREFACE.len());
        if bytes[..length] != PREFACE[..length] {
            return Some(Spoken::Http1);
        }
        if length == PREFACE.len() {
            return Some(Spoken::Http2);
        }
    }
}

/// Over a little after the gateway stops listening.
pub(super) async fn last_call(shutdown: &mut ShutdownWatch) {
    while !*shutdown.borrow() {
        if shutdown.changed().await.is_err() {
            break;
        }
    }
    tokio::time::sleep_until(Instant::now() + LAST_CALL).await;
}
