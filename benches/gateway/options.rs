//! The command line.

use std::path::PathBuf;

use crate::scenario::Scenario;
use crate::target::Target;

/// streamgate and nginx side by side, in front of a simulated engine; other gateways where they are asked for.
#[derive(Debug, clap::Parser)]
#[command(name = "bench.sh")]
pub(crate) struct Options {
    /// Fewer rounds and shorter runs: about two minutes, and rougher figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run only this scenario; may be given several times.
    #[arg(long = "scenario", value_name = "NAME", value_enum)]
    only: Vec<Scenario>,
    /// Run `large` too, 9,500 streams at once, have 30 % of as many leave, and hold 9,500 idle connections.
    #[arg(long)]
    pub(crate) large: bool,
    /// Measure these as well, separated by commas (bench/ has what each is started with).
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    with: Vec<Target>,
    /// Measure all of these.
    #[arg(long)]
    contenders: bool,
    /// Measure this build, not the one that was made along with the benchmark.
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_streamgate"))]
    pub(crate) binary: String,
    /// Where the figures go as JSON.
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    pub(crate) json: PathBuf,
    /// Measure nothing: print the table of this JSON file of an earlier run.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Draw bar charts of some figures into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    /// Given by `cargo bench` to every benchmark; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// What to run, in its order.
    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        if !self.only.is_empty() {
            return self.only.clone();
        }
        let mut all = Scenario::USUAL.to_vec();
        if self.large {
            all.push(Scenario::Large);
        }
        all
    }

    /// The proxies that were asked for, in the report's order.
    pub(crate) fn proxies(&self) -> Vec<Target> {
        let invited = if self.contenders { &Target::INVITED[..] } else { &self.with };
        let mut all = [&[Target::Nginx, Target::Bare, Target::Gateway], invited].concat();
        all.sort_unstable();
        all.dedup();
        all
    }
}
