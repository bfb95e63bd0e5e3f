//! The targets of `fuzz/` without a fuzzer: each seed, and many inputs made of the seeds by chance, the same in each
//! run. It finds what lies near the seeds; `make fuzz` looks further.

#![allow(clippy::print_stdout, reason = "how far a run came is for people to see")]

#[path = "../fuzz/targets/config.rs"]
mod config;
#[path = "../fuzz/targets/json.rs"]
mod json;
#[path = "../fuzz/targets/key.rs"]
mod key;
#[path = "../fuzz/targets/retry_after.rs"]
mod retry_after;
#[path = "../fuzz/targets/sse.rs"]
mod sse;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that parsers look for.
const TOKENS: [&[u8]; 28] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"\r",
    b"\n",
    b"\n\n",
    b" ",
    b"-",
    b"1e9",
    b"\\u0061",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\0",
    b"data: ",
    b"event: ",
    b": ",
    b"&a ",
    b"*a",
    b"${X}",
    b"99999999999999999999",
];

/// Runs the seeds of a target, and `count` inputs made of them.
fn run(target: &str, count: usize, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut seeds: Vec<Vec<u8>> = fs::read_dir(folder)
        .expect("a target has seeds")
        .map(|entry| fs::read(entry.expect("an entry").path()).expect("a seed"))
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 4, "{target} has {} seeds", seeds.len());
    let run = |input: &[u8]| {
        let _told = Told(input);
        run(input);
    };
    seeds.iter().for_each(|seed| run(seed));
    // For so many seconds, from where chance has it, if the environment says so.
    let seconds = std::env::var("STREAMGATE_FUZZ_SECONDS").ok().map(|text| text.parse().expect("seconds"));
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut chance = end.map_or_else(|| fastrand::Rng::with_seed(7), |_| fastrand::Rng::new());
    let mut ran = 0;
    while end.map_or(ran < count, |end| Instant::now() < end) {
        let mut input = seeds[chance.usize(..seeds.len())].clone();
        for _ in 0..chance.usize(1..6) {
            mutate(&mut input, &seeds, &mut chance);
        }
        run(&input);
        ran += 1;
    }
    println!("{target}: {ran} inputs");
}

/// Shows the input that a target panics at, to be made a seed.
struct Told<'a>(&'a [u8]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was {:?}", self.0.escape_ascii().to_string());
        }
    }
}

/// One change: a byte, a token put in, a piece taken out, doubled, or of another seed.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], chance: &mut fastrand::Rng) {
    let at = chance.usize(..=input.len());
    let end = (at + chance.usize(..32)).min(input.len());
    match chance.u8(..5) {
        0 if at < input.len() => input[at] = chance.u8(..),
        1 => drop(input.drain(at..end)),
        2 => {
            let piece = input[at..end].to_vec();
            input.splice(at..at, piece);
        }
        3 => {
            let other = &seeds[chance.usize(..seeds.len())];
            let from = chance.usize(..=other.len());
            let piece = other[from..(from + chance.usize(..64)).min(other.len())].to_vec();
            input.splice(at..at, piece);
        }
        _ => {
            let token = TOKENS[chance.usize(..TOKENS.len())];
            input.splice(at..at, token.iter().copied());
        }
    }
}

#[test]
fn event_streams() {
    run("sse", 10_000, sse::run);
}

#[test]
fn request_bodies() {
    run("json", 20_000, json::run);
}

#[test]
fn configurations() {
    run("config", 1_000, config::run);
}

#[test]
fn retry_after_headers() {
    run("retry_after", 20_000, retry_after::run);
}

#[test]
fn key_headers() {
    run("key", 20_000, key::run);
}
