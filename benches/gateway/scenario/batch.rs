//! An engine that writes many events at once, as one does that has fallen behind or decodes several
//! tokens in a step.

use std::time::Duration;

use super::{Outcome, Scenario, turns, warm};
use crate::client::{self, Leave};
use crate::error::Error;
use crate::figure::Rounds;
use crate::fleet::Fleet;
use crate::load::{self, Load};
use crate::options::Options;
use crate::sample;
use crate::target::Target;

const STREAMS: u32 = 50;
const TOKENS: u32 = 7_000;
const EVENT_BYTES: usize = 230;
/// 70 events of 230 bytes are 16 KB, once in 35 ms.
const ENGINE: [&str; 10] = [
    "--tokens",
    "7000",
    "--inter-token",
    "500us",
    "--event-bytes",
    "230",
    "--first-event",
    "20ms",
    "--batch",
    "70",
];
/// Between the starts of two streams.
const SPACING: Duration = Duration::from_millis(1);

pub(super) async fn run(options: &Options) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, Scenario::Batch, &ENGINE).await?;
    warm(&fleet, TOKENS, EVENT_BYTES).await?;
    let mut cpu = Rounds::default();
    for number in 0..if options.quick { 1 } else { 5 } {
        for target in turns(&fleet.proxies(), number) {
            let done = round(&fleet, target, &mut cpu).await;
            fleet.bear(target, done).await?;
        }
    }
    let figures = vec![cpu.figure("batch", "CPU per event, 70 events a write", "us")];
    Ok(fleet.outcome("batch", figures))
}

async fn round(fleet: &Fleet, target: Target, cpu: &mut Rounds) -> Result<(), Error> {
    let Some(pid) = fleet.pid(target) else { return Ok(()) };
    let addr = fleet.addr(target);
    let before = sample::cpu_us(pid)?;
    let load = Load::start(target, fleet.part(target, STREAMS), SPACING, |number| {
        let ask = load::ask_stream(number, "");
        client::stream(addr, ask, Fleet::tokens(target, TOKENS, EVENT_BYTES), Leave::Never)
    });
    let seen = fleet.accept(load.finish().await)?;
    let events = seen.len() as f64 * f64::from(TOKENS);
    cpu.push(target, (sample::cpu_us(pid)? - before) / events);
    Ok(())
}
