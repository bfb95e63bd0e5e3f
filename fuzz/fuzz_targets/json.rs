//! Request bodies: what passes is JSON to a full parser, too, says the same there, and stays so when it is changed.
#![no_main]

#[path = "../targets/json.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| target::run(input));
