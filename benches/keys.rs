//! What keys cost: a request that presents one, in nanoseconds, and a file of 100,000 of them; and whether the time of a
//! lookup tells how near a wrong key's digest came to one that is known.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use streamgate::config::{Config, Environment};
use streamgate::keys::{Digest, Presented, Ring, Strangers, presented};
use streamgate::snapshot::Snapshot;

const KEYS: usize = 100_000;
/// Keys of a table whose lookups are timed: in a small one it is its answers that differ, not where the memory lies.
const FEW: usize = 1000;
/// Wrong keys of each kind for one table.
const WRONG: usize = 1024;
/// Tables, each with another secret order.
const TABLES: usize = 64;

/// The text of key `n`, as long as those that `streamgate key new` makes.
fn key(n: usize) -> String {
    format!("sg-{n:048x}")
}

/// The file of all keys, each with this behind its digest.
fn file(models: &str) -> String {
    let mut text = "server: { listen: [{ address: 127.0.0.1:0 }] }\n\
                    clusters: { c: { backends: [{ name: b, url: \"http://127.0.0.1:1\" }] } }\n\
                    routes: [{ match: { path: /v1/chat/completions }, cluster: c }]\nkeys:\n"
        .to_owned();
    for n in 0..KEYS {
        let digest = Digest::of(key(n).as_bytes()).to_hex();
        writeln!(text, "  - {{ name: team-{n}, sha256: \"{digest}\"{models} }}").unwrap();
    }
    text
}

/// Nanoseconds of one run, the median of many batches.
fn nanoseconds(mut run: impl FnMut(usize)) -> f64 {
    let mut batches: Vec<f64> = (0..101)
        .map(|batch| {
            let begin = Instant::now();
            (0..1000).for_each(|n| run(batch * 1000 + n));
            begin.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches[50]
}

fn head(key: &str) -> HeaderMap {
    let mut head = HeaderMap::new();
    for name in ["host", "user-agent", "accept", "content-type", "content-length", "x-request-id"] {
        head.insert(name, "some-value".parse().unwrap());
    }
    head.insert("authorization", format!("Bearer {key}").parse().unwrap());
    head
}

fn find<'r>(ring: &'r Ring, head: &HeaderMap) -> Option<&'r str> {
    let Presented::Key(key) = presented(head) else { return None };
    ring.find(key).map(|key| &*key.name)
}

/// Time of the processor that this thread has had; the machine may have been busy with other things.
fn processor() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

/// Reads and builds a file a few times, each on top of the one before it, as reloads do.
fn reload(text: &str) -> Snapshot {
    let (mut reading, mut building, mut snapshot) = (Duration::MAX, Duration::MAX, None);
    for _ in 0..5 {
        let begin = processor();
        let config = Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap().config;
        reading = reading.min(processor() - begin);
        let begin = processor();
        let resolve = |_: &str, port: u16| Ok::<_, ()>(([127, 0, 0, 1], port).into());
        snapshot = Some(Snapshot::build(config, snapshot.as_ref(), resolve).unwrap());
        building = building.min(processor() - begin);
    }
    let size = text.len() as f64 / f64::from(1 << 20);
    println!(
        "a file of {KEYS} keys, {size:.1} MiB: read in {reading:.2?}, built in {building:.0?} of the processor"
    );
    snapshot.unwrap()
}

/// Wrong keys from the `nth` on, by whether their digest shares its first two bytes with one of the first thousand keys.
/// They lie side by side in memory: where they lie must not tell them apart.
fn far_and_near(mut nth: usize) -> ([Vec<[u8; 51]>; 2], usize) {
    let known: HashSet<String> =
        (0..FEW).map(|n| Digest::of(key(n).as_bytes()).to_hex()[..4].to_owned()).collect();
    let mut sorted = [Vec::new(), Vec::new()];
    while sorted.iter().any(|keys| keys.len() < WRONG) {
        let kind = usize::from(known.contains(&Digest::of(key(nth).as_bytes()).to_hex()[..4]));
        if sorted[kind].len() < WRONG {
            sorted[kind].push(key(nth).into_bytes().try_into().unwrap());
        }
        nth += 1;
    }
    (sorted, nth)
}

