//! The command line.
//!
//! Exit codes are part of the contract (sysexits.h): 0 done, 64 bad usage or configuration,
//! 70 internal, 75 could not start.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use env_logger::Target;

use crate::config::{self, Action, Config, Environment, Loaded, LogFormat, Problems};
use crate::outlet::Outlet;
use crate::server::{self, Listening, StartError};
use crate::sim;

const EX_USAGE: u8 = 64;
const EX_SOFTWARE: u8 = 70;
const EX_TEMPFAIL: u8 = 75;

/// How long the last lines of the log may take.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Begins a list of settings that are in the file and do nothing.
const INACTIVE: &str = "accepted, but not active yet in this version:";

/// The configuration that `demo` runs: it starts as it is, with simulated engines.
const DEMO: &str = include_str!("../conf/streamgate.yaml");

/// The edge gateway for self-hosted LLM inference.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway.
    Run {
        /// The configuration file.
        #[arg(short, long)]
        config: PathBuf,
    },
    /// Check a configuration file: every problem with its line, its path and the fix.
    Check {
        /// The configuration file.
        #[arg(short, long)]
        config: PathBuf,
    },
    /// Run the gateway with three simulated engines, to look around.
    Demo,
    /// Run a simulated engine on its own.
    Sim(sim::Args),
    /// Print the JSON Schema of the configuration, for editors.
    Schema,
}

/// What ends a command early: its exit code, and what to say on stderr.
struct Failed(u8, String);

impl Failed {
    fn output(error: &std::io::Error) -> Self {
        Self(EX_SOFTWARE, format!("standard output cannot be written: {error}"))
    }

    fn start(error: &dyn Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self(EX_TEMPFAIL, text)
    }
}

impl Failed {
    /// A start that failed, with the line of the file where there is one.
    fn in_file(file: &Path, error: &StartError) -> Self {
        let Self(code, text) = Self::start(error);
        let place = error.line().map(|line| format!("{}:{line}: ", file.display())).unwrap_or_default();
        Self(if error.is_configuration() { EX_USAGE } else { code }, place + &text)
    }
}

impl From<Problems> for Failed {
    fn from(problems: Problems) -> Self {
        Self(if problems.is_unreadable() { EX_TEMPFAIL } else { EX_USAGE }, problems.to_string())
    }
}

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
            eprintln!("streamgate: {text}");
            code.into()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failed> {
    match command {
        Command::Run { config } => run(config::load(&config, &Environment::detect())?, &config),
        Command::Check { config } => check(&config),
        Command::Demo => run(Config::parse(DEMO, &Environment::detect())?, Path::new("demo")),
        Command::Sim(args) => run_sim(args.into()),
        Command::Schema => show(&config::schema_json()),
    }
}

fn run(loaded: Loaded, file: &Path) -> Result<(), Failed> {
    let log = start_log(&loaded.config.log)?;
    let result = serve(loaded, file);
    log.close(LAST_LINES);
    result
}

fn serve(loaded: Loaded, file: &Path) -> Result<(), Failed> {
    for warning in &loaded.warnings {
        log::warn!("{warning}");
    }
    if !loaded.inactive.is_empty() {
        let settings: Vec<String> = loaded.inactive.iter().map(ToString::to_string).collect();
        log::warn!("{INACTIVE} {}", settings.join(", "));
    }
    let example = example(&loaded.config);
    server::run(loaded.config, |listening| announce(listening, example.as_deref()))
        .map_err(|error| Failed::in_file(file, &error))
}

/// Says where the gateway listens. Tools read these lines: see docs/operations.md.
fn announce(listening: &Listening, example: Option<&str>) {
    let mut lines: Vec<String> = listening
        .engines
        .iter()
        .map(|(name, addr)| format!("simulated engine {name} on http://{addr}"))
        .collect();
    lines.extend(listening.clients.iter().map(|url| format!("streamgate listening on {url}")));
    lines.push(format!("streamgate admin on http://{}", listening.admin));
    if let (Some(model), Some(url)) = (example, listening.clients.first()) {
        lines.push("try it:".into());
        lines.push(curl(&reachable(url), model));
    }
    lines.push("ready".into());
    if say(&lines.join("\n")).is_err() {
        log::warn!("standard output is closed; nobody will read where the gateway listens");
    }
}

/// The unspecified address is no one's to connect to; this machine's own stands for it.
fn reachable(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}

fn curl(url: &str, model: &str) -> String {
    format!(
        "  curl -N {url}/v1/chat/completions -H 'content-type: application/json' \\\n    -d '{{\"model\": \"{model}\", \"stream\": true, \"messages\": [{{\"role\": \"user\", \"content\": \"hi\"}}]}}'"
    )
}

/// A model to put into the example: the first one a chat route lists.
fn example(config: &Config) -> Option<String> {
    let is_chat = |path: &String| path == "/v1/chat/completions";
    let mut routes = config.routes.iter().filter(|route| matches!(route.action, Action::Proxy(_)));
    routes.find(|route| route.paths.iter().any(is_chat))?.models.first().cloned()
}

fn check(path: &Path) -> Result<(), Failed> {
    let loaded = config::load(path, &Environment::detect())?;
    server::below(&loaded.config.server.listen).map_err(|error| Failed::in_file(path, &error))?;
    let mut lines: Vec<String> =
        loaded.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    if !loaded.inactive.is_empty() {
        lines.push(INACTIVE.into());
        lines.extend(loaded.inactive.iter().map(|inactive| format!("  {inactive}")));
    }
    lines.push(format!("{}: ok", path.display()));
    show(&lines.join("\n"))
}

fn run_sim(settings: sim::Settings) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed(EX_SOFTWARE, error.to_string()))?;
    runtime.block_on(async {
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

/// The gateway's own log, on stderr.
///
/// Pingora's debug lines print whole request heads, credentials included, so its crates never log
/// below `warn`; what its proxy says of failed requests the access log says better.
fn start_log(log: &config::Log) -> Result<Arc<Outlet<Vec<u8>>>, Failed> {
    let outlet = Outlet::open("log", Box::new(std::io::stderr()), Vec::clone);
    let outlet = Arc::new(outlet.map_err(|error| Failed(EX_SOFTWARE, error.to_string()))?);
    let mut builder = env_logger::Builder::new();
    builder.filter_level(log.level).filter_module("pingora_proxy", log::LevelFilter::Off);
    for module in ["pingora", "pingora_core", "pingora_http", "h2"] {
        builder.filter_module(module, log.level.min(log::LevelFilter::Warn));
    }
    if log.format == LogFormat::Json {
        builder.format(|out, record| {
            let line = serde_json::json!({
                "time": out.timestamp_millis().to_string(), "level": record.level().as_str(),
                "target": record.target(), "message": record.args().to_string(),
            });
            writeln!(out, "{line}")
        });
    }
    builder.target(Target::Pipe(Box::new(ToOutlet(Arc::clone(&outlet)))));
    builder.init();
    Ok(outlet)
}

/// The log's way out: it waits for no one, as the threads that write to it serve streams.
struct ToOutlet(Arc<Outlet<Vec<u8>>>);

impl Write for ToOutlet {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.send(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_can_be_copied_whatever_the_address() {
        for (listening, asked) in [
            ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("https://[::]:443", "https://[::1]:443"),
            ("http://10.0.0.1:80", "http://10.0.0.1:80"),
        ] {
            assert_eq!(reachable(listening), asked);
        }
    }
}
