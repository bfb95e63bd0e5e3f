//! The command line.
//!
//! Exit codes are part of the contract (sysexits.h): 0 done, 64 bad usage or configuration,
//! 70 internal, 75 could not start; `diff` and `bench` have 1 for what they look for.

mod announce;
mod args;
mod check;
mod failed;
mod health;
mod key;
mod log_lines;
mod panics;
mod papers;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use args::{Cli, Command};
use clap::Parser;
use failed::Failed;
use log::Level;

use crate::bench;
use crate::config::{self, Config, Environment, Loaded};
use crate::embed::Gateway;
use crate::handover;
use crate::outlet::Losses;
use crate::server::Start;
use crate::sim;
use crate::supervisor;
use crate::top;

const EX_USAGE: u8 = 64;
const EX_SOFTWARE: u8 = 70;
const EX_TEMPFAIL: u8 = 75;

/// Exit codes of `diff`, which are diff(1)'s.
const DIFF_DIFFERS: u8 = 1;
const DIFF_TROUBLE: u8 = 2;

/// Exit code of `bench` where an answer was wrong.
const BENCH_WRONG: u8 = 1;

/// How long the last lines of the log may take.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The configuration that `demo` runs: it starts as it is, with simulated engines.
const DEMO: &str = include_str!("../../conf/streamgate.yaml");

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { EX_USAGE } else { 0 };
            // Nowhere is left to say that even this could not be printed.
            drop(error.print());
            return code.into();
        }
    };
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(code, text)) => {
            if !text.is_empty() {
                let text = format!("streamgate: {text}");
                let is_journal = supervisor::is_journal();
                eprintln!("{}", if is_journal { supervisor::leveled(Level::Error, &text) } else { text });
            }
            code.into()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failed> {
    match command {
        Command::Run { config } => run_file(&config, Start::Fresh),
        Command::Upgrade { config } => upgrade(&config),
        Command::Check { config } => check::check(&config),
        Command::Demo => run(Config::parse(DEMO, &Environment::detect())?, None, Start::Fresh),
        Command::Sim(args) => run_sim(args.into()),
        Command::Diff { old, new } => diff(&old, &new),
        Command::Top(args) => watch(&args),
        Command::Bench(args) => measure(*args),
        Command::Key(command) => key::run(command),
        Command::Health(args) => health::ask(&args),
        Command::Schema => show(&config::schema_json()),
        Command::Completions { shell } => papers::completions(shell),
        Command::Man { folder } => papers::manual(&folder),
    }
}

fn run_file(file: &Path, start: Start) -> Result<(), Failed> {
    run(config::load(file, &Environment::detect())?, Some(file), start)
}

fn upgrade(file: &Path) -> Result<(), Failed> {
    match handover::start_as_between() {
        None => run_file(file, Start::Successor),
        Some(Ok(0)) => Ok(()),
        Some(Ok(code)) => Err(Failed(code, String::new())),
        Some(Err(error)) => Err(Failed(EX_TEMPFAIL, format!("a successor cannot be started: {error}"))),
    }
}

fn run(loaded: Loaded, file: Option<&Path>, start: Start) -> Result<(), Failed> {
    let log = log_lines::start(&loaded.config.log)?;
    panics::tell();
    let result = serve(loaded, file, start, log.losses());
    log.close(LAST_LINES);
    result
}

fn serve(loaded: Loaded, file: Option<&Path>, start: Start, losses: Losses) -> Result<(), Failed> {
    let (example, needs_key) = (announce::example(&loaded.config), !loaded.config.keys.is_empty());
    let mut builder = Gateway::builder(loaded)
        .log_losses(losses)
        .on_listening(move |listening| announce::say_where(listening, example.as_deref(), needs_key));
    if let Some(file) = file {
        builder = builder.file(file);
    }
    if start == Start::Successor {
        builder = builder.as_successor();
    }
    builder
        .build()
        .and_then(Gateway::run)
        .map_err(|error| Failed::in_file(file.unwrap_or_else(|| Path::new("demo")), &error))
}

/// As diff(1) has it: 1 for files that differ, 2 for trouble.
fn diff(old: &Path, new: &Path) -> Result<(), Failed> {
    let environment = Environment::detect();
    let load = |path| {
        config::load(path, &environment).map_err(|problems| Failed(DIFF_TROUBLE, problems.to_string()))
    };
    let changes = config::changes(load(old)?.version(), load(new)?.version());
    if changes.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    show(&lines.join("\n"))?;
    Err(Failed(DIFF_DIFFERS, String::new()))
}

fn run_sim(settings: sim::Settings) -> Result<(), Failed> {
    runtime()?.block_on(async {
        let (name, wanted) = (settings.name.clone(), settings.listen);
        let failed = |error| Failed(EX_TEMPFAIL, format!("cannot listen on {wanted}: {error}"));
        let engine = sim::Engine::bind(settings).await.map_err(failed)?;
        let addr = engine.local_addr().map_err(failed)?;
        say(&format!("simulated engine {name} on http://{addr}\nready"))
            .map_err(|error| Failed::output(&error))?;
        engine.run(interrupted()).await;
        Ok(())
    })
}

fn measure(args: bench::Args) -> Result<(), Failed> {
    match runtime()?.block_on(bench::run(args, interrupted())) {
        Ok(outcome) => {
            let (shown, is_wrong) = (show(&outcome.text), outcome.is_wrong);
            // What becomes of the one does not depend on the other.
            let saved = outcome.save().map_err(unmeasured);
            shown?;
            match saved {
                Ok(()) if is_wrong => Err(Failed(BENCH_WRONG, String::new())),
                Err(Failed(_, text)) if is_wrong => Err(Failed(BENCH_WRONG, text)),
                saved => saved,
            }
        }
        Err(error) => Err(unmeasured(error)),
    }
}

fn unmeasured(error: bench::Error) -> Failed {
    let code = match error {
        bench::Error::Argument(_) => EX_USAGE,
        bench::Error::Away(_) | bench::Error::File(_) => EX_TEMPFAIL,
    };
    Failed(code, error.to_string())
}

fn runtime() -> Result<tokio::runtime::Runtime, Failed> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().map_err(|error| Failed(EX_SOFTWARE, error.to_string()))
}

fn watch(args: &top::Args) -> Result<(), Failed> {
    match top::run(args) {
        Ok(text) => text.map_or(Ok(()), |text| show(&text)),
        Err(error) => {
            let code = match error {
                top::Error::Place(_) | top::Error::Token(_) | top::Error::Refused { .. } => EX_USAGE,
                top::Error::Away { .. } | top::Error::Terminal(_) => EX_TEMPFAIL,
                top::Error::Odd(_) => EX_SOFTWARE,
            };
            Err(Failed(code, error.to_string()))
        }
    }
}

async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut term) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = term.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn say(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush())
}

/// The same for what a command is asked for: a reader that has seen enough (`| head`) is no failure.
fn show(text: &str) -> Result<(), Failed> {
    match say(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failed::output(&error)),
        _ => Ok(()),
    }
}
