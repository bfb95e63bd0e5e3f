//! Short answers that are no streams, from clients that keep their connections.

use std::time::Duration;

use memchr::memmem;

use super::{Outcome, Scenario, turns};
use crate::client::Ask;
use crate::error::Error;
use crate::figure::Rounds;
use crate::fleet::Fleet;
use crate::judge::Wrong;
use crate::load::Load;
use crate::options::Options;
use crate::sample;
use crate::target::Target;
use crate::way::{Road, Way};

const CONNECTIONS: u32 = 32;
const ENGINE: [&str; 8] =
    ["--tokens", "4", "--inter-token", "0ms", "--first-event", "0ms", "--event-bytes", "0"];
const CONTENT: &[u8] = b"\"tok0 tok1 tok2 tok3 \"";

pub(super) async fn run(options: &Options, scenario: Scenario, way: Way) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, scenario, &ENGINE).await?;
    let (rounds, requests) = if options.quick { (1, 5_000) } else { (5, 20_000) };
    let mut cpu = Rounds::default();
    for number in 0..rounds {
        for target in turns(&fleet.targets_of(way), number) {
            let done = round(&fleet, way, target, requests, &mut cpu).await;
            fleet.bear(target, done).await?;
        }
    }
    let name = way.name("short");
    let figures = vec![cpu.figure(name, "CPU per request", "us")];
    Ok(fleet.outcome(name, figures))
}

async fn round(
    fleet: &Fleet,
    way: Way,
    target: Target,
    requests: u32,
    cpu: &mut Rounds,
) -> Result<(), Error> {
    let Some(pid) = fleet.pid(target) else { return Ok(()) };
    ask_all(fleet, way, target, 1).await?;
    let before = sample::cpu_us(pid)?;
    let answers = ask_all(fleet, way, target, fleet.part(target, requests) / CONNECTIONS).await?;
    cpu.push(target, (sample::cpu_us(pid)? - before) / f64::from(answers));
    Ok(())
}

/// Asks `each` times on each connection; gives the answers of those where all were right.
async fn ask_all(fleet: &Fleet, way: Way, target: Target, each: u32) -> Result<u32, Error> {
    let addr = fleet.door(way, target);
    let load = Load::start(target, CONNECTIONS, Duration::ZERO, |number| async move {
        let mut road = Road::open(way, addr).await?;
        let mut body = Vec::new();
        let ask = Ask { id: format!("bench-{number}"), stream: false, wishes: "" };
        for _ in 0..each {
            road.exchange(&ask, &mut body).await?;
            memmem::find(&body, CONTENT).ok_or(Wrong::Content)?;
        }
        Ok(each)
    });
    fleet.accept(load.finish().await).map(|answers| answers.iter().sum())
}
