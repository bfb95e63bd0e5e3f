//! G9: a gateway that may have 256 MiB, really, is attacked from all sides at once. It is never killed, and those
//! who stream with a key of their own lose nothing.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use support::settings::unwatched;
use support::sockets::{connect_narrow, many_descriptors};
use support::wait::{SOON, ms, silence, wait_until, within};
use support::wire::{MIB, Request};
use support::{Engine, Gateway, MemoryGroup, Settings, Told, checks, not_run, times};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const LIMIT: u64 = 256 << 20;
const GOOD: &str = "sg-good";
const BAD: &str = "sg-bad";

/// As much as the gateway takes.
const FLOOD: [&str; 3] = ["x-sim-tokens: 1000000", "x-sim-inter-token: 0ms", "x-sim-event-bytes: 16KiB"];

/// Who attacks, and how often.
struct Attack {
    /// Ask for a flood and read nothing of it (C3).
    deaf: usize,
    /// Ask for a flood and read 5 KB a second of it (F4).
    slow: usize,
    /// Send 31 KiB of a head and not its end (C8).
    heads: usize,
    /// Send 2 MiB of a body of 8, then a byte now and then (C3).
    bodies: usize,
}

/// What all attackers look at and count.
#[derive(Default)]
struct Field {
    over: AtomicBool,
    /// Times that one of them was cut or refused, and came back.
    back: AtomicU64,
}

#[derive(Clone, Copy)]
enum Way {
    Deaf,
    Slow,
    Head,
    Body,
}

impl Way {
    async fn go(self, mut stream: TcpStream) -> std::io::Result<()> {
        let flood = Request::post("/v1/completions", "{\"model\":\"m\",\"stream\":true,\"prompt\":\"x\"}");
        let flood = flood.with_key(BAD).lines(&FLOOD);
        let body = Request::post("/v1/completions", "").with_key(BAD).head();
        match self {
            Self::Deaf | Self::Slow => stream.write_all(&flood.bytes()).await?,
            Self::Head => {
                stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").await?;
                stream.write_all(&[b"x: ".to_vec(), vec![b'y'; 31 * 1024]].concat()).await?;
            }
            Self::Body => {
                let head =
                    String::from_utf8_lossy(&body).replace("Content-Length: 0", "Content-Length: 8388608");
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&vec![b'x'; 2 * MIB]).await?;
            }
        }
        let mut read = [0; 512];
        loop {
            silence(ms(100)).await;
            match self {
                // Nothing is read, so only a reset is seen.
                Self::Deaf => {
                    stream.ready(tokio::io::Interest::ERROR).await?;
                    return Ok(());
                }
                Self::Slow => {
                    if stream.read(&mut read).await? == 0 {
                        return Ok(());
                    }
                }
                Self::Head => {
                    // Whatever is said to it is the end of it.
                    return stream.read(&mut read).await.map(drop);
                }
                Self::Body => {
                    stream.write_all(b"x").await?;
                }
            }
        }
    }

    /// Attacks again and again.
    async fn attack(self, addr: std::net::SocketAddr, field: Arc<Field>) {
        while !field.over.load(Ordering::Relaxed) {
            let stream = connect_narrow(addr, 4096).await;
            // However it ends, it comes back.
            drop(self.go(stream).await);
            field.back.fetch_add(1, Ordering::Relaxed);
            silence(ms(50)).await;
        }
    }
}

fn settings(good: &Engine, flood: &Engine) -> Settings {
    let flood = json!([{ "name": "flood", "url": format!("http://{}", flood.addr) }]);
    let flood = json!({ "profile": "openai", "backends": flood, "health": unwatched(), "scrape": null });
    Settings::new(&[good.addr])
        .set("clusters.flood", flood)
        .set("routes.1.cluster", "flood")
        .set("stream.write_stall", "30s")
        .set("timeouts.total", "10m")
        .set("timeouts.idle", "60s")
        .keys(&[("good", GOOD), ("bad", BAD)])
}

/// The highest that was seen.
#[derive(Debug, Default)]
struct Peak {
    used: u64,
    level: u8,
}

