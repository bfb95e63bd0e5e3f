//! A connection that speaks HTTP, and the one or the many requests that go over it.
//!
//! The one hard idea: hyper drives a connection in a task of its own, and that task owns the socket. Who ends it closes
//! the socket, so a [`Road`] that is dropped is a client that has left.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::dial::Stream;
use super::wrong::{Wrong, quote};
use crate::server::chain;

/// Body of a request.
pub(super) type Body = Full<Bytes>;

/// Window of a stream and of a connection of HTTP/2: one that never lets a target wait.
const WINDOW: u32 = 16 << 20;
/// The same for a slow reader: the least that the protocol begins with.
const NARROW_WINDOW: u32 = 65_535;
/// How long a connection that has nothing more to do may take to say so.
const END: Duration = Duration::from_secs(1);

/// A connection on which a request can be sent.
pub(super) enum Road {
    One { sender: http1::SendRequest<Body>, driver: Driver<Bytes> },
    Two { sender: http2::SendRequest<Body>, driver: Arc<Driver<()>> },
}

/// The task of a connection, which ends with this.
pub(super) struct Driver<T>(JoinHandle<hyper::Result<T>>);

impl<T> Drop for Driver<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Road {
    /// Begins to speak HTTP on a connection.
    ///
    /// # Errors
    /// The other side does not.
    pub(super) async fn open(stream: Box<dyn Stream>, http2: bool, slow: bool) -> Result<Self, Wrong> {
        let failed = |error: hyper::Error| Wrong::Connect(chain(&error));
        let io = TokioIo::new(stream);
        if !http2 {
            let (sender, connection) = http1::handshake(io).await.map_err(failed)?;
            let driven = async move { Ok(connection.without_shutdown().await?.read_buf) };
            return Ok(Self::One { sender, driver: Driver(tokio::spawn(driven)) });
        }
        let window = if slow { NARROW_WINDOW } else { WINDOW };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window).initial_connection_window_size(window);
        let (sender, connection) = builder.handshake(io).await.map_err(failed)?;
        Ok(Self::Two { sender, driver: Arc::new(Driver(tokio::spawn(connection))) })
    }

    /// Sends a request and gives the head of its answer.
    ///
    /// # Errors
    /// The connection fails.
    pub(super) async fn send(&mut self, request: Request<Body>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::One { sender, .. } => sender.send_request(request).await,
            Self::Two { sender, .. } => sender.send_request(request).await,
        }
    }

    /// Waits until it can take a request; false where it never will.
    pub(super) async fn is_ready(&mut self) -> bool {
        match self {
            Self::One { sender, .. } => sender.ready().await.is_ok(),
            Self::Two { sender, .. } => sender.ready().await.is_ok(),
        }
    }

    /// Closes it behind a whole answer.
    ///
    /// # Errors
    /// Something came behind the answer.
    pub(super) async fn close(self) -> Result<(), Wrong> {
        let Self::One { sender, mut driver } = self else { return Ok(()) };
        drop(sender);
        match timeout(END, &mut driver.0).await {
            Ok(Ok(Ok(rest))) if !rest.is_empty() => Err(Wrong::Behind(quote(&rest))),
            Ok(Ok(Err(error))) if is_unasked(&error) => {
                Err(Wrong::Behind("an answer that nobody asked for".into()))
            }
            _ => Ok(()),
        }
    }
}

/// Whether hyper complains of bytes that no request asked for, and not of the connection: it has no name for the
/// former, but all others have a source or a name.
fn is_unasked(error: &hyper::Error) -> bool {
    let has_name =
        error.is_canceled() || error.is_closed() || error.is_incomplete_message() || error.is_shutdown();
    !has_name && std::error::Error::source(error).is_none()
}
