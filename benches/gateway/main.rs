//! The gateway's benchmark: streamgate, nginx and bare Pingora side by side, in front of the same
//! simulated engine; HAProxy, Envoy and other gateways for models too, where they are asked for.
//!
//! Run it with `make bench`; `scripts/bench.sh --help` lists the options. It prints one Markdown table,
//! writes `target/bench.json`, draws pictures of it, and fails when any answer came through wrong: a figure of a
//! broken stream is worth nothing. Only of the contenders that are asked for (`contender`) a wrong answer is a figure
//! itself (`ledger`). It judges no speed.
//!
//! The hard idea: on one machine everything disturbs everything. So each process is one of its own;
//! the proxies have a core to themselves and the engine and the clients share another one; the
//! targets take turns within a round and change their order from round to round; and what a proxy
//! adds is told apart from what the machine costs by asking the engine directly in the same round.
//!
//! ```text
//! core 1: clients (this process) ---------- direct ------------------> engine (streamgate sim)
//!              \----> core 0: nginx | ... | bare Pingora | streamgate --/
//! ```

mod bare;
mod certificate;
mod client;
mod contender;
mod control;
mod error;
mod figure;
mod fleet;
mod judge;
mod ledger;
mod load;
mod options;
mod process;
mod report;
mod sample;
mod scenario;
mod sheet;
mod target;
mod way;

use std::process::ExitCode;

use clap::Parser as _;

use crate::error::Error;
use crate::options::Options;
use crate::report::Report;

fn main() -> ExitCode {
    if let Some((listen, engine)) = bare::asked_for() {
        bare::serve(listen, engine);
    }
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {}", error::chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Runs the scenarios, or shows an earlier run. What was measured before an error is reported too.
fn run(options: &Options) -> Result<(), Error> {
    if let Some(file) = &options.from {
        let report = Report::read(file)?;
        report.print()?;
        return options.pictures.as_deref().map_or(Ok(()), |dir| report.draw(dir));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("start the runtime", error))?;
    let mut report = Report::begin(options);
    let measured = runtime.block_on(async {
        tokio::select! {
            biased;
            interrupted = interrupted() => interrupted,
            measured = measure(options, &mut report) => measured,
        }
    });
    report.finish(&options.json)?;
    options.pictures.as_deref().map_or(Ok(()), |dir| report.draw(dir))?;
    measured
}

async fn measure(options: &Options, report: &mut Report) -> Result<(), Error> {
    for scenario in options.scenarios() {
        eprintln!("bench: {scenario:?}");
        report.add(scenario.run(options).await?);
    }
    Ok(())
}

/// Ends the run on a signal, so that the guards of the processes do their work.
async fn interrupted() -> Result<(), Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = |kind| signal(kind).map_err(|error| Error::io("listen for signals", error));
    let (mut term, mut int) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    Err(Error::Interrupted)
}
