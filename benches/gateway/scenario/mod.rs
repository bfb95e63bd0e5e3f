//! The scenarios: what is asked, in which order, and which figures come of it.

mod batch;
mod cancel;
mod idle;
mod large;
mod reload;
mod short;
mod slow;
mod streams;

use std::time::Duration;

use crate::client::{self, Leave};
use crate::error::Error;
use crate::fleet::Fleet;
use crate::load::{self, Load};
use crate::options::Options;
use crate::sheet::{Figure, Remark};
use crate::target::Target;
use crate::way::Way;

/// One scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// 1,000 streams of 60 tokens at 50 ms: latency, CPU and memory.
    Streams,
    /// 50 streams of an engine that writes 70 events at once: CPU.
    Batch,
    /// Short answers that are no streams, over 32 connections: CPU.
    Short,
    /// The two above over TLS 1.3.
    Tls,
    /// The same with HTTP/2 over TLS 1.3, a hundred streams a connection.
    H2,
    /// Clients that leave: when the engine sees it, and what it generates for nobody.
    Cancel,
    /// 50 clients that read 1 KB/s of a firehose: what is held for them.
    Slow,
    /// 5,000 idle connections: memory, and whether all are kept. With `--large` 9,500 as well.
    Idle,
    /// 200 streams while the configuration is read again every 100 ms: what is lost, and what is held.
    Reload,
    /// 9,500 streams whose clients all leave at once. Needs 20,000 file descriptors.
    Large,
}

/// What a scenario came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) figures: Vec<Figure>,
    pub(crate) remarks: Vec<Remark>,
}

impl Scenario {
    /// All but the one that must be asked for.
    pub(crate) const USUAL: [Self; 9] = [
        Self::Streams,
        Self::Batch,
        Self::Short,
        Self::Tls,
        Self::H2,
        Self::Cancel,
        Self::Slow,
        Self::Idle,
        Self::Reload,
    ];

    pub(crate) async fn run(self, options: &Options) -> Result<Outcome, Error> {
        match self {
            Self::Streams => streams::run(options, self, Way::Plain).await,
            Self::Batch => batch::run(options).await,
            Self::Short => short::run(options, self, Way::Plain).await,
            Self::Tls => self.both(options, Way::Tls).await,
            Self::H2 => self.both(options, Way::H2).await,
            Self::Cancel => cancel::run(options).await,
            Self::Slow => slow::run(options).await,
            Self::Idle => idle::run(options).await,
            Self::Reload => reload::run(options).await,
            Self::Large => large::run(options).await,
        }
    }

    /// Streams, then short answers.
    async fn both(self, options: &Options, way: Way) -> Result<Outcome, Error> {
        let mut outcome = streams::run(options, self, way).await?;
        let short = short::run(options, self, way).await?;
        outcome.figures.extend(short.figures);
        outcome.remarks.extend(short.remarks);
        Ok(outcome)
    }
}

/// The targets in the order of this round: none is always the first.
fn turns(targets: &[Target], round: usize) -> Vec<Target> {
    let (last, first) = targets.split_at(round % targets.len());
    [first, last].concat()
}

/// Sends one stream through each target, so that what a process sets up once is set up.
async fn warm(fleet: &Fleet, tokens: u32, event_bytes: usize) -> Result<(), Error> {
    for target in fleet.targets() {
        let addr = fleet.addr(target);
        let one = Load::start(target, 1, Duration::ZERO, |number| {
            let tokens = Fleet::tokens(target, tokens, event_bytes);
            client::stream(addr, load::ask_stream(number, ""), tokens, Leave::Never)
        });
        let warmed = one.finish().await.all_right().map(drop);
        fleet.bear(target, warmed).await?;
    }
    Ok(())
}
