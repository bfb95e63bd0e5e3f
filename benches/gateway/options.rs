//! The command line.

use std::path::PathBuf;

use crate::scenario::Scenario;

/// streamgate and nginx side by side, in front of a simulated engine.
#[derive(Debug, clap::Parser)]
#[command(name = "bench.sh")]
pub(crate) struct Options {
    /// Fewer rounds and shorter runs: about a minute, and rougher figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run only this scenario; may be given several times.
    #[arg(long = "scenario", value_name = "NAME", value_enum)]
    only: Vec<Scenario>,
    /// Run `large` too: 9,500 streams at once.
    #[arg(long)]
    large: bool,
    /// Measure this build, not the one that was made along with the benchmark.
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_streamgate"))]
    pub(crate) binary: String,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "target/bench.json")]
    pub(crate) json: PathBuf,
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
}
