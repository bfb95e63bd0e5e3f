//! Many streams at the pace of tokens: the everyday load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Outcome, Scenario, turns, warm};
use crate::error::Error;
use crate::figure::{Rounds, percentile};
use crate::fleet::Fleet;
use crate::load::{self, Load};
use crate::options::Options;
use crate::sample;
use crate::sheet::Figure;
use crate::target::Target;
use crate::way::{self, Road, SHARING, Way};

const STREAMS: u32 = 1_000;
const TOKENS: u32 = 60;
const EVENT_BYTES: usize = 230;
const ENGINE: [&str; 8] =
    ["--tokens", "60", "--inter-token", "50ms", "--event-bytes", "230", "--first-event", "20ms"];
/// Between the starts of two streams. All are there after one second, for two seconds.
const SPACING: Duration = Duration::from_millis(1);
/// When memory is read: all streams are there.
const ALL_THERE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Measured {
    event_p50: Rounds,
    event_p99: Rounds,
    first_p50: Rounds,
    first_p99: Rounds,
    cpu: Rounds,
    memory: Rounds,
}

pub(super) async fn run(options: &Options, scenario: Scenario, way: Way) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, scenario, &ENGINE).await?;
    warm(&fleet, TOKENS, EVENT_BYTES).await?;
    let mut before = BTreeMap::new();
    for target in fleet.targets() {
        before.insert(target, fleet.pid(target).map_or(Ok(0.0), sample::rss_kib)?);
    }
    let mut measured = Measured::default();
    for round in 0..if options.quick { 1 } else { 5 } {
        for target in turns(&fleet.targets_of(way), round) {
            let before = before.get(&target).copied().unwrap_or_default();
            let done = measured.round(&fleet, way, target, before).await;
            fleet.bear(target, done).await?;
        }
    }
    Ok(fleet.outcome(way.name("streams"), measured.figures(way)))
}

impl Measured {
    async fn round(&mut self, fleet: &Fleet, way: Way, target: Target, before_kib: f64) -> Result<(), Error> {
        let (addr, pid, way) = (fleet.door(way, target), fleet.pid(target), way.to(target));
        let roads = shared(way, target, addr).await?;
        let cpu_before = pid.map(sample::cpu_us).transpose()?;
        let streams = fleet.part(target, STREAMS);
        let load = Load::start(target, streams, SPACING, |number| {
            let ask = load::ask_stream(number, "{\"stamp\":true}");
            let road = roads.get((number / SHARING) as usize).and_then(Road::share);
            way::stream(way, addr, road, ask, Fleet::tokens(target, TOKENS, EVENT_BYTES))
        });
        tokio::time::sleep(ALL_THERE).await;
        let memory = pid.map(sample::rss_kib).transpose()?;
        let seen = fleet.accept(load.finish().await)?;
        let cpu_after = pid.map(sample::cpu_us).transpose()?;
        let mut events: Vec<u32> =
            seen.iter().flat_map(|one| one.tokens.latencies_us.iter().copied()).collect();
        let mut firsts: Vec<u32> = seen.iter().filter_map(|one| one.first_us).collect();
        self.event_p50.push(target, percentile(&mut events, 0.50));
        self.event_p99.push(target, percentile(&mut events, 0.99));
        self.first_p50.push(target, percentile(&mut firsts, 0.50));
        self.first_p99.push(target, percentile(&mut firsts, 0.99));
        if let (Some(before), Some(after), Some(memory)) = (cpu_before, cpu_after, memory) {
            self.cpu.push(target, (after - before) / (seen.len() as f64 * f64::from(TOKENS)));
            self.memory.push(target, (memory - before_kib) / f64::from(streams));
        }
        Ok(())
    }

    fn figures(&self, way: Way) -> Vec<Figure> {
        let figure = |rounds: &Rounds, name, unit| rounds.figure(way.name("streams"), name, unit);
        let mut figures = vec![
            figure(&self.event_p50, "latency per event, p50", "us"),
            figure(&self.event_p99, "latency per event, p99", "us"),
            figure(&self.event_p50.added(), "added latency per event, p50", "us"),
            figure(&self.event_p99.added(), "added latency per event, p99", "us"),
            figure(&self.cpu, "CPU per event", "us"),
            figure(&self.memory, "memory per stream", "KiB"),
        ];
        // With a handshake, or without a connect, it is no figure of a proxy's.
        if way == Way::Plain {
            figures.push(figure(&self.first_p50.added(), "added time to first event, p50", "us"));
            figures.push(figure(&self.first_p99.added(), "added time to first event, p99", "us"));
        }
        figures
    }
}

/// The connections that all streams share, of HTTP/2.
async fn shared(way: Way, target: Target, addr: SocketAddr) -> Result<Vec<Road>, Error> {
    let count = if way == Way::H2 { STREAMS.div_ceil(SHARING) } else { 0 };
    Load::start(target, count, Duration::ZERO, |_| Road::open(way, addr)).finish().await.all_right()
}
