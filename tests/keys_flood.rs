//! Row G16 between keys and over time: five times the load that the engines can bear, nearly all of it one key's.
//!
//! Rates are compared with a rate that was measured just before. Where `STREAMGATE_FULL` is set, the row is long and holds the
//! share that it names; in the suite, where other tests run beside it, it is short, and half of that is enough.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use serde_json::json;
use support::protocol::Dialer;
use support::wait::SOON;
use support::wire::{CANARY, Request};
use support::{Engine, Row, Settings, Told, checks, times};

/// What the engine serves at once.
const SLOTS: usize = 4;
/// Clients of the key that floods: five times what the engine serves.
const LOUD: usize = 5 * SLOTS;
/// Clients of the other key: half of what the engine serves, which is its share.
const QUIET: usize = SLOTS / 2;
/// Requests of the one key for each of the other's.
const FLOOD: usize = 100;

/// Asks again and again, as long as it should; how many answers were whole, and how many were refused.
async fn asks(dialer: Dialer, key: &'static str, more: impl Fn() -> bool) -> (usize, usize) {
    let (mut whole, mut shed) = (0, 0);
    while more() {
        let mut client = dialer.client().await;
        client.send(Request::chat().with_key(key).bytes()).await;
        let answer = client.answer_within(3 * SOON).await;
        if answer.status() == 200 {
            assert_eq!(Told::of(&answer), Told::whole());
            whole += 1;
        } else {
            checks::rejected(&answer, 503, "overloaded");
            shed += 1;
        }
    }
    (whole, shed)
}

/// So many clients of the quiet key, which ask so often in all. How many answers were whole, and how many tokens the engine
/// gave in each second meanwhile, to whomever.
async fn quietly(row: &Row, clients: usize, requests: usize) -> (usize, f64) {
    let tokens = async || row.engines[0].count("tokens").await as f64;
    let (begin, before) = (Instant::now(), tokens().await);
    let left = Arc::new(AtomicUsize::new(requests));
    let asking: Vec<_> = (0..clients)
        .map(|_| {
            let (dialer, left) = (row.gateway.dialer(), Arc::clone(&left));
            let more = move || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            tokio::spawn(asks(dialer, "k1", more))
        })
        .collect();
    let mut whole = 0;
    for client in asking {
        whole += client.await.expect("a client").0;
    }
    (whole, (tokens().await - before) / begin.elapsed().as_secs_f64())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g16_a_flood_of_one_key_costs_neither_the_other_nor_the_engine() {
    let requests = times(8, 200);
    let engine = Engine::at_pace("20ms").await;
    let small = |settings: Settings| {
        settings
            .keys(&[("loud", "k-loud"), ("quiet", "k1"), ("rows", CANARY)])
            .set("clusters.c.backends.0.max_inflight", SLOTS)
            .set("clusters.c.queue", json!({ "max": 2 * SLOTS }))
    };
    let row = Row::with(&[], vec![engine], small).await;
    let (_, peak) = quietly(&row, SLOTS, 2 * requests).await;

    let (asked, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let flood: Vec<_> = (0..LOUD)
        .map(|_| {
            let (asked, is_over) = (Arc::clone(&asked), Arc::clone(&is_over));
            // On until the other is done, and at least so often.
            let more = move || asked.fetch_add(1, Relaxed) < FLOOD * requests || is_over.load(Relaxed) == 0;
            tokio::spawn(asks(row.gateway.dialer(), "k-loud", more))
        })
        .collect();
    let (served, goodput) = quietly(&row, QUIET, requests).await;
    is_over.store(1, Relaxed);
    let (mut whole, mut shed) = (0, 0);
    for client in flood {
        let (more_whole, more_shed) = client.await.expect("a client");
        whole += more_whole;
        shed += more_shed;
    }
    println!(
        "the flood: {whole} served, {shed} shed; the other key: {served} of {requests} served; \
         {goodput:.0} tokens a second of {peak:.0} at the peak"
    );
    assert!(whole + shed >= FLOOD * requests && shed > whole, "{whole} served and {shed} shed: no flood");
    assert!(served * 100 >= requests * 99, "{served} of {requests}");
    assert!(goodput >= peak * times(0.45, 0.9), "{goodput} tokens a second of {peak}");
    assert_eq!(row.engines[0].stats().await["peak_running"], SLOTS);
    row.never_moved().await;
    row.settled(2 * requests + served + whole + shed).await;
}
