//! streamgate: the edge gateway for self-hosted LLM inference.
//!
//! Read ARCHITECTURE.md for the map; `proxy` for the life of a request.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub mod access_log;
pub mod admin;
pub mod admission;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod cors;
pub mod deadline;
pub mod discovery;
pub mod drain;
pub mod edge;
pub mod embed;
pub mod failure;
pub mod forwarded;
pub mod guard;
pub mod handover;
pub mod header_rules;
pub mod hooks;
pub mod keys;
pub mod ledger;
pub mod live;
pub mod log_file;
pub mod memory;
pub mod metrics;
pub mod openai;
pub mod outcome;
pub mod outlet;
pub mod prober;
pub mod proxy;
pub mod recent;
pub mod rejection;
pub mod reload;
pub mod request_id;
pub mod retry;
pub mod route;
pub mod secret;
pub mod server;
pub mod session_map;
mod signals;
pub mod sim;
pub mod snapshot;
pub mod spread;
pub mod sse;
pub mod store;
mod supervisor;
pub mod tls;
pub mod told;
mod top;
pub mod trace;
pub mod upstream;
pub mod usage;
pub mod usage_log;
