//! What a reload of a very large file costs, and whether a stream feels it.
//!
//! One gateway in front of one simulated engine, once beside 10,000 backends that nobody asks and once with 100,000 keys;
//! streams run at token pace while the file, with another setting each time, is read again. Printed are the
//! time of each reload, from POST to its answer, and the longest pauses of the streams, with and without reloads.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where it cannot go on"
)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use streamgate::keys::Digest;

const BINARY: &str = env!("CARGO_BIN_EXE_streamgate");
const BACKENDS: usize = 10_000;
const CLUSTERS: usize = 4;
const STREAMS: usize = 20;
const RELOADS: usize = 20;
const KEYS: usize = 100_000;

/// A large file.
struct Scenario {
    /// What there is much of.
    name: String,
    /// The file of round `n`, in front of the engine at this address.
    config: fn(engine: &str, n: usize) -> String,
    /// A line of the head of each request.
    credential: &'static str,
    reloads: usize,
    /// From one reload to the next.
    pause: Duration,
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the binary and gives what it says until it is ready.
fn start(args: &[&str]) -> (Process, String) {
    let mut child = Command::new(BINARY).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said: Vec<String> = lines.take_while(|line| line != "ready").collect();
    (Process(child), said.join("\n"))
}

/// What stands behind `words` in what was said.
fn address<'t>(said: &'t str, words: &str) -> &'t str {
    said.lines().find_map(|line| line.split_once(words)).unwrap().1
}

/// What both files begin with; another one in each round.
fn beginning(engine: &str, n: usize) -> String {
    format!(
        "server: {{ listen: [{{ address: \"127.0.0.1:0\" }}], admin: {{ listen: \"127.0.0.1:0\" }} }}\n\
         log: {{ access: none, level: error }}\nclusters:\n  engine:\n    profile: openai\n    \
         keepalive: {}ms\n    backends: [{{ name: e, url: \"http://{engine}\" }}]\n",
        3000 + n
    )
}

/// The first backend is the engine, and the others refuse connections.
fn backends(engine: &str, n: usize) -> String {
    let mut text = beginning(engine, n);
    for cluster in 0..CLUSTERS {
        writeln!(text, "  c{cluster}:\n    profile: openai\n    backends:").unwrap();
        for at in 0..BACKENDS / CLUSTERS {
            let (high, low) = (at / 250, at % 250 + 1);
            writeln!(text, "      - {{ name: b{at}, url: \"http://10.{cluster}.{high}.{low}:8000\" }}")
                .unwrap();
        }
    }
    text.push_str("routes:\n  - { match: { path: /v1/chat/completions }, cluster: engine }\n");
    for cluster in 0..CLUSTERS {
        writeln!(text, "  - {{ match: {{ path: /v1/c{cluster} }}, cluster: c{cluster} }}").unwrap();
    }
    text
}

/// The first key is that of the streams. Each round has other keys behind the first half, as a fleet whose keys come and go.
fn keys(engine: &str, n: usize) -> String {
    let mut text = beginning(engine, n);
    text.push_str("routes:\n  - { match: { path: /v1/chat/completions }, cluster: engine }\nkeys:\n");
    for at in 0..KEYS {
        let digest =
            Digest::of(if at < KEYS / 2 { format!("sg-{at}") } else { format!("sg-{at}-{n}") }.as_bytes());
        writeln!(text, "  - {{ name: team-{at}, sha256: \"{}\" }}", digest.to_hex()).unwrap();
    }
    text
}

/// Reads a stream until told to stop; gives its pauses between reads.
fn stream(addr: &str, credential: &str, stop: &AtomicBool) -> Vec<Duration> {
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut socket = TcpStream::connect(addr).unwrap();
    write!(
        socket,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{credential}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let (mut buffer, mut pauses) = ([0; 16 * 1024], Vec::new());
    socket.read_exact(&mut buffer[..512]).unwrap();
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        assert!(socket.read(&mut buffer).unwrap() > 0, "the stream ended");
        pauses.push(last.elapsed());
        last = Instant::now();
    }
    pauses
}

/// Runs streams for as long as `work` takes; all their pauses in milliseconds, the longest last.
fn pauses_during(addr: &str, credential: &'static str, work: impl FnOnce()) -> Vec<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..STREAMS)
        .map(|_| {
            let (addr, stop) = (addr.to_owned(), Arc::clone(&stop));
            thread::spawn(move || stream(&addr, credential, &stop))
        })
        .collect();
    thread::sleep(Duration::from_millis(500));
    work();
    stop.store(true, Ordering::Relaxed);
    let all = readers.into_iter().flat_map(|reader| reader.join().unwrap());
    let mut pauses: Vec<f64> = all.map(|pause| pause.as_secs_f64() * 1e3).collect();
    pauses.sort_by(f64::total_cmp);
    pauses
}

fn reload(admin: &str) -> Duration {
    let begin = Instant::now();
    let mut socket = TcpStream::connect(admin).unwrap();
    write!(
        socket,
        "POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let took = begin.elapsed();
    assert!(answer.contains("\"applied\""), "{answer}");
    took
}

fn told(name: &str, pauses: &[f64]) {
    let at = |share: f64| pauses[((pauses.len() - 1) as f64 * share) as usize];
    println!(
        "{name}: p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms ({} pauses)",
        at(0.5),
        at(0.99),
        at(1.0),
        pauses.len()
    );
}

fn main() {
    // `cargo test --benches` only asks whether it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let engine =
        ["sim", "--listen", "127.0.0.1:0", "--model", "m", "--tokens", "1000000", "--inter-token", "10ms"];
    let (_engine, said) = start(&engine);
    let engine = address(&said, " on http://").to_owned();
    let backends = Scenario {
        name: format!("{BACKENDS} backends"),
        config: backends,
        credential: "",
        reloads: RELOADS,
        pause: Duration::from_millis(400),
    };
    let keys = Scenario {
        name: format!("{KEYS} keys"),
        config: keys,
        credential: "Authorization: Bearer sg-0\r\n",
        reloads: RELOADS / 2,
        pause: Duration::from_secs(1),
    };
    run(&backends, &engine);
    run(&keys, &engine);
}

fn run(scenario: &Scenario, engine: &str) {
    let Scenario { name, config, credential, reloads, pause } = scenario;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("streamgate.yaml");
    std::fs::write(&file, config(engine, 0)).unwrap();
    let (_gateway, said) = start(&["run", "-c", file.to_str().unwrap()]);
    let (addr, admin) = (address(&said, "listening on http://"), address(&said, "admin on http://"));

    println!("{name}, a file of {:.1} MiB", config(engine, 0).len() as f64 / f64::from(1 << 20));
    told("without reloads", &pauses_during(addr, credential, || thread::sleep(Duration::from_secs(10))));
    let texts: Vec<String> = (1..=*reloads).map(|n| config(engine, n)).collect();
    let mut times = Vec::new();
    let pauses = pauses_during(addr, credential, || {
        for text in &texts {
            // Written aside of the file that is watched, so that only the POST has it read.
            let fresh = folder.path().join("fresh");
            std::fs::write(&fresh, text).unwrap();
            std::fs::rename(&fresh, &file).unwrap();
            times.push(reload(admin).as_secs_f64() * 1e3);
            thread::sleep(*pause);
        }
    });
    told("with reloads", &pauses);
    times.sort_by(f64::total_cmp);
    println!(
        "{reloads} reloads of {name}: median {:.0} ms, longest {:.0} ms",
        times[reloads / 2],
        times[reloads - 1]
    );
}
