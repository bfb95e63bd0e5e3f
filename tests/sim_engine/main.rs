//! The simulated engine, seen by a client on a raw socket.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod cancel;
mod client;
mod faults;
mod serve;
