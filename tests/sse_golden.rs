//! Streams as engines send them, and what the gateway reads in them.
//!
//! `tests/golden/<engine>-<case>.sse` holds the bytes, `.events` beside it the expected reading;
//! `UPDATE_GOLDEN=1 cargo test --test sse_golden` writes the latter anew. Each stream is read whole
//! and in chunks of many sizes, from a byte up: the reading must always be the same. A case whose
//! name ends in `-cut` ends as a lost upstream does, the others end cleanly. A name with `-responses`,
//! `-messages` or `-transcription` in it is a stream of that endpoint, the others are of chat/completions.
//!
//! Add a case when an engine sends a form that no case has.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use streamgate::openai::{Dialect, Observer, UsagePlace};
use streamgate::sse::{Event, Reframer};

/// The gateway's own.
const EVENT_HOLD: usize = 16 * 1024;
/// Small, so that a case over the hold stays readable.
const SMALL_HOLD: usize = 600;
/// Enough sizes for a cut at every place that matters, several times.
const CHUNK_SIZES: usize = 48;

#[test]
fn every_stream_is_read_as_written() {
    let cases = cases();
    assert!(!cases.is_empty(), "tests/golden has no .sse file");
    for case in cases {
        let name = case.file_stem().and_then(|name| name.to_str()).expect("a name");
        let input = Bytes::from(fs::read(&case).expect("readable"));
        let reading = read(name, std::slice::from_ref(&input));
        for size in 1..CHUNK_SIZES {
            let chunks = (0..input.len()).step_by(size);
            let chunks: Vec<Bytes> = chunks.map(|at| input.slice(at..input.len().min(at + size))).collect();
            assert_eq!(read(name, &chunks), reading, "{name} in chunks of {size} bytes");
        }

        let golden = case.with_extension("events");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &reading).expect("writable");
        }
        let want = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(reading, want, "{name}: UPDATE_GOLDEN=1 accepts the new reading");
    }
}

/// The endpoint that the name of a case tells.
fn dialect(name: &str) -> Dialect {
    match name {
        _ if name.contains("-responses") => Dialect::Responses,
        _ if name.contains("-messages") => Dialect::Messages,
        _ if name.contains("-completions") => Dialect::Completions,
        _ if name.contains("-transcription") => Dialect::Other,
        _ => Dialect::Chat,
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = fs::read_dir(folder).expect("tests/golden is there");
    let paths = files.map(|file| file.expect("readable").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "sse")).collect()
}

/// Runs the chunks through the reframer and the observer; checks that the bytes are the same.
fn read(name: &str, chunks: &[Bytes]) -> String {
    let hold = if name.contains("over-the-hold") { SMALL_HOLD } else { EVENT_HOLD };
    let (mut reframer, mut observer) = (Reframer::new(hold), Observer::new(dialect(name)));
    let (mut reading, mut out) = (String::new(), Vec::new());
    for chunk in chunks {
        let passed = reframer.push(chunk.clone(), &mut |event| {
            let noted = observer.event(&event);
            let mut line = line(&event);
            line.push_str(if noted.first_token { "  <- first token" } else { "" });
            line.push_str(if noted.usage == UsagePlace::Frame { "  <- usage only" } else { "" });
            line.push_str(if noted.keep_alive { "  <- keep-alive" } else { "" });
            reading.push_str(&line);
            reading.push('\n');
        });
        out.extend(passed.into_iter().flatten());
    }
    let end = if name.ends_with("-cut") {
        let boundary = if reframer.at_boundary() { "at a boundary" } else { "inside an event" };
        format!("cut {boundary}, {} bytes dropped", out_of(chunks) - out.len())
    } else {
        let tail = reframer.finish().unwrap_or_default();
        out.extend_from_slice(&tail);
        assert_eq!(out, chunks.concat(), "{name}: the bytes are the same");
        format!("ended, with a tail of {} bytes", tail.len())
    };
    writeln!(reading, "{end}\n{}", summary(&observer)).expect("a string takes everything");
    reading
}

fn out_of(chunks: &[Bytes]) -> usize {
    chunks.iter().map(Bytes::len).sum()
}

fn line(event: &Event<'_>) -> String {
    let Some(raw) = event.raw else {
        let tail = event.ends.expect("what is not whole has ends").tail;
        let tail = tail[tail.len().saturating_sub(60)..].escape_ascii();
        return format!(
            "{:?} over the hold, ending in {}",
            event.kind,
            tail.to_string().replace("\\\"", "\"")
        );
    };
    let text = event.data().unwrap_or_else(|| raw.into());
    format!("{:?} {}", event.kind, text.escape_ascii().to_string().replace("\\\"", "\""))
}

fn summary(observer: &Observer) -> String {
    let seen = observer.seen();
    format!(
        "data events {}\ndone {}\nfinish reason {:?}\nusage {:?}\nerror {:?}",
        observer.data_events(),
        observer.done(),
        seen.finish_reason,
        observer.usage(),
        seen.error
    )
}
