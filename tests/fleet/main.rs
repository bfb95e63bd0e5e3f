//! Which backend an attempt goes to, and who waits for one.

#[path = "../support/mod.rs"]
mod support;

mod balance;
mod discovery;
mod fallback;
mod queue;
