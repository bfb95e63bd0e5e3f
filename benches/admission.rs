//! What limits cost a request: nanoseconds from the head to the end, of one thread and of two on the same key.
//!
//! Run it with `cargo bench --bench admission`. It does what the proxy does for an exchange of a key that has
//! every limit: the address, the account by its name, connection, concurrency, early cancels, requests, tokens,
//! the headers of the answer, and the settlement. The best of several rounds is printed. Events cost nothing:
//! none of it is asked while an answer streams.

#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use streamgate::admission::charge::{Estimate, Reached, charge, used};
use streamgate::admission::{Accounts, Metered, PerIp};
use streamgate::cluster::load::Work;
use streamgate::config::units::Rate;
use streamgate::config::{Key, KeyLimits};
use streamgate::keys::Digest;

const REQUESTS: u32 = 20_000;
const ROUNDS: usize = 9;
const KEYS: u32 = 1_000;
const PLENTY: Rate = Rate { count: 1_000_000_000_000, per: Duration::from_secs(60) };

fn main() {
    let limits = KeyLimits {
        requests: Some(PLENTY),
        tokens: Some(PLENTY),
        concurrent: Some(1_000_000),
        early_cancels: Some(PLENTY),
        connections: Some(1_000_000),
    };
    let key = |n: u32| {
        let (name, digest) = (format!("key-{n}"), Digest::of(&n.to_le_bytes()));
        Arc::new(Key { name: name.into(), digest, models: None, limits: limits.clone() })
    };
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let accounts = Accounts::next(&keys, None);
    accounts.come_into_force(Instant::now());
    let per_ip = PerIp::default();
    println!("ns per request, the best of {ROUNDS} rounds");
    println!(
        "{:>24} {:>6.0}",
        "one thread, 1000 keys",
        best(1, |n| request(&accounts, &per_ip, &keys, n, n))
    );
    println!("{:>24} {:>6.0}", "two threads, one key", best(2, |n| request(&accounts, &per_ip, &keys, 0, n)));
}

/// All that limits do for one exchange.
fn request(accounts: &Accounts, per_ip: &PerIp, keys: &[Arc<Key>], key: u32, address: u32) {
    let now = Instant::now();
    let address = IpAddr::V4(Ipv4Addr::from_bits(address % 50_000));
    per_ip.take(address, PLENTY, now).expect("plenty");
    let account = accounts.of(&keys[(key % KEYS) as usize].name).expect("it has limits");
    let connected = account.connect(now).expect("plenty");
    let mut permit = account.enter(now).expect("plenty");
    permit.take(Metered::Requests, 1, now).expect("plenty");
    let work = Work { body_bytes: 4_000, generates: true, tokens_max: Some(500), answers: None };
    let estimate = Estimate::of(&work);
    permit.take(Metered::Tokens, estimate.sum(), now).expect("plenty");
    permit.standing(now).headers().for_each(|header| drop(black_box(header)));
    permit.leave();
    let used = used(&estimate, Reached::Seen, None).map(|(usage, _)| usage);
    permit.settle(charge(&estimate, used.as_ref()), now);
    drop(connected);
}

/// Nanoseconds per request of the best round.
fn best(threads: u32, request: impl Fn(u32) + Sync) -> f64 {
    let time = |_| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..REQUESTS).for_each(&request));
            }
        });
        start.elapsed()
    };
    let best: Duration = (0..ROUNDS).map(time).min().unwrap_or_default();
    best.as_nanos() as f64 / f64::from(REQUESTS)
}
