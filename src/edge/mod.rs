//! The client's side of a connection, below HTTP: sockets that we bind, and the stream that Pingora
//! reads and writes through.
//!
//! Heads are read and checked here, whole and in time, before Pingora parses them again.
//!
//! Pingora knows that a write did not finish; it does not know whether the client made progress. So
//! every client connection is wrapped in a `Conn`, which does.

mod blocked;
mod chunks;
mod client;
mod conn;
mod connections;
mod crowd;
mod door;
mod h2;
mod handshake;
mod head;
mod inbound;
mod listener;
mod pair;
mod preface;
mod proxy_header;
mod quiet;
mod reader;
mod refuse;
mod scratch;
mod serve;
mod target;
mod tls;
#[cfg(any(test, fuzzing))]
pub mod trial;

pub use client::{Client, Cut};
pub use connections::{Connections, TurnedAway};
pub use door::{Door, Entry, on_connection};
pub use handshake::Handshake;
pub use head::{HEADERS_MAX, Limits};
pub use listener::{Bound, bind, key};
pub use pair::Shown;
pub use refuse::Witness;
pub(crate) use refuse::close;
pub use serve::{Below, Edge};
pub use tls::{Place, Tls, TlsError};
