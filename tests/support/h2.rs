//! An HTTP/2 client behind the face of the HTTP/1.1 one.
//!
//! It is given HTTP/1.1 bytes and sends what they mean, as they come: a head when its blank line is there,
//! then the body as far as it has come. A body in chunks is sent without a length and ended by an empty
//! DATA frame. The framing is the h2 crate's; it reads the socket by itself, and what the test has not read
//! stays in the windows, which are opened again only by reading.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use socket2::{SockRef, Socket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::framing::{BodyDecoder, Head};
use super::wait::{SOON, within};

/// Lines that are no part of HTTP/2.
const OF_HTTP1: [&str; 7] =
    ["host", "connection", "keep-alive", "transfer-encoding", "upgrade", "proxy-connection", "te"];

/// Window of the whole connection: large enough that only the windows of the streams are felt.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// One connection, and the answer on it that is being read.
#[derive(Debug)]
pub(crate) struct H2 {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
    /// The socket, for leaving rudely; a sibling leaves it alone.
    socket: Option<Socket>,
    unsent: Vec<u8>,
    sending: Option<(BodyDecoder, bool)>,
    stream: Option<SendStream<Bytes>>,
    responses: VecDeque<ResponseFuture>,
    body: Option<RecvStream>,
    /// Why the last stream was reset.
    pub(crate) reset: Option<Reason>,
}

impl H2 {
    /// Begins over a socket; `window` is that of each stream.
    pub(crate) async fn over(stream: TcpStream, window: u32) -> Self {
        let socket = SockRef::from(&stream).try_clone().expect("dup");
        Self::secured(stream, socket, window).await
    }

