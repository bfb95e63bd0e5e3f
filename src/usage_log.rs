//! The usage log: one JSON line for each exchange that an engine worked on, for those who write bills.
//!
//! It holds what the access log says of tokens and nothing else, and unlike it can be bounded in size. A
//! line says how its figures are known, so that who adds them up can tell what was measured from what was
//! estimated. Documented in docs/usage.md.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::access_log::{Line, short, timestamp};
use crate::config::UsageTarget;
use crate::log_file::{LogFile, Reopen};
use crate::outlet::Outlet;

/// Where the lines go.
#[derive(Debug)]
pub struct UsageLog {
    outlet: Outlet<Arc<Line>>,
    reopen: Reopen,
}

impl UsageLog {
    /// One that writes nothing.
    pub fn none() -> Self {
        Self { outlet: Outlet::none(), reopen: Reopen::default() }
    }

    /// Opens the log.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or there is no thread to be had.
    pub fn open(target: &UsageTarget) -> io::Result<Self> {
        let reopen = Reopen::default();
        let file = LogFile::open(&target.file.path, Some(target.rotate), reopen.clone())?;
        let outlet = Outlet::open("usage-log", Box::new(file), |line: &Arc<Line>| render(line))?;
        Ok(Self { outlet, reopen })
    }

    /// Has the line of an exchange written, if an engine worked on it, or drops it when too many wait.
    pub fn write(&self, line: &Arc<Line>) {
        if line.usage.is_some() {
            self.outlet.send(Arc::clone(line));
        }
    }

    /// Opens the file anew before the next line.
    pub fn reopen(&self) {
        self.reopen.ask();
    }

    /// Lines lost so far.
    pub fn dropped(&self) -> u64 {
        self.outlet.dropped()
    }

    /// Writes what waits, but tries no longer than `patience`.
    pub fn close(&self, patience: Duration) {
        if !self.outlet.close(patience) {
            log::warn!("the usage log's output is blocked: its last lines are lost");
        }
    }
}

/// The fields of a line, in their documented order.
#[derive(Serialize)]
struct Fields<'a> {
    time: String,
    request_id: &'a str,
    key: Option<&'a str>,
    route: Option<&'a str>,
    cluster: Option<&'a str>,
    backend: Option<&'a str>,
    model: Option<&'a str>,
    path: &'a str,
    streaming: bool,
    outcome: &'static str,
    status: u16,
    prompt_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    source: &'static str,
    total_ms: f64,
    generation: u64,
}

fn render(line: &Line) -> Vec<u8> {
    let Some((usage, source)) = line.usage else { return Vec::new() };
    let fields = Fields {
        time: timestamp(line.time),
        request_id: &line.request_id,
        key: line.key.as_deref(),
        route: line.route.as_deref(),
        cluster: line.cluster.as_deref(),
        backend: line.backend.as_deref(),
        model: line.model.as_deref().map(short),
        path: short(&line.path),
        streaming: line.streaming,
        outcome: line.outcome.as_str(),
        status: line.status,
        prompt_tokens: usage.prompt,
        cached_tokens: usage.cached,
        completion_tokens: usage.completion,
        reasoning_tokens: usage.reasoning,
        source: source.label(),
        total_ms: (line.total.as_secs_f64() * 1e6).round() / 1e3,
        generation: line.generation,
    };
    let mut json = serde_json::to_vec(&fields).unwrap_or_default();
    json.push(b'\n');
    json
}
