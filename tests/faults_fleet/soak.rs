//! Faults at random under mixed load, for as long as it is told (row G18 by hand: `make soak`).
//!
//! Between checkpoints clients stream, ask, leave and read slowly while every few seconds something goes wrong. At a
//! checkpoint they hold still, and what must hold whenever nothing is under way is looked at: the counts, the lines,
//! the descriptors, the memory, and every token on both ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::json;

use crate::field::{Field, load};
use crate::support::fleet::{checks as checked, with};
use crate::support::wait::{SOON, ms, silence, wait_until};
use crate::support::{Engine, Row, Settings, checks};

const CHECKPOINT: Duration = Duration::from_secs(20);
/// Resident memory that a run may gain between its second checkpoint and its last, in KiB.
const GAIN_KB: u64 = 48 * 1024;
/// What an engine can be told to do.
const ILLS: [&str; 10] = [
    "reset_at=5",
    "fin_at=3",
    "truncated_chunk_at=4",
    "reset_before_head",
    "fin_after_head",
    "status=503",
    "status=500",
    "garbage",
    "stall_at=6",
    "stall_after_head",
];

fn settings(settings: Settings) -> Settings {
    let health = with(checked())(settings).set("clusters.c.health.wedged", json!({ "after": "1500ms" }));
    health.set("timeouts.idle", "2s").set("timeouts.first_event", "2s").set("timeouts.connect", "500ms")
}

/// One thing goes wrong, and is over at the end.
async fn strike(row: &mut Row, rng: &mut Rng, count: &mut [usize; 6]) {
    let (which, kind) = (rng.usize(0..row.engines.len()), rng.usize(0..count.len()));
    count[kind] += 1;
    match kind {
        0 => {
            let engine = row.engines.remove(which);
            let addr = engine.addr;
            engine.kill();
            silence(ms(rng.u64(100..1500))).await;
            row.engines.insert(which, Engine::again(addr).await);
        }
        1 => {
            row.engines[which].signal("STOP");
            silence(ms(rng.u64(100..2500))).await;
            row.engines[which].signal("CONT");
        }
        2 => {
            let text = std::fs::read_to_string(row.gateway.file()).expect("the file");
            row.gateway.rewrite_text("server: [");
            silence(ms(400)).await;
            row.gateway.rewrite_text(text);
        }
        3 => row.gateway.signal("HUP"),
        4 => {
            let text = std::fs::read_to_string(row.gateway.file()).expect("the file");
            let (from, to) =
                if text.contains("\"8s\"") { ("\"8s\"", "\"9s\"") } else { ("\"9s\"", "\"8s\"") };
            row.gateway
                .rewrite_text(text.replace(from, to).replace("\"total\":\"30s\"", "\"total\":\"31s\""));
            drop(row.gateway.admin_post("/reload").await);
        }
        _ => {
            row.engines[which].faults(rng.choice(ILLS).expect("some")).await;
            silence(ms(rng.u64(300..2500))).await;
            row.engines[which].faults("").await;
        }
    }
}

/// Figures of a checkpoint.
#[derive(Debug, Clone, Copy)]
struct Rest {
    at: Duration,
    rss_kb: u64,
    fds: usize,
}

/// Nothing is under way: looks at all that must hold then. Gives the tokens proven since the last time.
async fn rests(row: &Row, fds: usize) -> u64 {
    checks::at_rest(&row.gateway).await;
    for engine in &row.engines {
        engine.wait_count("running", 0).await;
    }
    let tokens = row.both_ends().await;
    row.keeps_secrets().await;
    wait_until("descriptors are given back", 3 * SOON, || row.gateway.fd_count() <= fds + 8).await;
    assert!(!row.gateway.log().contains("panicked"), "{}", row.gateway.log());
    tokens
}

/// What a line fitted through the figures gains in a minute, in KiB.
fn slope(rests: &[Rest]) -> f64 {
    let points: Vec<(f64, f64)> =
        rests.iter().map(|rest| (rest.at.as_secs_f64() / 60.0, rest.rss_kb as f64)).collect();
    let count = points.len() as f64;
    let (x, y) =
        points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let (up, down) = points.iter().fold((0.0, 0.0), |sum, point| {
        (sum.0 + (point.0 - x) * (point.1 - y), sum.1 + (point.0 - x).powi(2))
    });
    if down > 0.0 { up / down } else { 0.0 }
}

/// G18 for as long as `STREAMGATE_SOAK` says (seconds); `STREAMGATE_SEED` repeats the faults of a run.
#[tokio::test]
#[ignore = "as long as it is told: make soak"]
async fn g18_soak() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let length = Duration::from_secs(number("STREAMGATE_SOAK").unwrap_or(60));
    let seed = number("STREAMGATE_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}: {} s", length.as_secs());
    let mut rng = Rng::with_seed(seed);
    let mut row = Row::start(3, settings).await;
    row.gateway.checked().await;
    let (began, fds) = (Instant::now(), row.gateway.fd_count());
    let field = Arc::new(Field::default());
    let mut clients = load(&row, &field, &mut rng);
    let (mut count, mut tokens, mut figures, mut lines) = ([0; 6], 0, Vec::new(), 0);
    while began.elapsed() < length {
        let until = Instant::now() + CHECKPOINT;
        while Instant::now() < until {
            silence(ms(rng.u64(500..2500))).await;
            strike(&mut row, &mut rng, &mut count).await;
            if let Some(Err(error)) = clients.try_join_next() {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        let closed = field.gate.write().await;
        let seen = field.seen();
        tokens += rests(&row, fds).await;
        lines += told_of(&row, seen.all() - lines).await;
        let at = began.elapsed();
        figures.push(Rest { at, rss_kb: row.gateway.rss_kb(), fds: row.gateway.fd_count() });
        let last = figures.last().expect("just pushed");
        println!("{:4} s  {count:?} faults  {tokens} tokens  {last:?}  {seen:?}", at.as_secs());
        drop(closed);
    }
    clients.shutdown().await;
    let warm = &figures[1.min(figures.len() - 1)..];
    let (first, last) = (warm.first().expect("one"), warm.last().expect("one"));
    println!(
        "{} faults by the harness, memory {:+.0} KiB a minute, descriptors {} to {}",
        count.iter().sum::<usize>(),
        slope(warm),
        first.fds,
        last.fds
    );
    assert!(last.rss_kb < first.rss_kb + GAIN_KB, "{figures:?}");
}

/// Waits for the lines of so many exchanges and takes them away, so that a long run keeps none of them. Gives the count.
async fn told_of(row: &Row, exchanges: usize) -> usize {
    let lines = row.lines(exchanges).await;
    assert!(lines.iter().all(|line| line["attempts"].as_u64() <= Some(2)), "at most two attempts");
    // Nobody writes while all hold still, and who writes next appends.
    let file = row.gateway.dir.path().join("access.log");
    std::fs::File::create(file).expect("the access log is emptied");
    lines.len()
}
