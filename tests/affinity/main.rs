//! Affinity: where homes are ([`homes`]), and what they are worth: the real choice in front of simulated caches, on a workload of conversations.
//!
//! Each engine has a prefix cache of bounded size and slows down with what runs on it. Time and draws are
//! the simulation's, so the table is the same each time; run with `--nocapture` to see it. Asserted are the
//! relations, not the figures. docs/balancing.md shows the table.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, one of which prints its table")]

mod conversation;
mod engine;
mod fleet;
mod homes;

use fleet::{Figures, run};

const LEAST_LOAD: &str = "balance: least_load";
/// A bound of 100 times the mean is none.
const HASH: &str = "balance: consistent_hash, affinity: { by: [], load_bound: 100 }";
const BOUNDED_HASH: &str = "balance: consistent_hash, affinity: { by: [], load_bound: 1.25 }";
const SESSION: &str = "balance: least_load, affinity: { by: [session], load_bound: 1.25 }";
const WIDE: &str = "balance: least_load, affinity: { by: [session], load_bound: 2 }";
const PREFIX: &str = "balance: least_load, affinity: { by: [prefix], load_bound: 1.25 }";

/// Runs a policy and prints its line.
fn figures(name: &str, policy: &str, sessions: bool) -> Figures {
    let figures = run(policy, sessions);
    println!(
        "| {name:<34} | {:>9.1} | {:>12.2} | {:>15.0} | {:>8.1} |",
        100.0 * figures.cached,
        figures.spread,
        figures.first_event_ms,
        100.0 * figures.spilled
    );
    figures
}

#[test]
fn affinity_hits_like_a_hash_and_spreads_like_the_load() {
    println!(
        "| policy                             | cached, % | fullest/mean | first event, ms | spilt, % |"
    );
    println!(
        "|------------------------------------|-----------|--------------|-----------------|----------|"
    );
    let least_load = figures("least_load", LEAST_LOAD, false);
    let by_prompt = figures("hash of the prompt, no bound", HASH, false);
    let by_session = figures("hash of the session, no bound", HASH, true);
    let bounded = figures("hash of the session, bound 1.25", BOUNDED_HASH, true);
    let session = figures("affinity by session, bound 1.25", SESSION, true);
    let wide = figures("affinity by session, bound 2", WIDE, true);
    let prefix = figures("affinity by prefix, bound 1.25", PREFIX, false);

    // Both find most of what a hash without regard to load finds, and far more than no affinity does.
    for sticky in [&session, &prefix] {
        assert!(sticky.cached > least_load.cached + 0.15, "{sticky:?} {least_load:?}");
        assert!(sticky.cached > 0.93 * by_session.cached, "{sticky:?} {by_session:?}");
        // The load is spread nearly as without affinity, and not as a hash spreads it.
        assert!(sticky.spread < 1.25 * least_load.spread, "{sticky:?} {least_load:?}");
        assert!(
            sticky.spread < by_session.spread && sticky.spread < by_prompt.spread,
            "{sticky:?} {by_session:?}"
        );
        assert!(sticky.first_event_ms < least_load.first_event_ms, "{sticky:?} {least_load:?}");
        assert!(sticky.first_event_ms < by_prompt.first_event_ms, "{sticky:?} {by_prompt:?}");
    }
    assert!(bounded.spread < by_session.spread && bounded.cached > least_load.cached, "{bounded:?}");
    // Prompts that most requests begin with: without a bound their node is a hot spot.
    assert!(by_prompt.spread > 2.0 * prefix.spread, "{by_prompt:?} {prefix:?}");
    // A wider bound keeps more at home, and the load less even.
    assert!(wide.cached > session.cached && wide.spread > session.spread, "{wide:?} {session:?}");
    // The bound did something.
    assert!(prefix.spilled > 0.0 && session.spilled > 0.0, "{prefix:?} {session:?}");
}
