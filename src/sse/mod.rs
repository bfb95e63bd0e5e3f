//! Server-sent events: finding, holding, reading and writing them.
//!
//! ```text
//! chunk -> Scanner (where do events end?) -> Reframer (whole events out, original bytes)
//!                                               `-> Event -> decode (what does it say?)
//! ```
//!
//! A *chunk* is bytes as they arrive, an *event* is what the SSE rules (WHATWG HTML 9.2.6) make of
//! them. Nothing here knows what the data means (see [`crate::openai`]), holds a socket or looks at
//! a clock.
//!
//! The one hard idea: bytes pass, meaning is read. The [`Reframer`] delays bytes until their event
//! is whole, but it never rewrites them unless a [`Verdict`] says so; everything else is a reading of a copy-free view.

mod boundary;
pub mod decode;
pub mod encode;
mod ends;
mod reframer;
mod verdict;
mod watch;

pub use boundary::{Boundary, EventKind, Scanner};
pub use ends::Ends;
pub use reframer::{Event, Reframer};
pub use verdict::Verdict;
pub use watch::DataWatch;
