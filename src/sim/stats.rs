//! What the engine counts, and the guards that keep the gauges true.
//!
//! Counters are atomics, since each token of thousands of streams adds to them; only aborts, which
//! are rare, take a lock. A request that leaves no verdict behind counts as failed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::proof::{Account, Accounts, Chain};
use super::text::Finish;

/// Aborts that are remembered: a whole bench's worth of leaving clients.
const ABORTS_MAX: usize = 20_000;

/// A request whose client left, as the engine's socket told it.
#[derive(Debug, Clone)]
struct Abort {
    request_id: String,
    tokens: u64,
    at_unix_us: u64,
}

/// The counters of one engine.
#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(super) requests: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) open_connections: AtomicU64,
    pub(super) running: AtomicU64,
    pub(super) waiting: AtomicU64,
    pub(super) prefilling: AtomicU64,
    pub(super) peak_running: AtomicU64,
    pub(super) stopped: AtomicU64,
    pub(super) length: AtomicU64,
    pub(super) aborted: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) prompt_tokens: AtomicU64,
    pub(super) tokens: AtomicU64,
    pub(super) tokens_after_close: AtomicU64,
    pub(super) steps: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    /// How often a fault struck.
    pub(super) struck: AtomicU64,
    aborts: Mutex<VecDeque<Abort>>,
    accounts: Mutex<Accounts>,
}

impl Stats {
    /// The statistics as `/sim/stats` gives them.
    pub(super) fn json(&self, name: &str) -> Value {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let aborts: Vec<Value> = self.aborts().iter().map(Abort::json).collect();
        json!({
            "name": name,
            "requests": read(&self.requests),
            "running": read(&self.running),
            "waiting": read(&self.waiting),
            "peak_running": read(&self.peak_running),
            "completed": read(&self.stopped) + read(&self.length),
            "aborted": read(&self.aborted),
            "failed": read(&self.failed),
            "prompt_tokens": read(&self.prompt_tokens),
            "tokens": read(&self.tokens),
            "tokens_after_close": read(&self.tokens_after_close),
            "connections": read(&self.connections),
            "open_connections": read(&self.open_connections),
            "bytes_written": read(&self.bytes_written),
            "faults": read(&self.struck),
            "aborts": aborts,
        })
    }

    /// Sets every counter back; what is open or running stays counted.
    pub(super) fn reset(&self) {
        let counters = [
            &self.requests,
            &self.connections,
            &self.stopped,
            &self.length,
            &self.aborted,
            &self.failed,
            &self.prompt_tokens,
            &self.tokens,
            &self.tokens_after_close,
            &self.steps,
            &self.bytes_written,
            &self.struck,
        ];
        for counter in counters {
            counter.store(0, Relaxed);
        }
        self.peak_running.store(self.running.load(Relaxed), Relaxed);
        self.aborts().clear();
        self.accounts().clear();
    }

    /// What each of the last requests was sent, as `/sim/proofs` gives it.
    pub(super) fn proofs(&self) -> Value {
        self.accounts().json()
    }

    /// A fault has struck.
    pub(super) fn strike(&self) {
        self.struck.fetch_add(1, Relaxed);
    }

    /// Counts a gauge up until the guard drops.
    pub(super) fn gauge(counter: &AtomicU64) -> Gauge<'_> {
        counter.fetch_add(1, Relaxed);
        Gauge(counter)
    }

    /// A request has come; it waits.
    pub(super) fn job<'a>(&'a self, request_id: &str) -> Job<'a> {
        let request_id = request_id.to_owned();
        let gauge = Self::gauge(&self.waiting);
        Job { stats: self, request_id, tokens: 0, chain: None, verdict: Verdict::Failed, gauge }
    }

    fn aborts(&self) -> std::sync::MutexGuard<'_, VecDeque<Abort>> {
        self.aborts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accounts(&self) -> std::sync::MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a gauge down when it drops.
#[derive(Debug)]
pub(super) struct Gauge<'a>(&'a AtomicU64);

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Finished(Finish),
    Aborted,
    Failed,
}

/// A request that waits or runs; settled when it drops.
#[derive(Debug)]
pub(super) struct Job<'a> {
    stats: &'a Stats,
    request_id: String,
    tokens: u64,
    /// Over the tokens sent, where they prove their place.
    chain: Option<Chain>,
    verdict: Verdict,
    /// Held, not read: it counts the request as waiting, then as running.
    gauge: Gauge<'a>,
}

impl Job<'_> {
    /// It has waited and now runs.
    pub(super) fn runs(&mut self) {
        self.gauge = Stats::gauge(&self.stats.running);
        self.stats.peak_running.fetch_max(self.stats.running.load(Relaxed), Relaxed);
    }

    /// The step that ends the prefill.
    pub(super) fn prefilled(&self, prompt_tokens: u32) {
        self.stats.prompt_tokens.fetch_add(u64::from(prompt_tokens), Relaxed);
        self.stats.steps.fetch_add(1, Relaxed);
    }

    /// Its tokens prove their place, and this is the chain over those that were sent.
    pub(super) fn proves(&mut self, chain: Option<Chain>) {
        self.chain = chain.or(self.chain);
    }

    /// A fault has struck.
    pub(super) fn strike(&self) {
        self.stats.strike();
    }

    /// Tokens so far.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// One step gave `tokens` tokens.
    pub(super) fn step(&mut self, tokens: u32) {
        self.tokens += u64::from(tokens);
        self.stats.tokens.fetch_add(u64::from(tokens), Relaxed);
        self.stats.steps.fetch_add(1, Relaxed);
        if self.verdict == Verdict::Aborted {
            self.stats.tokens_after_close.fetch_add(u64::from(tokens), Relaxed);
        }
    }

    /// The whole answer has gone.
    pub(super) fn finished(&mut self, finish: Finish) {
        self.verdict = Verdict::Finished(finish);
    }

    /// The client has left, at `unix_us`. What comes now counts as generated after its close.
    pub(super) fn aborted(&mut self, unix_us: u64) {
        self.verdict = Verdict::Aborted;
        self.stats.aborted.fetch_add(1, Relaxed);
        let request_id = self.request_id.clone();
        let mut aborts = self.stats.aborts();
        if aborts.len() == ABORTS_MAX {
            aborts.pop_front();
        }
        aborts.push_back(Abort { request_id, tokens: self.tokens, at_unix_us: unix_us });
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        if let Some(chain) = self.chain {
            let finished = matches!(self.verdict, Verdict::Finished(_));
            let request_id = std::mem::take(&mut self.request_id);
            self.stats.accounts().add(Account { request_id, tokens: self.tokens, chain, finished });
        }
        let counter = match self.verdict {
            Verdict::Finished(Finish::Length) => &self.stats.length,
            Verdict::Finished(Finish::Stop | Finish::ToolCalls) => &self.stats.stopped,
            Verdict::Failed => &self.stats.failed,
            Verdict::Aborted => return,
        };
        counter.fetch_add(1, Relaxed);
    }
}

impl Abort {
    fn json(&self) -> Value {
        json!({"request_id": self.request_id, "tokens": self.tokens, "at_unix_us": self.at_unix_us})
    }
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