/// Looks at the memory until `length` is over, and on a busy machine until the attack has been felt; prints what it sees.
async fn watch(gateway: &Gateway, group: &MemoryGroup, field: &Field, length: Duration) -> Peak {
    let (began, mut peak) = (Instant::now(), Peak::default());
    let mut turn = 0;
    let goes_on = |peak: &Peak| began.elapsed() < length || (peak.level == 0 && began.elapsed() < length * 6);
    while goes_on(&peak) {
        assert_eq!(group.killed(), 0, "the gateway was killed: {peak:?}");
        let (used, level) = (group.used(), gateway.metric("memory_level", &[]).await as u8);
        peak = Peak { used: peak.used.max(used), level: peak.level.max(level) };
        if turn % 4 == 0 {
            eprintln!(
                "{:5.1} s: {:3} MiB of the group, {:3} MiB of the process, level {level}, {} connections, {} came back",
                began.elapsed().as_secs_f64(),
                used >> 20,
                gateway.rss_kb() >> 10,
                gateway.metric("connections_active", &[]).await,
                field.back.load(Ordering::Relaxed),
            );
        }
        turn += 1;
        silence(ms(250)).await;
    }
    peak
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g9_attacked_with_little_memory() {
    many_descriptors();
    let group = match MemoryGroup::new(LIMIT) {
        Ok(group) => group,
        Err(error) => {
            return not_run("g9_attacked_with_little_memory", &format!("no control group: {error}"));
        }
    };
    let attack = times(
        Attack { deaf: 1400, slow: 300, heads: 1500, bodies: 40 },
        Attack { deaf: 1500, slow: 500, heads: 4000, bodies: 100 },
    );
    let length = times(Duration::from_secs(10), Duration::from_secs(60));
    let tokens = times(600, 3200);
    let (good, flood) = (Engine::start().await, Engine::start().await);
    let gateway = Gateway::start_by(group.command(), settings(&good, &flood)).await;
    eprintln!("at rest: {} MiB of the group", group.used() >> 20);

    let mut streams = JoinSet::new();
    for _ in 0..times(20, 100) {
        let request = Request::chat().with_key(GOOD).header(&format!("x-sim-tokens: {tokens}"));
        let mut client = gateway.send(&request.header("x-sim-inter-token: 20ms")).await;
        streams.spawn(async move { Told::of(&client.answer_within(length * 4).await) });
    }
    let counted = [("route", "chat")];
    gateway.wait_metric("streams_active", &counted, times(20.0, 100.0)).await;
    let field = Arc::new(Field::default());
    let mut attackers = JoinSet::new();
    let ways = [
        (Way::Deaf, attack.deaf),
        (Way::Slow, attack.slow),
        (Way::Head, attack.heads),
        (Way::Body, attack.bodies),
    ];
    for (way, count) in ways {
        for _ in 0..count {
            attackers.spawn(way.attack(gateway.addr, Arc::clone(&field)));
        }
    }
    let peak = watch(&gateway, &group, &field, length).await;
    support::score::struck(attackers.len(), "a connection that takes memory");
    eprintln!("at most {} MiB, level {}; the log:\n{}", peak.used >> 20, peak.level, memory_lines(&gateway));
    field.over.store(true, Ordering::Relaxed);
    attackers.shutdown().await;
    assert_eq!(group.killed(), 0, "somebody was killed");
    let refused = gateway.metric("connections_refused_total", &[("reason", "memory")]).await;
    assert!(refused > 0.0, "it was no attack: {peak:?}");
    let whole = Told { tokens, error: None, finished: true, done: true };
    let told = within("the good streams end", length * 4, streams.join_all()).await;
    assert!(told.iter().all(|told| *told == whole), "{told:?}");

    gateway.wait_metric("memory_level", &[], 0.0).await;
    let mut next = gateway.send(&Request::chat().with_key(GOOD)).await;
    assert_eq!(Told::of(&next.answer().await), Told::whole());
    checks::at_rest(&gateway).await;
    wait_until("the memory comes back", 4 * SOON, || group.used() < LIMIT / 4).await;
}

/// What the log says of the memory.
fn memory_lines(gateway: &Gateway) -> String {
    let log = gateway.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("memory: ")).collect();
    lines.join("\n")
}
