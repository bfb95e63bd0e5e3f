//! What reading a stream costs: nanoseconds for each event, by chunk size.
//!
//! Run it with `cargo bench --bench sse`. It reframes and observes one long stream of vLLM-like
//! frames, cut into chunks of one size, and prints the best of several rounds.

#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use streamgate::openai::Observer;
use streamgate::sse::{Reframer, Scanner};

const EVENTS: usize = 7_000;
const ROUNDS: usize = 9;

fn main() {
    let event = event();
    let stream: Bytes = event.repeat(EVENTS).into();
    println!("{} events of {} bytes; ns per event", EVENTS, event.len());
    println!("{:>10} {:>10} {:>10} {:>10}", "chunk", "scan", "reframe", "observe");
    for size in [1, 64, event.len(), 16 * 1024] {
        let chunks: Vec<Bytes> =
            (0..stream.len()).step_by(size).map(|at| stream.slice(at..stream.len().min(at + size))).collect();
        let (scan, reframe, observe) =
            (best(|| scan(&chunks)), best(|| reframe(&chunks)), best(|| observe(&chunks)));
        println!("{size:>10} {scan:>10.1} {reframe:>10.1} {observe:>10.1}");
    }
}

/// A frame of one token, as vLLM writes it: about 230 bytes.
fn event() -> Vec<u8> {
    let json = r#"{"id":"chatcmpl-7f9c2ba4e88f827d616045507605853e","object":"chat.completion.chunk","created":1767225600,"model":"llama-3.1-8b","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}"#;
    format!("data: {json}\n\n").into_bytes()
}

/// Nanoseconds per event of the best round.
fn best(mut round: impl FnMut() -> usize) -> f64 {
    let time = |round: &mut dyn FnMut() -> usize| {
        let start = Instant::now();
        assert_eq!(black_box(round()), EVENTS);
        start.elapsed()
    };
    let best: Duration = (0..ROUNDS).map(|_| time(&mut round)).min().unwrap_or_default();
    best.as_nanos() as f64 / EVENTS as f64
}

fn scan(chunks: &[Bytes]) -> usize {
    let (mut scanner, mut events) = (Scanner::new(), 0);
    for chunk in chunks {
        let mut at = 0;
        while let Some(boundary) = scanner.next(chunk, at) {
            at = boundary.at;
            events += usize::from(boundary.event.is_some());
        }
    }
    events
}

fn reframe(chunks: &[Bytes]) -> usize {
    let (mut reframer, mut events) = (Reframer::new(16 * 1024), 0);
    for chunk in chunks {
        black_box(reframer.push(chunk.clone(), &mut |_| events += 1));
    }
    events
}

fn observe(chunks: &[Bytes]) -> usize {
    let (mut reframer, mut observer) = (Reframer::new(16 * 1024), Observer::default());
    for chunk in chunks {
        black_box(reframer.push(chunk.clone(), &mut |event| {
            observer.event(&event);
        }));
    }
    usize::try_from(observer.data_events()).unwrap_or_default()
}
