//! Clients that leave: while tokens come, in the silence of a prefill, before an answer that is no
//! stream.
//!
//! The end is timed by the engine's own socket: from the instant before the client closes its own to
//! the instant the engine sees the close.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{Outcome, Scenario, warm};
use crate::client::{self, Ask, Leave, Seen};
use crate::control::{Abort, Control};
use crate::error::Error;
use crate::figure::{Rounds, percentile};
use crate::fleet::Fleet;
use crate::load::Load;
use crate::options::Options;
use crate::target::Target;

const TOKENS: u32 = 60;
const EVENT_BYTES: usize = 230;
const ENGINE: [&str; 8] =
    ["--tokens", "60", "--inter-token", "50ms", "--event-bytes", "230", "--first-event", "20ms"];
/// Between the starts of two clients, and so between two that leave.
const SPACING: Duration = Duration::from_millis(1);
/// The engine must be done by then with all that clients have left; behind one that may fail, with a prefill of 30 s
/// and the answer to it.
const DONE_WITHIN: Duration = Duration::from_secs(10);
const WORKED_OFF_WITHIN: Duration = Duration::from_secs(60);
/// An engine that has had nothing to do for so long gets nothing more of clients that have left.
const STAYS_IDLE: Duration = Duration::from_secs(1);
/// Between two looks at the engine's list.
const LOOK_EVERY: Duration = Duration::from_millis(50);

struct Phase {
    name: &'static str,
    clients: u32,
    stream: bool,
    tokens: u32,
    wishes: &'static str,
    /// Of ten clients, so many leave.
    leaving: u32,
    leave: Leave,
}

const PREFILL: &str = "{\"first_event\":\"30s\"}";
const PHASES: [Phase; 3] = [
    Phase {
        name: "streaming",
        clients: 1_000,
        stream: true,
        tokens: TOKENS,
        wishes: "",
        leaving: 3,
        leave: Leave::AtToken(15),
    },
    Phase {
        name: "silent prefill",
        clients: 300,
        stream: true,
        tokens: TOKENS,
        wishes: PREFILL,
        leaving: 10,
        leave: Leave::After(Duration::from_millis(500)),
    },
    Phase {
        name: "not a stream",
        clients: 300,
        stream: false,
        tokens: TOKENS,
        wishes: PREFILL,
        leaving: 10,
        leave: Leave::After(Duration::from_millis(500)),
    },
];

/// As many streams at once as a proxy with 20,000 file descriptors takes, one token a second: only with `--large`.
const MANY: Phase = Phase {
    name: "9,500 streams",
    clients: 9_500,
    stream: true,
    tokens: 20,
    wishes: "{\"tokens\":20,\"inter_token\":\"1s\"}",
    leaving: 3,
    leave: Leave::AtToken(15),
};

/// What became of one phase.
struct Outcomes {
    /// Microseconds from a client's close to the engine's seeing it.
    gone_us: Vec<u32>,
    /// Tokens generated after the client left, of a hundred that were generated in all.
    wasted_percent: f64,
    left: usize,
    /// Of those, whose requests the engine had got and worked off.
    untold: usize,
    /// Of those, whose requests never came to the engine: the machine lags.
    never_asked: usize,
}

#[derive(Default)]
struct Measured {
    p50: Rounds,
    p99: Rounds,
    wasted: Rounds,
}

pub(super) async fn run(options: &Options) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, Scenario::Cancel, &ENGINE).await?;
    warm(&fleet, TOKENS, EVENT_BYTES).await?;
    let mut figures = Vec::new();
    for phase in PHASES.iter().chain(options.large.then_some(&MANY)) {
        let mut measured = Measured::default();
        for target in fleet.targets() {
            let done = measured.target(&fleet, phase, target).await;
            fleet.bear(target, done).await?;
        }
        let name = |what: &str| format!("{}: {what}", phase.name);
        let gone = |share: &str| name(&format!("client gone to engine told, {share}"));
        figures.push(measured.p50.figure("cancel", &gone("p50"), "ms"));
        figures.push(measured.p99.figure("cancel", &gone("p99"), "ms"));
        figures.push(measured.wasted.figure("cancel", &name("tokens wasted"), "%"));
    }
    Ok(fleet.outcome("cancel", figures))
}

