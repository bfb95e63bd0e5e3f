//! G15: how long one request keeps a thread of the runtime from all others. A figure for a release build on a quiet
//! machine, and no verdict:
//!
//! ```text
//! STREAMGATE_BINARY=target/release/streamgate cargo test --test faults_gateway_late -- --ignored --nocapture
//! ```
//!
//! The gateway has one thread. A stream through it shows how late that thread is: each event is sent when the last one
//! has come. Beside it come large bodies; what they add to the latest event of their time is the longest of their polls.

mod support;

use std::time::{Duration, Instant};

use support::protocol::Dialer;
use support::wire::{ANSWER, CHAT_PATH, MIB, Request, chat_of, event, json_answer};
use support::{Call, Client, Gateway, Settings, Upstream};
use tokio::sync::watch;

/// Bodies, one after the other.
const ROUNDS: usize = 40;

/// The latest event while `busy` says so.
async fn latest(client: &mut Client, call: &mut Call, busy: &watch::Receiver<bool>) -> Duration {
    let mut latest = Duration::ZERO;
    while *busy.borrow() {
        let sent = Instant::now();
        call.chunk(event("x")).await;
        client.until_len(event("x").len()).await;
        latest = latest.max(sent.elapsed());
        client.take_body();
    }
    latest
}

async fn answered(dialer: Dialer, body: Vec<u8>, busy: watch::Sender<bool>) {
    let mut client = dialer.client().await;
    client.send(Request::post(CHAT_PATH, body).bytes()).await;
    assert_eq!(client.answer().await.status(), 200);
    busy.send_replace(false);
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    values[values.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a figure of a release build, which takes a quiet machine"]
async fn g15_the_longest_poll_of_a_large_body() {
    let mut engine = Upstream::start().await;
    let settings = Settings::new(&[engine.addr]).set("server.threads", 1);
    let gateway = Gateway::start(settings).await;
    let (mut client, mut call) = support::open_stream(&gateway, &mut engine).await;
    engine.each(|call| call.answer(json_answer(ANSWER)));
    for size in [1024, MIB, 8 * MIB] {
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let (busy, is_busy) = watch::channel(true);
            let asking = tokio::spawn(answered(gateway.dialer(), chat_of(size), busy));
            all.push(latest(&mut client, &mut call, &is_busy).await);
            asking.await.expect("answered");
        }
        println!("body of {size} bytes: the latest event was late by {:?} (median of {ROUNDS})", median(all));
    }
}
