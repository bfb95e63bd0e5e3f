//! A client that reads only when told to, and leaves as rudely as a test asks: raw HTTP/1.1, or HTTP/2
//! behind the same face (see [`super::h2`]).

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::framing::{BodyDecoder, Head};
use super::h2::H2;
use super::protocol::{Protocol, spoken};
use super::wait::{SOON, silence, within};
use super::{score, sockets};

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By its HTTP framing, or by a FIN where that is its framing.
    Clean,
    /// The connection ended first, or was reset.
    Broken,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Status line and headers.
    pub(crate) head: Head,
    /// The decoded body.
    pub(crate) body: Vec<u8>,
    /// How the body ended.
    pub(crate) end: End,
}

impl Answer {
    /// The status code.
    pub(crate) fn status(&self) -> u16 {
        self.head.status()
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self.text()))
    }
}

/// What it speaks.
#[derive(Debug)]
enum Wire {
    Http1(TcpStream),
    Http2(Box<H2>),
}

/// Window of an HTTP/2 stream whose client does not say otherwise (RFC 9113, 6.9.2).
const WINDOW: u32 = 65_535;

/// One client connection.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    raw: Vec<u8>,
    body: Vec<u8>,
    decoder: Option<BodyDecoder>,
    bodiless: bool,
    read_bytes: usize,
    ended: Option<End>,
    was_reset: bool,
}