impl Measured {
    async fn target(&mut self, fleet: &Fleet, phase: &Phase, target: Target) -> Result<(), Error> {
        let mut outcome = phase.run(fleet, target).await?;
        self.wasted.push(target, outcome.wasted_percent);
        let Outcomes { left, untold, never_asked, .. } = outcome;
        if untold > 0 {
            let name = phase.name;
            fleet.fault(
                target,
                format!("{name}: the engine was not told of {untold} of {left} clients that left"),
            )?;
        }
        if never_asked > 0 {
            let name = phase.name;
            fleet.remark(
                target,
                format!("{name}: {never_asked} of {left} clients left before the engine was asked"),
            );
        }
        if !outcome.gone_us.is_empty() {
            self.p50.push(target, percentile(&mut outcome.gone_us, 0.50) / 1_000.0);
            self.p99.push(target, percentile(&mut outcome.gone_us, 0.99) / 1_000.0);
        }
        Ok(())
    }
}

impl Phase {
    async fn run(&self, fleet: &Fleet, target: Target) -> Result<Outcomes, Error> {
        let (addr, control) = (fleet.addr(target), fleet.control());
        control.reset().await?;
        let clients = fleet.part(target, self.clients);
        let load = Load::start(target, clients, SPACING, |number| {
            let ask = Ask { id: id(number), stream: self.stream, wishes: self.wishes };
            let leave = if number % 10 < self.leaving { self.leave.clone() } else { Leave::Never };
            let stream = client::stream(addr, ask, Fleet::tokens(target, self.tokens, EVENT_BYTES), leave);
            async move { stream.await.map(|seen| (number, seen)) }
        });
        let seen = fleet.accept(load.finish().await)?;
        let left = seen.iter().filter(|(_, seen)| seen.left_us.is_some()).count();
        let aborts = aborts(control, target, left).await?;
        let never_asked = u64::from(clients).saturating_sub(control.count("requests").await?);
        Ok(outcome(&seen, &aborts, never_asked as usize, (self.tokens, control.count("tokens").await?)))
    }
}

/// The requests whose clients left, as the engine saw them, once it is done with all.
async fn aborts(control: Control, target: Target, left: usize) -> Result<HashMap<String, Abort>, Error> {
    let within = if target.may_fail() { WORKED_OFF_WITHIN } else { DONE_WITHIN };
    let (deadline, mut busy) = (Instant::now() + within, Instant::now());
    loop {
        if control.running().await? > 0 {
            busy = Instant::now();
        }
        let aborts = control.aborts().await?;
        if aborts.len() == left || busy.elapsed() > STAYS_IDLE {
            return Ok(aborts);
        }
        if Instant::now() > deadline {
            let what = format!("the end of {left} requests (the engine saw {})", aborts.len());
            return Err(Error::TooLate { what, within, target });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn id(number: u32) -> String {
    format!("bench-{number}")
}

/// Of a request that the engine got and was not told of, it generated every token: `each`, and `all` in all.
fn outcome(
    seen: &[(u32, Seen)],
    aborts: &HashMap<String, Abort>,
    never_asked: usize,
    (each, all): (u32, u64),
) -> Outcomes {
    let (mut gone_us, mut wasted, mut left, mut unmatched, mut unmatched_seen) = (Vec::new(), 0, 0, 0, 0);
    for (number, seen) in seen {
        let Some(left_us) = seen.left_us else { continue };
        left += 1;
        let read = u64::from(seen.tokens.seen());
        if let Some(abort) = aborts.get(&id(*number)) {
            gone_us.push(u32::try_from(abort.at_us.saturating_sub(left_us)).unwrap_or(u32::MAX));
            wasted += abort.tokens.saturating_sub(read);
        } else {
            unmatched += 1;
            unmatched_seen += read;
        }
    }
    let never_asked = never_asked.min(unmatched);
    let untold = unmatched - never_asked;
    wasted += (untold as u64 * u64::from(each)).saturating_sub(unmatched_seen);
    let wasted_percent = if all == 0 { 0.0 } else { wasted as f64 * 100.0 / all as f64 };
    Outcomes { gone_us, wasted_percent, left, untold, never_asked }
}
