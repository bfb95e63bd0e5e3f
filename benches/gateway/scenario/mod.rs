//! The scenarios: what is asked, in which order, and which figures come of it.

mod batch;
mod cancel;
mod idle;
mod large;
mod short;
mod slow;
mod streams;

use std::time::Duration;

use crate::client::{self, Leave};
use crate::error::Error;
use crate::figure::Figure;
use crate::fleet::{Fleet, Target};
use crate::load::{self, Load};
use crate::options::Options;
use crate::tokens::Tokens;

/// One scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// 1,000 streams of 60 tokens at 50 ms: latency, CPU and memory.
    Streams,
    /// 50 streams of an engine that writes 70 events at once: CPU.
    Batch,
    /// Short answers that are no streams, over 32 connections: CPU.
    Short,
    /// Clients that leave: when the engine sees it, and what it generates for nobody.
    Cancel,
    /// 50 clients that read 1 KB/s of a firehose: what is held for them.
    Slow,
    /// 5,000 idle connections: memory.
    Idle,
    /// 9,500 streams whose clients all leave at once. Needs 20,000 file descriptors.
    Large,
}

impl Scenario {
    /// All but the one that must be asked for.
    pub(crate) const USUAL: [Self; 6] =
        [Self::Streams, Self::Batch, Self::Short, Self::Cancel, Self::Slow, Self::Idle];

    pub(crate) async fn run(self, options: &Options) -> Result<Vec<Figure>, Error> {
        match self {
            Self::Streams => streams::run(options).await,
            Self::Batch => batch::run(options).await,
            Self::Short => short::run(options).await,
            Self::Cancel => cancel::run(options).await,
            Self::Slow => slow::run(options).await,
            Self::Idle => idle::run(options).await,
            Self::Large => large::run(options).await,
        }
    }
}

/// The targets in the order of this round: none is always the first.
fn turns<const N: usize>(mut targets: [Target; N], round: usize) -> [Target; N] {
    targets.rotate_left(round % N);
    targets
}

/// Sends one stream through each target, so that what a process sets up once is set up.
async fn warm(fleet: &Fleet, tokens: u32, event_bytes: usize) -> Result<(), Error> {
    for target in Target::ALL {
        let addr = fleet.addr(target);
        let one = Load::start(target, 1, Duration::ZERO, |number| {
            client::stream(addr, load::ask_stream(number, ""), Tokens::new(tokens, event_bytes), Leave::Never)
        });
        one.finish().await?;
    }
    Ok(())
}
