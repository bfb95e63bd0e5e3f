//! Properties that hold for every input: clever routines against naive twins, and all splits.

#![allow(missing_docs, reason = "a test crate has no readers of its API")]

mod json;
mod naive;
mod sse;
