//! Headers that carry a key: what is taken for one stands in a header, and two that differ are none.
#![no_main]

#[path = "../targets/key.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| target::run(input));
