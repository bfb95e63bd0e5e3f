//! What an engine says of its own load, as it was last read.

use std::time::Instant;

/// One reading, summed over the engines behind one address.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When it was taken.
    pub at: Instant,
    /// Requests that it is generating for.
    pub running: u32,
    /// Requests that wait inside it.
    pub waiting: u32,
    /// Share of its KV cache in use, 0 to 1: the fullest engine's.
    pub kv_usage: Option<f64>,
    /// Grows with each step of the engine; stands still when it is stuck.
    pub steps: Option<u64>,
}
