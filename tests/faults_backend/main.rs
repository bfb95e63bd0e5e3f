//! The rows of the fault matrix about what a backend does.

#[path = "../support/mod.rs"]
mod support;

mod connect;
mod cut;
mod framing;
mod odd;
mod status;
mod time;
