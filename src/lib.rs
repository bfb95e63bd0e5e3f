//! streamgate: the edge gateway for self-hosted LLM inference.
//!
//! Read ARCHITECTURE.md for the map; `proxy` for the life of a request.

pub mod config;
pub mod openai;
pub mod sim;
pub mod sse;
pub mod usage;
