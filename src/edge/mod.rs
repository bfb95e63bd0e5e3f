//! The client's side of a connection, below HTTP: sockets that we bind, and the stream that Pingora
//! reads and writes through.
//!
//! Pingora knows that a write did not finish; it does not know whether the client made progress. So
//! every client connection is wrapped in a `Conn`, which does.

mod client;
mod conn;
mod listener;
mod serve;

pub use client::{Client, Cut};
pub use listener::{Bound, bind};
pub use serve::on_connection;
