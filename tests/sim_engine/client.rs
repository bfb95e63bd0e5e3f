//! A client on a raw socket: sees the bytes of an answer and how the connection ends.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use streamgate::sim::{Engine, Settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than anything here takes; only a failing test waits for it.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long silence is listened to.
const SILENCE: Duration = Duration::from_millis(100);

/// Waits for `future`, but not for ever.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.expect("in time")
}

/// An engine that answers quickly.
pub(crate) fn quick() -> Settings {
    Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        first_event: Duration::from_millis(1),
        inter_token: Duration::from_millis(1),
        tokens: 5,
        event_bytes: 0,
        ..Settings::default()
    }
}

/// Runs an engine for as long as the test runs.
pub(crate) async fn start(settings: Settings) -> SocketAddr {
    let engine = Engine::bind(settings).await.unwrap();
    let address = engine.local_addr().unwrap();
    tokio::spawn(engine.run(std::future::pending()));
    address
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Fin,
    Reset,
}

/// One whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The data of its events; JSON, and `"[DONE]"` as a string.
    pub(crate) fn events(&self) -> Vec<Value> {
        events(self.text())
    }
}

/// The data events in `text`.
pub(crate) fn events(text: &str) -> Vec<Value> {
    let data = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| Value::from(data))).collect()
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: within(TcpStream::connect(address)).await.unwrap(), buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &str) {
        within(self.stream.write_all(bytes.as_bytes())).await.unwrap();
    }

    pub(crate) async fn post(&mut self, path: &str, headers: &str, body: &str) {
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: e\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// A chat request: a stream, with these further headers.
    pub(crate) async fn stream(&mut self, headers: &str) {
        let body = r#"{"model":"sim-model","stream":true,"messages":[]}"#;
        self.post("/v1/chat/completions", headers, body).await;
    }

    /// A chat request that is no stream, with these further headers.
    pub(crate) async fn unary(&mut self, headers: &str) {
        self.post("/v1/chat/completions", headers, r#"{"messages":[]}"#).await;
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: e\r\n\r\n")).await;
        self.answer().await
    }

    /// Reads until `mark` has come; gives everything up to its end.
    pub(crate) async fn until(&mut self, mark: &str) -> String {
        loop {
            if let Some(at) = memchr::memmem::find(&self.buffer, mark.as_bytes()) {
                let rest = self.buffer.split_off(at + mark.len());
                return String::from_utf8(std::mem::replace(&mut self.buffer, rest)).unwrap();
            }
            assert_eq!(self.more().await, None, "{mark} in {}", String::from_utf8_lossy(&self.buffer));
        }
    }

    /// Reads one whole answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.until("\r\n\r\n").await;
        let status = head[9..12].parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body = match length {
            Some(length) => self.take(length.parse().unwrap()).await,
            None => self.chunks().await,
        };
        Answer { status, head, body }
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.until("\r\n").await;
            let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
            body.extend(self.take(size).await);
            assert_eq!(self.take(2).await, b"\r\n");
            if size == 0 {
                return body;
            }
        }
    }

    pub(crate) async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert_eq!(self.more().await, None, "{}", String::from_utf8_lossy(&self.buffer));
        }
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Reads to the end of the connection.
    pub(crate) async fn rest(mut self) -> (String, End) {
        loop {
            if let Some(end) = self.more().await {
                return (String::from_utf8_lossy(&self.buffer).into_owned(), end);
            }
        }
    }

    /// Nothing comes for a while, and the connection is open.
    pub(crate) async fn is_silent(&mut self) -> bool {
        self.buffer.is_empty() && timeout(SILENCE, self.stream.read_buf(&mut self.buffer)).await.is_err()
    }

    /// Closes with RST.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    async fn more(&mut self) -> Option<End> {
        match within(self.stream.read_buf(&mut self.buffer)).await {
            Ok(0) => Some(End::Fin),
            Ok(_) => None,
            Err(_) => Some(End::Reset),
        }
    }
}

/// The engine's statistics, once `ready` holds for them.
pub(crate) async fn stats_when(address: SocketAddr, ready: impl Fn(&Value) -> bool) -> Value {
    let mut client = Client::connect(address).await;
    within(async {
        loop {
            let stats = client.get("/sim/stats").await.json();
            if ready(&stats) {
                return stats;
            }
        }
    })
    .await
}