/// Mean nanoseconds of both kinds, over so many runs of each, in a random order. Those beyond the 99th percentile, which are
/// interrupts, are left out.
fn means(runs: usize, mut run: impl FnMut(usize)) -> [f64; 2] {
    let mut times = [Vec::with_capacity(runs), Vec::with_capacity(runs)];
    for _ in 0..2 * runs {
        let kind = usize::from(fastrand::bool());
        let begin = Instant::now();
        run(kind);
        times[kind].push(begin.elapsed().as_nanos() as f64);
    }
    let mut all = times.concat();
    all.sort_by(f64::total_cmp);
    let longest = all[all.len() * 99 / 100];
    times.map(|mut times| {
        times.retain(|time| *time <= longest);
        times.iter().sum::<f64>() / times.len() as f64
    })
}

/// Student's t of the differences between both kinds, and their mean in nanoseconds. Beyond 4.5 they can be told apart, as
/// dudect has it (Reparaz and others, 2017). Each difference must come from a table and from keys of its own: within one table the
/// places of the keys differ, and that is no property of what they are near to.
fn student(differences: &[f64]) -> (f64, f64) {
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let variance = differences.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean / (variance / count).sqrt(), mean)
}

/// A wrong key whose digest is near a known one, against one that is far from all.
fn lookups(snapshot: &Snapshot) -> (f64, f64) {
    let mut nth = KEYS;
    let differences: Vec<f64> = (0..TABLES)
        .map(|_| {
            let known = |n: usize| Arc::clone(snapshot.keys.find(key(n).as_bytes()).unwrap());
            let ring = Ring::new((0..FEW).map(known));
            let (kinds, next) = far_and_near(nth);
            nth = next;
            let [far, near] = means(50_000, |kind| {
                let wrong = &kinds[kind][fastrand::usize(..WRONG)];
                assert!(black_box(ring.find(black_box(&wrong[..]))).is_none());
            });
            near - far
        })
        .collect();
    student(&differences)
}

/// A digest that differs from another in its last byte, against one that differs in its first.
fn comparisons() -> (f64, f64) {
    let differences: Vec<f64> = (0..TABLES)
        .map(|n| {
            let one = Digest::of(key(n).as_bytes());
            let differing = |at: usize| {
                let mut hex = one.to_hex().into_bytes();
                hex[2 * at] = if hex[2 * at] == b'0' { b'1' } else { b'0' };
                Digest::from_hex(std::str::from_utf8(&hex).unwrap()).unwrap()
            };
            let others = [differing(0), differing(31)];
            let [first, last] = means(50_000, |kind| {
                // Many to a time, as one is far shorter than what reads the clock.
                for _ in 0..64 {
                    assert!(black_box(&one) != black_box(&others[kind]));
                }
            });
            (last - first) / 64.0
        })
        .collect();
    student(&differences)
}

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    reload(&file(", models: [\"qwen*\"]"));
    let snapshot = reload(&file(""));
    for (what, (t, mean)) in [
        ("wrong keys whose digests are near a known one, and far from all", lookups(&snapshot)),
        ("digests that differ in the last byte, and in the first", comparisons()),
    ] {
        println!("{what}: t is {t:.2} over {TABLES} tables (4.5 would tell them apart), {mean:+.2} ns apart");
    }

    let ring = snapshot.keys;
    let known: Vec<HeaderMap> = (0..1000).map(|n| head(&key(n * 97))).collect();
    let wrong: Vec<HeaderMap> = (0..1000).map(|n| head(&key(KEYS + n))).collect();
    println!(
        "a known key, from its head: {:.0} ns",
        nanoseconds(|n| assert!(black_box(find(&ring, &known[n % 1000])).is_some()))
    );
    println!(
        "a wrong key, the same: {:.0} ns",
        nanoseconds(|n| assert!(black_box(find(&ring, &wrong[n % 1000])).is_none()))
    );
    let (strangers, now) = (Strangers::default(), Instant::now());
    let address = |n: usize| Some(IpAddr::from(u32::try_from(n).unwrap().to_be_bytes()));
    println!(
        "and noted, of ever new addresses: {:.0} ns",
        nanoseconds(|n| assert!(black_box(strangers.note(address(n), now)).is_ok()))
    );
}
