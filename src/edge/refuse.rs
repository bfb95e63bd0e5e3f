//! The answer to a head that is refused: ours, in the form of every other rejection.

use std::net::IpAddr;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use pingora::protocols::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::openai::{About, Dialect, Told};
use crate::rejection::Rejection;

/// Time for the answer to be taken and for the client to stop sending.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes that are still read, so that closing does not reset the connection under the answer.
const LINGER_BYTES: usize = 256 * 1024;

/// Whoever keeps the books of refused heads.
pub trait Witness: Send + Sync {
    /// Counts and logs one, and gives the request id to answer with.
    fn refused(&self, client: Option<IpAddr>, rejection: &Rejection) -> String;
}

/// Answers and closes.
pub(super) async fn refuse(stream: &mut Stream, rejection: &Rejection, id: &str) {
    let answering = async {
        stream.write_all(&answer(rejection, id)).await?;
        stream.flush().await?;
        AsyncWriteExt::shutdown(stream).await?;
        let mut rest = stream.take(LINGER_BYTES as u64);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    if !matches!(tokio::time::timeout(LINGER, answering).await, Ok(Ok(_))) {
        log::debug!("request {id}: the client did not take its refusal");
    }
}

fn answer(rejection: &Rejection, id: &str) -> BytesMut {
    let body = Dialect::Other.error_body(&Told {
        code: rejection.code(),
        kind: rejection.kind(),
        message: &rejection.message(),
        param: None,
        about: About { request_id: id, ..About::default() },
    });
    let status = http::StatusCode::from_u16(rejection.status()).unwrap_or(http::StatusCode::BAD_REQUEST);
    let reason = status.canonical_reason().unwrap_or("Error");
    let head = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nx-request-id: {id}\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        body.len(),
    );
    let mut answer = BytesMut::with_capacity(head.len() + body.len());
    answer.put_slice(head.as_bytes());
    answer.put_slice(&body);
    answer
}
