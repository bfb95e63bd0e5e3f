//! Connections of HTTP/1.1: the same requests however the bytes are cut, and each of them one to a plain parser, too.
#![no_main]

#[path = "../targets/head.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| target::run(input));
