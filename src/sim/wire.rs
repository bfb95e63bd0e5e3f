//! One client's socket: whole requests in, bytes out, and always an ear for the client leaving.
//!
//! The hard idea: there is no read half and write half. Whoever waits, for time, for room in the
//! socket or for nothing at all, reads at the same time, because only a read shows a FIN. What it
//! reads is the client's next request and is kept, within `SPILL_BYTES_MAX`.
//!
//! A client that closes only its sending side counts as gone, as it does for uvicorn.

use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::answer::Refusal;
use super::chunked::Decoder;
use super::head::{Body, Head};
use super::stats::Stats;

/// The largest request body, in bytes.
const BODY_BYTES_MAX: usize = 128 << 20;
/// Bytes of a next request that are kept while this one is answered. Beyond that we stop reading.
const SPILL_BYTES_MAX: usize = 64 << 10;
/// Room for one read of a head, and for one read of a long body.
const HEAD_READ_BYTES: usize = 2 << 10;
const BODY_READ_BYTES: usize = 64 << 10;
/// How long a client may take to read an answer that came before its body was read.
const LINGER: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// The client closed or reset it.
    ClientLeft,
    /// We send FIN.
    Close,
    /// We send FIN and leave what the client still sends unread for a while: closing a socket with
    /// unread bytes sends RST, which can take our answer away from the client.
    CloseUnread,
    /// We send RST.
    Reset,
}

/// Why a request goes no further.
#[derive(Debug)]
pub(super) enum Stop {
    Over(Over),
    /// It is answered with this error, and the connection ends.
    Refused(Refusal),
}

impl From<Over> for Stop {
    fn from(over: Over) -> Self {
        Self::Over(over)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Wire<'a> {
    stream: TcpStream,
    /// Bytes read and not used yet.
    buffer: Vec<u8>,
    stats: &'a Stats,
}

impl<'a> Wire<'a> {
    pub(super) fn new(stream: TcpStream, stats: &'a Stats) -> Self {
        Self { stream, buffer: Vec::new(), stats }
    }

    /// A fault strikes here.
    pub(super) fn strike(&self) {
        self.stats.strike();
    }

    /// The next request's head. Its first byte may take `idle`, if given.
    pub(super) async fn head(&mut self, idle: Option<Duration>) -> Result<Head, Stop> {
        if self.buffer.is_empty() {
            // An idle connection keeps no memory.
            self.buffer = Vec::new();
            match idle {
                Some(idle) => timeout(idle, self.fill(HEAD_READ_BYTES)).await.map_err(|_| Over::Close)??,
                None => self.fill(HEAD_READ_BYTES).await?,
            }
        }
        loop {
            let parsed = Head::parse(&self.buffer).map_err(|error| Refusal::new(400, error.to_string()))?;
            if let Some((head, taken)) = parsed {
                self.buffer.drain(..taken);
                return Ok(head);
            }
            self.fill(HEAD_READ_BYTES).await?;
        }
    }

    /// The body of `head`'s request.
    pub(super) async fn body(&mut self, head: &Head) -> Result<Vec<u8>, Stop> {
        if head.expect_continue && self.buffer.is_empty() && head.body != Body::Length(0) {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        match head.body {
            Body::Length(length) => self.sized_body(length).await,
            Body::Chunked => self.chunked_body().await,
        }
    }

    async fn sized_body(&mut self, length: u64) -> Result<Vec<u8>, Stop> {
        let length = usize::try_from(length).ok().filter(|length| *length <= BODY_BYTES_MAX);
        let length = length.ok_or_else(too_large)?;
        while self.buffer.len() < length {
            self.fill((length - self.buffer.len()).min(BODY_READ_BYTES)).await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    async fn chunked_body(&mut self) -> Result<Vec<u8>, Stop> {
        let (mut decoder, mut body) = (Decoder::new(), Vec::new());
        loop {
            let used = decoder.push(&self.buffer, &mut body);
            let used = used.map_err(|error| Refusal::new(400, error.to_string()))?;
            self.buffer.drain(..used);
            if body.len() > BODY_BYTES_MAX {
                return Err(too_large().into());
            }
            if decoder.is_done() {
                return Ok(body);
            }
            self.fill(BODY_READ_BYTES).await?;
        }
    }

    /// Sends all of `bytes`, unless the client leaves.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), Over> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(written) => {
                    self.stats.bytes_written.fetch_add(written as u64, Relaxed);
                    rest = &rest[written..];
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.room().await?,
                Err(_) => return Err(Over::ClientLeft),
            }
        }
        Ok(())
    }

    async fn room(&mut self) -> Result<(), Over> {
        tokio::select! {
            biased;
            over = gone(&self.stream, &mut self.buffer) => Err(over),
            room = self.stream.writable() => room.map_err(|_| Over::ClientLeft),
        }
    }

    /// Waits for `pause`, unless the client leaves.
    pub(super) async fn pause(&mut self, pause: Duration) -> Result<(), Over> {
        self.pause_until(Instant::now() + pause).await
    }

    /// Waits until `at`, unless the client leaves.
    pub(super) async fn pause_until(&mut self, at: Instant) -> Result<(), Over> {
        tokio::select! {
            biased;
            over = gone(&self.stream, &mut self.buffer) => Err(over),
            () = sleep_until(at) => Ok(()),
        }
    }

    /// Lets others run, and sees whether the client has left.
    pub(super) async fn breathe(&mut self) -> Result<(), Over> {
        tokio::select! {
            biased;
            over = gone(&self.stream, &mut self.buffer) => Err(over),
            () = tokio::task::yield_now() => Ok(()),
        }
    }

    /// Waits for what `until` gives, unless the client leaves.
    pub(super) async fn wait<T>(&mut self, until: impl Future<Output = T>) -> Result<T, Over> {
        tokio::select! {
            biased;
            over = gone(&self.stream, &mut self.buffer) => Err(over),
            value = until => Ok(value),
        }
    }

    /// Says nothing until the client leaves.
    pub(super) async fn until_gone(&mut self) -> Over {
        gone(&self.stream, &mut self.buffer).await
    }

    /// Ends the connection.
    pub(super) async fn close(mut self, over: Over) {
        // An error of these three says that the client has closed the connection before us.
        match over {
            Over::ClientLeft => {}
            Over::Close => drop(self.stream.shutdown().await),
            Over::CloseUnread => {
                drop(self.stream.shutdown().await);
                sleep(LINGER).await;
            }
            Over::Reset => drop(self.stream.set_zero_linger()),
        }
    }

    async fn fill(&mut self, room: usize) -> Result<(), Over> {
        loop {
            self.stream.readable().await.map_err(|_| Over::ClientLeft)?;
            match read(&self.stream, &mut self.buffer, room) {
                Ok(0) => return Err(Over::ClientLeft),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Err(Over::ClientLeft),
            }
        }
    }
}

/// Resolves once the client has closed or reset the connection.
async fn gone(stream: &TcpStream, spill: &mut Vec<u8>) -> Over {
    while spill.len() < SPILL_BYTES_MAX && stream.readable().await.is_ok() {
        match read(stream, spill, HEAD_READ_BYTES) {
            Ok(0) => return Over::ClientLeft,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return Over::ClientLeft,
        }
    }
    std::future::pending().await
}

fn read(stream: &TcpStream, buffer: &mut Vec<u8>, room: usize) -> io::Result<usize> {
    buffer.reserve(room);
    stream.try_read_buf(buffer)
}

fn too_large() -> Refusal {
    Refusal::new(413, format!("the request body has more than {BODY_BYTES_MAX} bytes"))
}
