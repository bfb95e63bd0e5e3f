//! Clients that leave: while tokens come, in the silence of a prefill, before an answer that is no
//! stream.
//!
//! The end is timed by the engine's own socket: from the instant before the client closes its own to
//! the instant the engine sees the close.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::warm;
use crate::client::{self, Ask, Leave, Seen};
use crate::control::Abort;
use crate::error::Error;
use crate::figure::{Figure, Rounds, percentile};
use crate::fleet::{Fleet, Target};
use crate::load::Load;
use crate::options::Options;
use crate::tokens::Tokens;

const TOKENS: u32 = 60;
const EVENT_BYTES: usize = 230;
const ENGINE: [&str; 8] =
    ["--tokens", "60", "--inter-token", "50ms", "--event-bytes", "230", "--first-event", "20ms"];
/// Between the starts of two clients, and so between two that leave.
const SPACING: Duration = Duration::from_millis(1);
/// All that left must be seen by then.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks at the engine's list.
const LOOK_EVERY: Duration = Duration::from_millis(50);

struct Phase {
    name: &'static str,
    clients: u32,
    stream: bool,
    headers: &'static str,
    /// Of ten clients, so many leave.
    leaving: u32,
    leave: Leave,
}

const PREFILL: &str = "x-sim-first-event: 30s\r\n";
const PHASES: [Phase; 3] = [
    Phase {
        name: "streaming",
        clients: 1_000,
        stream: true,
        headers: "",
        leaving: 3,
        leave: Leave::AtToken(15),
    },
    Phase {
        name: "silent prefill",
        clients: 300,
        stream: true,
        headers: PREFILL,
        leaving: 10,
        leave: Leave::After(Duration::from_millis(500)),
    },
    Phase {
        name: "not a stream",
        clients: 300,
        stream: false,
        headers: PREFILL,
        leaving: 10,
        leave: Leave::After(Duration::from_millis(500)),
    },
];

/// What became of one phase.
struct Outcome {
    /// Microseconds from a client's close to the engine's seeing it.
    gone_us: Vec<u32>,
    /// Tokens generated after the client left, of a hundred that were generated in all.
    wasted_percent: f64,
}

pub(super) async fn run(options: &Options) -> Result<Vec<Figure>, Error> {
    let fleet = Fleet::start(&options.binary, &ENGINE).await?;
    warm(&fleet, TOKENS, EVENT_BYTES).await?;
    let mut figures = Vec::new();
    for phase in &PHASES {
        let (mut p50, mut p99, mut wasted) = (Rounds::default(), Rounds::default(), Rounds::default());
        for target in Target::ALL {
            let mut outcome = phase.run(&fleet, target).await?;
            p50.push(target, percentile(&mut outcome.gone_us, 0.50) / 1_000.0);
            p99.push(target, percentile(&mut outcome.gone_us, 0.99) / 1_000.0);
            wasted.push(target, outcome.wasted_percent);
        }
        let name = phase.name;
        figures.push(p50.figure("cancel", &format!("{name}: client gone to engine told, p50"), "ms"));
        figures.push(p99.figure("cancel", &format!("{name}: client gone to engine told, p99"), "ms"));
        figures.push(wasted.figure("cancel", &format!("{name}: tokens wasted"), "%"));
    }
    Ok(figures)
}

impl Phase {
    async fn run(&self, fleet: &Fleet, target: Target) -> Result<Outcome, Error> {
        let (addr, control) = (fleet.addr(target), fleet.control());
        control.reset().await?;
        let load = Load::start(target, self.clients, SPACING, |number| {
            let ask = Ask { id: id(number), stream: self.stream, headers: self.headers };
            let leave = if number % 10 < self.leaving { self.leave.clone() } else { Leave::Never };
            let stream = client::stream(addr, ask, Tokens::new(TOKENS, EVENT_BYTES), leave);
            async move { stream.await.map(|seen| (number, seen)) }
        });
        let seen = load.finish().await?;
        let left = seen.iter().filter(|(_, seen)| seen.left_us.is_some()).count();
        let deadline = Instant::now() + SEEN_WITHIN;
        let aborts = loop {
            let aborts = control.aborts().await?;
            if aborts.len() == left {
                break aborts;
            }
            if Instant::now() > deadline {
                let what = format!("the end of {left} requests (the engine saw {})", aborts.len());
                return Err(Error::TooLate { what, within: SEEN_WITHIN, target });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        let tokens = control.count("tokens").await?;
        outcome(&seen, &aborts, tokens)
    }
}

fn id(number: u32) -> String {
    format!("bench-{number}")
}

fn outcome(seen: &[(u32, Seen)], aborts: &HashMap<String, Abort>, tokens: u64) -> Result<Outcome, Error> {
    let (mut gone_us, mut wasted) = (Vec::new(), 0);
    for (number, seen) in seen {
        let Some(left_us) = seen.left_us else { continue };
        let abort = aborts.get(&id(*number)).ok_or(Error::Answer("the id of a request that was left"))?;
        gone_us.push(u32::try_from(abort.at_us.saturating_sub(left_us)).unwrap_or(u32::MAX));
        wasted += abort.tokens.saturating_sub(u64::from(seen.tokens.seen()));
    }
    let wasted_percent = if tokens == 0 { 0.0 } else { wasted as f64 * 100.0 / tokens as f64 };
    Ok(Outcome { gone_us, wasted_percent })
}