    /// Begins over what runs over `socket`.
    pub(crate) async fn secured<T>(stream: T, socket: Socket, window: u32) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(CONNECTION_WINDOW);
        builder.enable_push(false);
        let opening = within("the HTTP/2 handshake", SOON, builder.handshake(stream));
        let (requests, connection) = opening.await.expect("an HTTP/2 handshake");
        Self::new(requests, tokio::spawn(connection), Some(socket))
    }

    /// A client for another stream of the same connection.
    pub(crate) fn sibling(&self) -> Self {
        Self::new(self.requests.clone(), tokio::spawn(std::future::pending()), None)
    }

    fn new(
        requests: SendRequest<Bytes>,
        connection: JoinHandle<Result<(), h2::Error>>,
        socket: Option<Socket>,
    ) -> Self {
        Self {
            requests,
            connection,
            socket,
            unsent: Vec::new(),
            sending: None,
            stream: None,
            responses: VecDeque::new(),
            body: None,
            reset: None,
        }
    }

    /// Sends what these bytes of HTTP/1.1 mean. Of a stream that the gateway has answered and closed before
    /// its body was whole, the rest is not sent (RFC 9113, 8.1).
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsent.extend_from_slice(bytes);
        loop {
            if self.sending.is_none() {
                let Some(head) = Head::take(&mut self.unsent) else { return Ok(()) };
                self.begin(&head).await?;
                continue;
            }
            let Some((decoder, has_length)) = &mut self.sending else { return Ok(()) };
            let mut body = Vec::new();
            decoder.decode(&mut self.unsent, &mut body);
            let (is_done, has_length) = (decoder.is_done(), *has_length);
            // Without a length nothing says beforehand which piece is the last.
            if let Err(error) = self.give(body.into(), is_done && has_length).await {
                (self.unsent, self.sending) = (Vec::new(), None);
                return if is_answered(&error) { Ok(()) } else { Err(error) };
            }
            if !is_done {
                return Ok(());
            }
            if !has_length {
                self.give(Bytes::new(), true).await?;
            }
            self.sending = None;
        }
    }

    /// Ends the body with trailers.
    pub(crate) fn trailers(&mut self) {
        let trailers = http::HeaderMap::from_iter([("x-sum".parse().expect("a name"), 1.into())]);
        self.stream.as_mut().expect("a request was begun").send_trailers(trailers).expect("send");
        self.sending = None;
    }

    /// The next head, or how the stream ended without one.
    pub(crate) async fn try_head(&mut self) -> Result<(), h2::Error> {
        self.responses.pop_front().expect("a request was sent").await.map(drop)
    }

    async fn begin(&mut self, head: &Head) -> io::Result<()> {
        let decoder = BodyDecoder::request(head);
        let ends = decoder.is_done();
        self.request(head, ends).await?;
        self.sending = (!ends).then(|| (decoder, head.get("content-length").is_some()));
        Ok(())
    }

    async fn request(&mut self, head: &Head, ends: bool) -> io::Result<()> {
        let words: Vec<&str> = head.line.split(' ').collect();
        let authority = head.get("host").unwrap_or("gateway.test");
        let mut request = Request::builder().method(words[0]).uri(format!("http://{authority}{}", words[1]));
        for (name, value) in &head.headers {
            if !OF_HTTP1.contains(&name.to_ascii_lowercase().as_str()) {
                request = request.header(name, value);
            }
        }
        let request = request.body(()).expect("a request that HTTP/2 can carry");
        poll_fn(|cx| self.requests.poll_ready(cx)).await.map_err(io::Error::other)?;
        let (response, stream) = self.requests.send_request(request, ends).map_err(io::Error::other)?;
        self.responses.push_back(response);
        self.stream = Some(stream);
        Ok(())
    }

    /// Sends a piece of the body as the window opens.
    pub(crate) async fn give(&mut self, mut piece: Bytes, end: bool) -> io::Result<()> {
        let stream = self.stream.as_mut().expect("a request was begun");
        while !piece.is_empty() {
            stream.reserve_capacity(piece.len());
            let capacity = match stream.capacity() {
                0 => poll_fn(|cx| stream.poll_capacity(cx)).await,
                ready => Some(Ok(ready)),
            };
            let capacity =
                capacity.unwrap_or_else(|| Err(Reason::NO_ERROR.into())).map_err(io::Error::other)?;
            let part = piece.split_to(capacity.min(piece.len()));
            let is_last = end && piece.is_empty();
            stream.send_data(part, is_last).map_err(io::Error::other)?;
            if is_last {
                return Ok(());
            }
        }
        if end { stream.send_data(piece, true).map_err(io::Error::other) } else { Ok(()) }
    }

    /// The next head, an interim one included; `None` if the stream ends without one.
    pub(crate) async fn head(&mut self) -> Option<Head> {
        let mut response = self.responses.pop_front().expect("a request was sent");
        let answer = poll_fn(|cx| {
            if let Poll::Ready(Some(interim)) = response.poll_informational(cx) {
                return Poll::Ready(interim.map(|interim| (interim, None)));
            }
            Pin::new(&mut response).poll(cx).map_ok(|answer| {
                let (parts, body) = answer.into_parts();
                (Response::from_parts(parts, ()), Some(body))
            })
        });
        match answer.await {
            Ok((interim, None)) => {
                self.responses.push_front(response);
                Some(told(&interim))
            }
            Ok((answer, body)) => {
                self.body = body;
                Some(told(&answer))
            }
            Err(error) => {
                self.reset = error.reason();
                None
            }
        }
    }

    /// The next piece of the body: `Ok(None)` at its end, an error when it is broken off.
    pub(crate) async fn data(&mut self) -> Result<Option<Bytes>, ()> {
        let body = self.body.as_mut().expect("a head was read");
        match body.data().await {
            None => Ok(None),
            Some(Ok(data)) => {
                // The stream may be over.
                drop(body.flow_control().release_capacity(data.len()));
                Ok(Some(data))
            }
            Some(Err(error)) => {
                self.reset = error.reason();
                Err(())
            }
        }
    }

    /// Gives up the stream of the last request.
    pub(crate) fn cancel(&mut self) {
        self.stream.as_mut().expect("a request was sent").send_reset(Reason::CANCEL);
    }

    /// Waits for the end of the connection, and how it was told.
    pub(crate) async fn closed(&mut self) -> Result<(), h2::Error> {
        (&mut self.connection).await.expect("the connection's task")
    }

    /// Makes the end of the connection a reset.
    pub(crate) fn linger_not(&self) {
        let socket = self.socket.as_ref().expect("not a sibling");
        socket.set_linger(Some(Duration::ZERO)).expect("SO_LINGER");
    }
}

impl Drop for H2 {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// The gateway wants no more of the body, as it has said all it has to say.
fn is_answered(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<h2::Error>());
    inner.and_then(h2::Error::reason) == Some(Reason::NO_ERROR)
}

fn told(answer: &Response<()>) -> Head {
    let value = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Head {
        line: format!("HTTP/2 {}", answer.status().as_u16()),
        headers: answer.headers().iter().map(|(name, text)| (name.to_string(), value(text))).collect(),
    }
}
