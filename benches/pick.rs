//! What choosing a backend costs: nanoseconds for each attempt, by the number of backends.
//!
//! Run it with `cargo bench --bench pick`. It picks from a cluster as the proxy does, the collection of the
//! candidates and the guard included, and prints the best of several rounds. With `affinity` each attempt
//! has one key of 1,000; with `prompt` it has 20 keys, as a conversation of 30 KB has.

#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use streamgate::cluster::pick::mix;
use streamgate::cluster::{Ask, Cluster};
use streamgate::config::{Config, Environment};
use streamgate::snapshot::Snapshot;

const ATTEMPTS: u64 = 20_000;
const ROUNDS: usize = 9;
/// Attempts that are open at any time.
const OPEN: usize = 256;

fn main() {
    println!("ns per attempt, the best of {ROUNDS} rounds");
    print!("{:>9}", "backends");
    let kinds = ["round_robin", "random", "least_load", "consistent_hash", "affinity", "prompt"];
    kinds.iter().for_each(|kind| print!(" {kind:>16}"));
    println!();
    for backends in [4, 64, 1_024] {
        print!("{backends:>9}");
        for kind in kinds {
            let cluster = cluster(backends, kind);
            let keys = if kind == "prompt" { 20 } else { 1 };
            print!(" {:>16.0}", best(&cluster, keys));
        }
        println!();
    }
}

/// A cluster whose last backend weighs more, so that no shortcut for equal weights is taken.
fn cluster(backends: usize, kind: &str) -> Arc<Cluster> {
    let mut list = String::new();
    for n in 1..=backends {
        let weight = if n == backends { 2 } else { 1 };
        write!(list, "{{ name: b{n}, url: \"http://127.0.0.1:{n}\", weight: {weight} }},")
            .expect("a string takes it");
    }
    let how = match kind {
        "affinity" => "balance: least_load, affinity: { by: [session] }".to_owned(),
        "prompt" => "balance: least_load, affinity: { by: [prefix] }".to_owned(),
        balance => format!("balance: {balance}"),
    };
    let text = format!(
        "server: {{ listen: [{{ address: 127.0.0.1:0 }}] }}\n\
         clusters: {{ c: {{ backends: [{list}], {how} }} }}\n\
         routes: [{{ match: {{ path: /v1/chat/completions }}, cluster: c }}]\n"
    );
    let config = Config::parse(&text, &Environment::bare(2, 1 << 30)).expect("a sound file").config;
    let resolve = |_: &str, port| Ok::<_, ()>(SocketAddr::from(([127, 0, 0, 1], port)));
    let snapshot = Snapshot::build(config, None, resolve).expect("an address");
    snapshot.come_into_force(Instant::now());
    snapshot.clusters[0].clone()
}

/// Nanoseconds per attempt of the best round.
fn best(cluster: &Cluster, keys: u64) -> f64 {
    let time = |_| {
        let (start, mut open) = (Instant::now(), VecDeque::with_capacity(OPEN + 1));
        for attempt in 0..ATTEMPTS {
            let draw = mix(attempt);
            let key = mix(draw % 1_000);
            let keys: smallvec::SmallVec<[u64; 32]> = (0..keys).map(|block| key + block).collect();
            let ask = Ask {
                lenient: true,
                sound: false,
                tried: &[],
                now: start,
                draw,
                cost: 512 + draw % 512,
                keys: &keys,
                chooser: None,
            };
            open.push_back(black_box(cluster.pick(&ask)).expect("all are usable"));
            if open.len() > OPEN {
                drop(open.pop_front());
            }
        }
        start.elapsed()
    };
    let best: Duration = (0..ROUNDS).map(time).min().unwrap_or_default();
    best.as_nanos() as f64 / ATTEMPTS as f64
}
