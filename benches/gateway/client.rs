//! One client: sends a request, reads its answer with as little work as possible, checks it, and leaves
//! when it is told to.
//!
//! The hard idea: it shares a core with the engine, so what it costs is what it disturbs. Bytes are
//! read into one buffer that all clients share (they run on one thread and never hold it across an
//! await), and a stream keeps nothing but an incomplete event.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::judge::{Answer, Tokens, Wrong};

/// Room for one read.
const READ_BYTES: usize = 64 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// Lends room for one read, which nobody holds across an await.
pub(crate) fn with_scratch<T>(read: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| read(scratch))
}

/// Microseconds since 1970.
pub(crate) fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// When a client leaves before its answer is complete.
#[derive(Debug, Clone)]
pub(crate) enum Leave {
    Never,
    /// As soon as it has seen so many tokens.
    AtToken(u32),
    /// This long after its request.
    After(Duration),
    /// When this turns true.
    Told(watch::Receiver<bool>),
}

/// What a client asks for.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// The request's id, by which the engine knows it.
    pub(crate) id: String,
    pub(crate) stream: bool,
    /// What the engine is asked for besides, as JSON: in the body, as not every gateway passes a client's headers on.
    pub(crate) wishes: &'static str,
}

impl Ask {
    pub(crate) fn body(&self) -> String {
        let wishes = if self.wishes.is_empty() { "{}" } else { self.wishes };
        format!(
            "{{\"model\":\"sim-model\",\"stream\":{},\"sim\":{wishes},\"messages\":[{{\"role\":\"user\",\"content\":\"Tell me a story.\"}}]}}",
            self.stream
        )
    }

    /// The head for HTTP/2.
    pub(crate) fn head(&self) -> http::Request<()> {
        let request = http::Request::post("https://bench/v1/chat/completions")
            .header("content-type", "application/json")
            .header("x-request-id", &self.id);
        request.body(()).unwrap_or_default()
    }

    /// Head and body for HTTP/1.1.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let body = self.body();
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n\
             x-request-id: {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.id,
            body.len()
        )
        .into_bytes()
    }
}

/// What became of a stream.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) tokens: Tokens,
    /// Microseconds from before the connect to the first token.
    pub(crate) first_us: Option<u32>,
    /// Unix microseconds right before the socket was closed, where the client left.
    pub(crate) left_us: Option<u64>,
}

/// Asks on a connection of its own, and reads to the end or until it is time to leave.
pub(crate) async fn stream(
    addr: SocketAddr,
    ask: Ask,
    tokens: Tokens,
    mut leave: Leave,
) -> Result<Seen, Wrong> {
    let began_us = unix_us();
    let socket = connect(addr).await?;
    send(&socket, &ask.bytes()).await?;
    let mut answer = Answer::new();
    let mut seen = Seen { tokens, first_us: None, left_us: None };
    let reading = read_stream(&socket, &mut answer, &mut seen, began_us, leave_at(&leave));
    tokio::select! {
        biased;
        () = time_to_leave(&mut leave) => {}
        read = reading => read?,
    }
    if answer.is_done() {
        return match leave {
            // On a machine that lags, one read can bring the rest: then it is too late to leave.
            Leave::Never | Leave::AtToken(_) => seen.tokens.complete().map(|()| seen),
            Leave::After(_) | Leave::Told(_) => Err(Wrong::TooEarly),
        };
    }
    seen.left_us = Some(unix_us());
    drop(socket);
    Ok(seen)
}

fn leave_at(leave: &Leave) -> u32 {
    if let Leave::AtToken(token) = leave { *token } else { u32::MAX }
}

async fn time_to_leave(leave: &mut Leave) {
    match leave {
        Leave::Never | Leave::AtToken(_) => std::future::pending().await,
        Leave::After(time) => tokio::time::sleep(*time).await,
        // A sender that is gone leaves too.
        Leave::Told(told) => drop(told.wait_for(|leave| *leave).await),
    }
}

async fn read_stream(
    socket: &TcpStream,
    answer: &mut Answer,
    seen: &mut Seen,
    began_us: u64,
    leave_at: u32,
) -> Result<(), Wrong> {
    while !answer.is_done() && seen.tokens.seen() < leave_at {
        read(socket, answer, &mut seen.tokens.buffer).await?;
        let now_us = unix_us();
        seen.tokens.take(now_us)?;
        if seen.first_us.is_none() && seen.tokens.seen() > 0 {
            seen.first_us = Some(u32::try_from(now_us - began_us).unwrap_or(u32::MAX));
        }
    }
    Ok(())
}

/// Asks on a connection that may serve more requests, and gives the body of the answer in `body`.
pub(crate) async fn exchange(socket: &TcpStream, request: &[u8], body: &mut Vec<u8>) -> Result<(), Wrong> {
    body.clear();
    send(socket, request).await?;
    let mut answer = Answer::new();
    while !answer.is_done() {
        read(socket, &mut answer, body).await?;
    }
    Ok(())
}

pub(crate) async fn connect(addr: SocketAddr) -> Result<TcpStream, Wrong> {
    let socket = TcpStream::connect(addr).await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

pub(crate) async fn send(socket: &TcpStream, bytes: &[u8]) -> Result<(), Wrong> {
    let mut rest = bytes;
    while !rest.is_empty() {
        socket.writable().await?;
        match socket.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for bytes and reads once.
async fn read(socket: &TcpStream, answer: &mut Answer, body: &mut Vec<u8>) -> Result<(), Wrong> {
    loop {
        socket.readable().await?;
        let read = SCRATCH.with_borrow_mut(|scratch| match socket.try_read(scratch) {
            Ok(0) => Err(Wrong::CutOff),
            Ok(length) => answer.push(&scratch[..length], body).map(|()| true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        });
        if read? {
            return Ok(());
        }
    }
}
