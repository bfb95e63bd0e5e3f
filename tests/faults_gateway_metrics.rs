//! G13: the metrics under clients who write whatever they like, and under operators who cannot stop looking.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fastrand::Rng;
use support::checks;
use support::protocol::Dialer;
use support::wait::{SOON, wait_until};
use support::wire::{CANARY, CHAT_PATH, MIB, Request};
use support::{Client, Row, Settings, Told, times};
use tokio::task::JoinSet;

/// Kinds of requests, each with a text of the client's own in another place.
const KINDS: usize = 11;
/// The one that guesses a key.
const WRONG_KEY: usize = 5;
/// Clients at the same time.
const CLIENTS: usize = 8;

/// Somebody's request of this kind.
fn request(kind: usize, rng: &mut Rng) -> Request {
    let word: String = (0..rng.usize(1..40)).map(|_| rng.alphanumeric()).collect();
    let chat = |model: &str, user: &str| {
        let body = format!(
            "{{\"model\":\"{model}\",\"user\":\"{user}\",\"max_tokens\":1,\
             \"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
        );
        Request::post(CHAT_PATH, body)
    };
    match kind {
        0 => Request::bare("GET", &format!("/{word}")),
        1 => Request::bare("POST", &format!("{CHAT_PATH}/{word}?{word}")),
        2 => Request::bare(&word.to_uppercase(), CHAT_PATH),
        3 => chat(&word, "u"),
        4 => chat("m", &word),
        WRONG_KEY => chat("m", "u").with_key(&word),
        6 => chat("m", "u").header(&format!("X-Session-Id: {word}")),
        7 => chat("m", "u").lines(&[&format!("X-Request-Id: {word}"), &format!("User-Agent: {word}")]),
        8 => chat("m", "u").lines(&["X-Forwarded-For: 192.0.2.1", &format!("X-{word}: {word}")]),
        9 => chat("m", "u").without("host").header(&format!("Host: {word}.example")),
        // What a label would have to hold.
        _ => chat(&"m".repeat(rng.usize(1..64) * 1024), "\\u001f{}\\\"\\n"),
    }
}

/// The names and labels of everything that is measured.
async fn series(row: &Row) -> BTreeSet<String> {
    let text = row.gateway.admin_get("/metrics").await.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned()).collect()
}

/// Sends it on a connection of its own; the status of the answer.
async fn ask(dialer: Dialer, request: Request) -> u16 {
    let mut client = dialer.client().await;
    client.send(request.header("Connection: close").bytes()).await;
    client.answer_within(3 * SOON).await.status()
}

fn keys(settings: Settings) -> Settings {
    settings.keys(&[("team-a", "k1"), ("rows", CANARY)])
}

#[tokio::test]
async fn g13_what_clients_write_makes_no_series() {
    let row = Row::start(1, keys).await;
    let mut rng = Rng::with_seed(13);
    for kind in 0..KINDS {
        ask(row.gateway.dialer(), request(kind, &mut rng)).await;
    }
    // A label of ten megabytes.
    let body = format!("{{\"messages\":[],\"model\":\"{}\"}}", "m".repeat(10 * MIB));
    ask(row.gateway.dialer(), Request::post(CHAT_PATH, body)).await;
    // Who guesses keys is refused in two ways.
    let mut guesses = 1;
    while ask(row.gateway.dialer(), request(WRONG_KEY, &mut rng)).await != 429 {
        guesses += 1;
    }
    let first = KINDS + 1 + guesses;
    row.gateway.wait_metric("requests_total", &[], first as f64).await;
    let before = series(&row).await;
    assert!(before.iter().any(|name| name.starts_with("streamgate_requests_total{")), "{before:?}");

    let count = times(2_000, 1_000_000);
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let (dialer, mut rng) = (row.gateway.dialer(), Rng::with_seed(n as u64));
        clients.spawn(async move {
            for _ in 0..count / CLIENTS {
                ask(dialer, request(rng.usize(0..KINDS), &mut rng)).await;
            }
        });
    }
    clients.join_all().await;
    row.gateway.wait_metric("requests_total", &[], (first + count) as f64).await;
    let after = series(&row).await;
    let new: Vec<_> = after.symmetric_difference(&before).collect();
    assert!(new.is_empty(), "{new:?}");
    row.struck(count, "a request with random words");
    checks::at_rest(&row.gateway).await;
}

#[tokio::test]
async fn g13_a_storm_of_scrapes_disturbs_no_stream() {
    const STREAMS: usize = 100;
    let row = Row::start(2, keys).await;
    let (stop, scraped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut operators = JoinSet::new();
    for _ in 0..CLIENTS {
        let (stop, scraped, admin) = (Arc::clone(&stop), Arc::clone(&scraped), row.gateway.admin);
        operators.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let mut operator = Client::connect(admin).await;
                let request =
                    Request::bare("GET", "/metrics").without("host").header(&format!("Host: {admin}"));
                operator.send(request.header("Connection: close").bytes()).await;
                let answer = operator.answer_within(3 * SOON).await;
                assert_eq!(answer.status(), 200);
                assert!(answer.text().contains("streamgate_in_flight"));
                scraped.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    row.streams(1).await;
    wait_until("the storm has begun", SOON, || scraped.load(Ordering::SeqCst) > CLIENTS).await;
    let before = scraped.load(Ordering::SeqCst);
    assert_eq!(row.streams(STREAMS).await, vec![Told::whole(); STREAMS]);
    assert!(scraped.load(Ordering::SeqCst) > before, "the storm went on");
    stop.store(true, Ordering::SeqCst);
    operators.join_all().await;
    row.struck(scraped.load(Ordering::SeqCst), "a scrape without a pause");
    row.settled(STREAMS + 1).await;
}
