//! streamgate: the edge gateway for self-hosted LLM inference.
//!
//! Read ARCHITECTURE.md for the map; `proxy` for the life of a request.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub mod access_log;
pub mod admin;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod openai;
pub mod sim;
pub mod sse;
pub mod usage;