impl Client {
    /// Connects with default buffers.
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        Self::over(within("connect", SOON, TcpStream::connect(addr)).await.expect("connect"))
    }

    /// Speaks over a socket that was set up elsewhere.
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Self::speaking(Wire::Http1(stream))
    }

    fn speaking(wire: Wire) -> Self {
        let (raw, body) = (Vec::new(), Vec::new());
        Self {
            wire,
            raw,
            body,
            decoder: None,
            bodiless: false,
            read_bytes: 16 * 1024,
            ended: None,
            was_reset: false,
        }
    }

    /// Connects and speaks HTTP/2.
    pub(crate) async fn connect_h2(addr: SocketAddr) -> Self {
        let stream = within("connect", SOON, TcpStream::connect(addr)).await.expect("connect");
        Self::over_h2(stream, WINDOW).await
    }

    /// Speaks HTTP/2 over a socket that was set up elsewhere; `window` is that of each stream.
    pub(crate) async fn over_h2(stream: TcpStream, window: u32) -> Self {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Self::from(H2::over(stream, window).await)
    }

    /// The HTTP/2 behind the face.
    pub(crate) fn h2(&mut self) -> &mut H2 {
        match &mut self.wire {
            Wire::Http2(h2) => h2,
            Wire::Http1(_) => panic!("the client speaks HTTP/1.1"),
        }
    }

    /// A client for another stream of this HTTP/2 connection, which lives no longer than this one.
    pub(crate) fn sibling(&mut self) -> Self {
        Self::from(self.h2().sibling())
    }

    /// Takes at most this many bytes from the socket at a time.
    pub(crate) fn reading(mut self, read_bytes: usize) -> Self {
        self.read_bytes = read_bytes;
        self
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.expect("send");
    }

    /// Sends bytes that the gateway may refuse to take, as when it answers early and closes.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        let bytes = bytes.as_ref();
        within("the client sends", Duration::from_secs(30), async {
            match &mut self.wire {
                Wire::Http1(stream) => stream.write_all(bytes).await,
                Wire::Http2(h2) => h2.send(bytes).await,
            }
        })
        .await
    }

    /// The next answers have no body: they answer HEAD.
    pub(crate) fn expect_no_body(&mut self) {
        self.bodiless = true;
    }

    /// Reads the next head, an interim one included.
    pub(crate) async fn head(&mut self) -> Head {
        self.head_within(SOON).await
    }

    /// Reads the next head with a deadline of one's own.
    pub(crate) async fn head_within(&mut self, deadline: Duration) -> Head {
        let head = within("the client gets a head", deadline, async {
            if let Wire::Http2(h2) = &mut self.wire {
                return h2.head().await.unwrap_or_else(|| panic!("no head: {:?}", h2.reset));
            }
            loop {
                if let Some(head) = Head::take(&mut self.raw) {
                    return head;
                }
                assert!(self.read_raw().await, "the connection ended before a head: {:?}", self.raw);
            }
        })
        .await;
        self.body.clear();
        self.ended = None;
        if matches!(self.wire, Wire::Http1(_)) {
            self.decoder = Some(BodyDecoder::response(&head, self.bodiless));
        }
        head
    }

    /// Reads the next head of HTTP/1.1; `None` where the connection ends instead, or nothing comes.
    pub(crate) async fn head_if_any(&mut self) -> Option<Head> {
        let reading = async {
            loop {
                if let Some(head) = Head::take(&mut self.raw) {
                    return Some(head);
                }
                if !self.read_raw().await {
                    return None;
                }
            }
        };
        let head = tokio::time::timeout(SOON, reading).await.ok()??;
        self.body.clear();
        self.ended = None;
        self.decoder = Some(BodyDecoder::response(&head, self.bodiless));
        Some(head)
    }

    /// Whether a connection of HTTP/1.1 is closed soon; bytes that come first are kept in [`Client::raw`].
    pub(crate) async fn closes(&mut self) -> bool {
        tokio::time::timeout(SOON, async { while self.read_raw().await {} }).await.is_ok()
    }

    /// The body read so far.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Takes the body read so far, so that a long one need not be kept.
    pub(crate) fn take_body(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.body)
    }

    /// Reads until the body has `length` bytes.
    pub(crate) async fn until_len(&mut self, length: usize) {
        let what = format!("the client has {length} body bytes");
        within(&what, SOON, async {
            while self.body.len() < length {
                assert!(self.read_body().await, "ended after {} of {length} bytes", self.body.len());
            }
        })
        .await;
    }

    /// Reads until the body is exactly these bytes.
    pub(crate) async fn until_body(&mut self, expected: &[u8]) {
        self.until_len(expected.len()).await;
        super::checks::same(&self.body, expected);
    }

    /// Reads a head and the body until that holds this; gives the head.
    pub(crate) async fn until_body_holds(&mut self, wanted: &[u8]) -> Head {
        let head = self.head().await;
        within("the client has the piece", SOON, async {
            while !self.body.windows(wanted.len()).any(|bytes| bytes == wanted) {
                assert!(self.read_body().await, "it ended: {:?}", String::from_utf8_lossy(&self.body));
            }
        })
        .await;
        head
    }

    /// Reads one more piece of the body; false at its end.
    pub(crate) async fn read_body(&mut self) -> bool {
        if let Wire::Http2(h2) = &mut self.wire {
            if self.ended.is_some() {
                return false;
            }
            match h2.data().await {
                Ok(Some(data)) => self.body.extend_from_slice(&data),
                Ok(None) => self.ended = Some(End::Clean),
                Err(()) => self.ended = Some(End::Broken),
            }
            return true;
        }
        if self.decode() {
            return true;
        }
        if self.ended.is_some() {
            return false;
        }
        if self.read_raw().await {
            self.decode();
        } else {
            let by_connection = self.decoder.as_ref().is_some_and(BodyDecoder::ends_with_connection);
            self.ended = Some(if by_connection && !self.was_reset { End::Clean } else { End::Broken });
        }
        true
    }

    /// Decodes what was read; true when the body grew.
    fn decode(&mut self) -> bool {
        let decoder = self.decoder.as_mut().expect("a head was read");
        let before = self.body.len();
        decoder.decode(&mut self.raw, &mut self.body);
        if decoder.is_done() {
            self.ended = Some(End::Clean);
        }
        self.body.len() > before
    }

    /// Reads to the end of the body.
    pub(crate) async fn end(&mut self) -> End {
        self.end_within(SOON).await
    }

    /// Reads to the end of the body with a deadline of one's own.
    pub(crate) async fn end_within(&mut self, deadline: Duration) -> End {
        within("the body ends", deadline, async { while self.read_body().await {} }).await;
        self.ended.expect("set when no more can be read")
    }

    /// Reads a head and the whole body.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.answer_within(SOON).await
    }

    /// Reads a head and the whole body with a deadline of one's own.
    pub(crate) async fn answer_within(&mut self, deadline: Duration) -> Answer {
        let head = self.head_within(deadline).await;
        let end = self.end_within(deadline).await;
        Answer { head, body: self.take_body(), end }
    }

    /// Waits until the gateway closes; bytes that come first are kept in [`Client::raw`].
    pub(crate) async fn closed(&mut self) {
        within("the gateway closes", SOON, async {
            if let Wire::Http2(h2) = &mut self.wire {
                // How it was told is the matter of tests that ask for it.
                drop(h2.closed().await);
                return;
            }
            while self.read_raw().await {}
        })
        .await;
    }

    /// Bytes that belong to no answer read so far.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Leaves with a FIN.
    pub(crate) fn close(self) {
        drop(self);
    }

    /// Leaves with a reset.
    pub(crate) fn reset(self) {
        score::struck(1, "a client resets");
        match self.wire {
            Wire::Http1(stream) => sockets::reset(stream),
            Wire::Http2(h2) => h2.linger_not(),
        }
    }

    /// Ends only the sending side.
    pub(crate) async fn half_close(&mut self) {
        match &mut self.wire {
            Wire::Http1(stream) => {
                score::struck(1, "a client closes its sending side");
                stream.shutdown().await.expect("shutdown");
            }
            Wire::Http2(_) => panic!("HTTP/2 has no half-closed connection"),
        }
    }

    /// Leaves as told.
    pub(crate) fn leave(self, how: Leave) {
        match how {
            Leave::Fin => {
                score::struck(1, "a client closes");
                self.close();
            }
            Leave::Reset => self.reset(),
            Leave::Stream => {
                let Wire::Http2(mut h2) = self.wire else { panic!("HTTP/1.1 has no streams") };
                score::struck(1, "a client cancels its stream");
                h2.cancel();
                // The connection outlives whatever is to follow from the reset alone.
                tokio::spawn(async move {
                    silence(SOON).await;
                    drop(h2);
                });
            }
        }
    }

    /// Reads what the socket has; false when the connection ended.
    async fn read_raw(&mut self) -> bool {
        let Wire::Http1(stream) = &mut self.wire else { panic!("HTTP/2 has no raw bytes") };
        let mut buffer = vec![0; self.read_bytes];
        match stream.read(&mut buffer).await {
            Ok(0) => false,
            Err(_) => {
                self.was_reset = true;
                false
            }
            Ok(count) => {
                self.raw.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }
}

impl From<H2> for Client {
    fn from(h2: H2) -> Self {
        Self::speaking(Wire::Http2(Box::new(h2)))
    }
}

/// How a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// FIN.
    Fin,
    /// RST.
    Reset,
    /// RST_STREAM of HTTP/2: the stream goes, the connection stays.
    Stream,
}

impl Leave {
    /// Every way there is in what the clients of this test speak.
    pub(crate) fn ways() -> Vec<Self> {
        match spoken() {
            Protocol::Http1 => vec![Self::Fin, Self::Reset],
            Protocol::H2c => vec![Self::Fin, Self::Reset, Self::Stream],
        }
    }
}
