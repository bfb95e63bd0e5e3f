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
pub mod deadline;
pub mod drain;
pub mod edge;
pub mod failure;
pub mod header_rules;
pub mod ledger;
pub mod metrics;
pub mod openai;
pub mod outcome;
pub mod outlet;
pub mod proxy;
pub mod rejection;
pub mod request_id;
pub mod retry;
pub mod route;
pub mod secret;
pub mod server;
pub mod session_map;
mod signals;
pub mod sim;
pub mod snapshot;
pub mod sse;
pub mod told;
pub mod upstream;
pub mod usage;
