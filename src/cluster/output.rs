//! What has come out: tokens as they pass, and how fast they come.
//!
//! Counts since the process began, of a backend or of a whole cluster. A stream adds to them some times a second
//! and not with each token.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::spread::{GAPS, Spread, WAITS};

/// What has come out of a backend, or of a cluster.
#[derive(Debug)]
pub struct Output {
    tokens: AtomicU64,
    /// From the request sent to the first token of a stream.
    pub first_token: Spread,
    /// Between the arrivals of tokens in a stream.
    pub gaps: Spread,
}

impl Default for Output {
    fn default() -> Self {
        Self { tokens: AtomicU64::new(0), first_token: Spread::new(&WAITS), gaps: Spread::new(&GAPS) }
    }
}

impl Output {
    /// Counts tokens that have come.
    pub fn add_tokens(&self, count: u64) {
        self.tokens.fetch_add(count, Ordering::Relaxed);
    }

    /// Tokens that have come so far.
    pub fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }
}
