//! The way of a request and of its answer through the gateway.

#[path = "../support/mod.rs"]
mod support;

mod backpressure;
mod bodies;
mod causes;
mod connections;
mod dialects;
mod disconnect;
mod early;
mod edge;
mod embedded;
mod endings;
mod errors;
mod events;
mod failures;
mod given_up;
mod h2;
mod h2_connection;
mod heads;
mod http10;
mod pipelining;
mod profiles;
mod requests;
mod retry;
mod rules;
mod session_refusals;
mod sessions;
mod shutdown;
mod signals;
mod starved;
mod streaming;
mod tls;
mod usage;
