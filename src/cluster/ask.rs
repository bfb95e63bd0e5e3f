//! What a backend is asked for: the facts of one attempt that its choice depends on.

use std::sync::Arc;
use std::time::Instant;

use super::Backend;
use crate::hooks::Chooser;

/// One attempt that needs a backend.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Backends this exchange was tried on, the last one last.
    pub tried: &'a [Arc<Backend>],
    /// No other cluster of its route can take it: where all checks of this one fail, they keep nobody out.
    pub lenient: bool,
    /// Only backends whose last attempt did not fail: there are others, which have not been asked yet.
    pub sound: bool,
    /// When it is asked.
    pub now: Instant,
    /// A random number, drawn for this attempt.
    pub draw: u64,
    /// What the request is estimated to cost, in tokens to generate ([`super::load::cost`]).
    pub cost: u64,
    /// What it sticks by, from what it shares with many to what is its own; empty for nothing.
    pub keys: &'a [u64],
    /// Who is asked first among the usable, if anybody is.
    pub chooser: Option<Chooser<'a>>,
}
