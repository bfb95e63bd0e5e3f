//! Properties that hold for every input: clever routines against naive twins, all splits, all orders of events.

#![allow(missing_docs, reason = "a test crate has no readers of its API")]

mod admission;
mod json;
mod naive;
mod pick;
mod queue;
mod shared;
mod sse;
