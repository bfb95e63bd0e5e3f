//! Retry-After in its forms: read or not, and never in the past.
#![no_main]

#[path = "../targets/retry_after.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| target::run(input));
