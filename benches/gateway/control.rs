//! What the simulated engine tells about itself.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client;
use crate::error::Error;
use crate::judge::Wrong;
use crate::target::Target;

/// Between two looks at a value that we wait for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The engine's own endpoints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    engine: SocketAddr,
}

/// A request whose client left, as the engine saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abort {
    /// Tokens that had been generated.
    pub(crate) tokens: u64,
    /// When, in unix microseconds.
    pub(crate) at_us: u64,
}

impl Control {
    pub(crate) fn new(engine: SocketAddr) -> Self {
        Self { engine }
    }

    /// Sets all counters back.
    pub(crate) async fn reset(self) -> Result<(), Error> {
        self.ask("POST", "/sim/reset").await.map(drop)
    }

    /// One counter of `/sim/stats`.
    pub(crate) async fn count(self, name: &'static str) -> Result<u64, Error> {
        self.stats().await?[name].as_u64().ok_or(Error::Answer(name))
    }

    /// The requests whose clients left, by request id.
    pub(crate) async fn aborts(self) -> Result<HashMap<String, Abort>, Error> {
        let stats = self.stats().await?;
        let aborts = stats["aborts"].as_array().ok_or(Error::Answer("aborts"))?;
        let abort = |abort: &Value| {
            let id = abort["request_id"].as_str()?.to_owned();
            Some((id, Abort { tokens: abort["tokens"].as_u64()?, at_us: abort["at_unix_us"].as_u64()? }))
        };
        aborts.iter().map(|one| abort(one).ok_or(Error::Answer("aborts"))).collect()
    }

    /// Requests that run. Asks `/metrics`, which stays short whatever has happened.
    pub(crate) async fn running(self) -> Result<u64, Error> {
        let text = self.ask("GET", "/metrics").await?;
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| line.starts_with("vllm:num_requests_running"));
        let value = line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse::<f64>().ok());
        value.map(|value| value as u64).ok_or(Error::Answer("vllm:num_requests_running"))
    }

    /// Waits until nothing runs; gives the time it took.
    pub(crate) async fn idle(self, target: Target, within: Duration) -> Result<Duration, Error> {
        let began = Instant::now();
        while self.running().await? > 0 {
            if began.elapsed() > within {
                return Err(Error::TooLate { what: "the engine's rest".into(), within, target });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(began.elapsed())
    }

    async fn stats(self) -> Result<Value, Error> {
        let body = self.ask("GET", "/sim/stats").await?;
        serde_json::from_slice(&body).map_err(|_| Error::Answer("JSON"))
    }

    async fn ask(self, method: &str, path: &str) -> Result<Vec<u8>, Error> {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-length: 0\r\n\r\n");
        let mut body = Vec::new();
        let asked: Result<(), Wrong> = async {
            let socket = client::connect(self.engine).await?;
            client::exchange(&socket, request.as_bytes(), &mut body).await
        }
        .await;
        asked.map_err(Error::Control)?;
        Ok(body)
    }
}
