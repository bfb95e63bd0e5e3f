//! As many streams as a proxy with 20,000 file descriptors takes, all of them leaving at once.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Outcome, Scenario, warm};
use crate::client::{self, Leave};
use crate::error::Error;
use crate::figure::Rounds;
use crate::fleet::Fleet;
use crate::load::{self, Load};
use crate::options::Options;
use crate::sample;
use crate::target::Target;

const STREAMS: u32 = 9_500;
/// More than anyone waits for.
const TOKENS: u32 = 10_000;
const EVENT_BYTES: usize = 230;
const ENGINE: [&str; 8] =
    ["--tokens", "10", "--inter-token", "1s", "--event-bytes", "230", "--first-event", "200ms"];
const LONG: &str = "{\"tokens\":10000}";
const SPACING: Duration = Duration::from_millis(1);
/// After the last one has come.
const STEADY: Duration = Duration::from_secs(3);
/// All must be gone by then.
const GONE_WITHIN: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Measured {
    memory: Rounds,
    engine_gone: Rounds,
    fds_back: Rounds,
}

pub(super) async fn run(options: &Options) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, Scenario::Large, &ENGINE).await?;
    warm(&fleet, 10, EVENT_BYTES).await?;
    let mut measured = Measured::default();
    for target in fleet.targets() {
        let done = measured.target(&fleet, target).await;
        fleet.bear(target, done).await?;
    }
    let figure = |rounds: &Rounds, name, unit| rounds.figure("large", name, unit);
    let figures = vec![
        figure(&measured.memory, "memory with 9,500 streams", "MiB"),
        figure(&measured.engine_gone, "all leave: every engine request gone after", "ms"),
        figure(&measured.fds_back, "all leave: every file descriptor back after", "ms"),
    ];
    Ok(fleet.outcome("large", figures))
}

impl Measured {
    async fn target(&mut self, fleet: &Fleet, target: Target) -> Result<(), Error> {
        let (addr, pid, control) = (fleet.addr(target), fleet.pid(target), fleet.control());
        let fds_before = pid.map(sample::fds).transpose()?;
        let (tell, told) = watch::channel(false);
        let mut load = Load::start(target, STREAMS, SPACING, |number| {
            let ask = load::ask_stream(number, LONG);
            let tokens = Fleet::tokens(target, TOKENS, EVENT_BYTES);
            client::stream(addr, ask, tokens, Leave::Told(told.clone()))
        });
        tokio::time::sleep(SPACING * STREAMS + STEADY).await;
        load.goes_on()?;
        if let Some(pid) = pid {
            self.memory.push(target, sample::rss_kib(pid)? / 1_024.0);
        }
        let began = Instant::now();
        tell.send_replace(true);
        let (seen, gone) = tokio::join!(load.finish(), control.idle(target, GONE_WITHIN));
        self.engine_gone.push(target, gone?.as_secs_f64() * 1_000.0);
        fleet.accept(seen)?;
        if let (Some(pid), Some(before)) = (pid, fds_before) {
            fds_back(pid, before, target).await?;
            self.fds_back.push(target, began.elapsed().as_secs_f64() * 1_000.0);
        }
        Ok(())
    }
}

async fn fds_back(pid: u32, before: usize, target: Target) -> Result<(), Error> {
    let began = Instant::now();
    while sample::fds(pid)? > before {
        if began.elapsed() > GONE_WITHIN {
            let what = "the return of the file descriptors".to_owned();
            return Err(Error::TooLate { what, within: GONE_WITHIN, target });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
