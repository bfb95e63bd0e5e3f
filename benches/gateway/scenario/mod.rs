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
    /// 5,000 idle connections: memory.
    Idle,
    /// 9,500 streams whose clients all leave at once. Needs 20,000 file descriptors.
    Large,
}

impl Scenario {
    /// All but the one that must be asked for.
    pub(crate) const USUAL: [Self; 8] =
        [Self::Streams, Self::Batch, Self::Short, Self::Tls, Self::H2, Self::Cancel, Self::Slow, Self::Idle];

    pub(crate) async fn run(self, options: &Options) -> Result<Vec<Figure>, Error> {
        match self {
            Self::Streams => streams::run(options, Way::Plain).await,
            Self::Batch => batch::run(options).await,
            Self::Short => short::run(options, Way::Plain).await,
            Self::Tls => both(options, Way::Tls).await,
            Self::H2 => both(options, Way::H2).await,
            Self::Cancel => cancel::run(options).await,
            Self::Slow => slow::run(options).await,
            Self::Idle => idle::run(options).await,
            Self::Large => large::run(options).await,
        }
    }
}

/// Streams, then short answers.
async fn both(options: &Options, way: Way) -> Result<Vec<Figure>, Error> {
    let mut figures = streams::run(options, way).await?;
    figures.extend(short::run(options, way).await?);
    Ok(figures)
}

/// The targets in the order of this round: none is always the first.
fn turns(targets: &[Target], round: usize) -> Vec<Target> {
    let (last, first) = targets.split_at(round % targets.len());
    [first, last].concat()
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
