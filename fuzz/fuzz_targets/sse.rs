//! Event streams: every byte comes out again in its order, and the events are the same however the stream is cut.
#![no_main]

#[path = "../targets/sse.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| target::run(input));
