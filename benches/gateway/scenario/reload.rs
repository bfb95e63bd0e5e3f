//! A configuration that is read again and again while streams run and come.
//!
//! nginx and HAProxy answer with a new worker each time, and keep the old one as long as it has streams.

use std::time::Duration;

use super::{Outcome, Scenario, warm};
use crate::client::{self, Leave};
use crate::error::Error;
use crate::figure::Rounds;
use crate::fleet::Fleet;
use crate::load::{self, Load};
use crate::options::Options;
use crate::sample;
use crate::target::Target;

const STREAMS: u32 = 200;
const TOKENS: u32 = 160;
const EVENT_BYTES: usize = 230;
/// 8 s of tokens.
const ENGINE: [&str; 8] =
    ["--tokens", "160", "--inter-token", "50ms", "--event-bytes", "230", "--first-event", "20ms"];
/// The last one comes in the third second, so that connections meet reloads, too.
const SPACING: Duration = Duration::from_millis(15);
const RELOAD_EVERY: Duration = Duration::from_millis(100);
/// Reading the memory of some dozen workers takes its time.
const LOOK_EVERY: u32 = 10;
/// After the last stream, for the workers that were kept for it.
const AFTERWARDS: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Measured {
    lost: Rounds,
    reloads: Rounds,
    processes: Rounds,
    before: Rounds,
    peak: Rounds,
    after: Rounds,
}

/// The most that was there at once.
#[derive(Default)]
struct Peak {
    reloads: u32,
    processes: usize,
    memory_kib: f64,
}

pub(super) async fn run(options: &Options) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, Scenario::Reload, &ENGINE).await?;
    warm(&fleet, TOKENS, EVENT_BYTES).await?;
    let mut measured = Measured::default();
    // Bare Pingora has no configuration.
    for target in fleet.proxies().into_iter().filter(|target| *target != Target::Bare) {
        let done = measured.target(&fleet, target).await;
        fleet.bear(target, done).await?;
    }
    let figure = |rounds: &Rounds, name, unit| rounds.figure("reload", name, unit);
    let figures = vec![
        figure(&measured.reloads, "reloads asked for", ""),
        figure(&measured.lost, "streams lost of 200", ""),
        figure(&measured.processes, "processes, at most", ""),
        figure(&measured.before, "memory before", "MiB"),
        figure(&measured.peak, "memory, at most", "MiB"),
        figure(&measured.after, "memory afterwards", "MiB"),
    ];
    Ok(fleet.outcome("reload", figures))
}

impl Measured {
    async fn target(&mut self, fleet: &Fleet, target: Target) -> Result<(), Error> {
        let Some(pid) = fleet.pid(target) else { return Ok(()) };
        let addr = fleet.addr(target);
        self.before.push(target, sample::pss_kib(pid)? / 1_024.0);
        let load = Load::start(target, STREAMS, SPACING, |number| {
            let tokens = Fleet::tokens(target, TOKENS, EVENT_BYTES);
            client::stream(addr, load::ask_stream(number, ""), tokens, Leave::Never)
        });
        let mut peak = Peak::default();
        let finished = tokio::select! {
            finished = load.finish() => finished,
            error = peak.reload(fleet, target, pid) => return Err(error),
        };
        self.lost.push(target, finished.wrong as f64);
        if target == Target::Gateway {
            finished.all_right()?;
        }
        tokio::time::sleep(AFTERWARDS).await;
        self.reloads.push(target, f64::from(peak.reloads));
        self.processes.push(target, peak.processes as f64);
        self.peak.push(target, peak.memory_kib / 1_024.0);
        self.after.push(target, sample::pss_kib(pid)? / 1_024.0);
        Ok(())
    }
}

impl Peak {
    /// Reloads until it is dropped, or fails.
    async fn reload(&mut self, fleet: &Fleet, target: Target, pid: u32) -> Error {
        let mut time = tokio::time::interval(RELOAD_EVERY);
        loop {
            time.tick().await;
            if let Err(error) = self.once(fleet, target, pid) {
                return error;
            }
        }
    }

    fn once(&mut self, fleet: &Fleet, target: Target, pid: u32) -> Result<(), Error> {
        self.reloads += 1;
        fleet.reload(target, self.reloads)?;
        if self.reloads.is_multiple_of(LOOK_EVERY) {
            self.processes = self.processes.max(sample::members(pid)?.len());
            self.memory_kib = self.memory_kib.max(sample::pss_kib(pid)?);
        }
        Ok(())
    }
}
