//! The file changes under streams.

#[path = "../support/mod.rs"]
mod support;

mod backends;
mod bad_files;
mod file;
mod watch;
