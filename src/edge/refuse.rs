//! The answer to a head that is refused: ours, in the form of every other rejection.

use std::net::IpAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::connections::TurnedAway;
use super::handshake::Handshake;
use crate::openai::{About, Dialect};
use crate::rejection::Rejection;

/// Time for the answer to be taken and for the client to stop sending.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes that are still read, so that closing does not reset the connection under the answer.
const LINGER_BYTES: usize = 256 * 1024;

/// Whoever keeps the books of refused heads and connections.
pub trait Witness: Send + Sync {
    /// Counts and logs one, and gives the request id to answer with.
    fn refused(&self, client: Option<IpAddr>, rejection: &Rejection) -> String;

    /// Counts a connection that is not served.
    fn turned_away(&self, why: TurnedAway);

    /// Counts a TLS handshake.
    fn handshake(&self, handshake: Handshake);

    /// Counts an HTTP/2 connection that is closed with this error code.
    fn goaway(&self, reason: &'static str);
}

/// Answers and closes.
pub(super) async fn refuse(
    conn: &mut (impl AsyncRead + AsyncWrite + Unpin),
    rejection: &Rejection,
    id: &str,
) {
    let answering = async {
        conn.write_all(&answer(rejection, id)).await?;
        conn.flush().await
    };
    if !matches!(tokio::time::timeout(LINGER, answering).await, Ok(Ok(()))) {
        log::debug!("request {id}: the client did not take its refusal");
        return;
    }
    close(conn).await;
}

/// Closes a connection whose client may still be sending, without resetting it under an answer.
pub(crate) async fn close(conn: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let closing = async {
        AsyncWriteExt::shutdown(conn).await?;
        let mut rest = conn.take(LINGER_BYTES as u64);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    if !matches!(tokio::time::timeout(LINGER, closing).await, Ok(Ok(_))) {
        log::debug!("a client still sends; its connection is closed");
    }
}

/// The body of the answer, on either protocol.
pub(super) fn body(rejection: &Rejection, id: &str) -> Bytes {
    let about = About { request_id: id, ..About::default() };
    Dialect::Other.error_body(&rejection.told(&rejection.message(), about))
}

/// The status of the answer, on either protocol.
pub(super) fn status(rejection: &Rejection) -> StatusCode {
    StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::BAD_REQUEST)
}

fn answer(rejection: &Rejection, id: &str) -> BytesMut {
    let body = body(rejection, id);
    let status = status(rejection);
    let reason = status.canonical_reason().unwrap_or("Error");
    let own = rejection.header().map_or_else(String::new, |(name, value)| format!("{name}: {value}\r\n"));
    let head = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{own}x-request-id: {id}\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        body.len(),
    );
    let mut answer = BytesMut::with_capacity(head.len() + body.len());
    answer.put_slice(head.as_bytes());
    answer.put_slice(&body);
    answer
}
