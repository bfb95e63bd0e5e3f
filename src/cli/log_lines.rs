//! The gateway's own log, on stderr. Where that is systemd's journal, lines have their level as it reads it.
//!
//! Pingora's debug lines print whole request heads, credentials included, so its crates never log
//! below `warn`; what its proxy says of failed requests the access log says better. The crate that watches the
//! file tells of each write beside it: of a log that lies there it would tell its own lines for ever.
//! Two of Pingora's errors are none to an operator and are told at `debug` only, see [`NOISE`].

use std::io::Write;
use std::sync::Arc;

use env_logger::Target;
use env_logger::fmt::Formatter;
use log::{Level, LevelFilter, Log, Metadata, Record};

use super::{EX_SOFTWARE, Failed};
use crate::config::{self, LogFormat};
use crate::outlet::Outlet;
use crate::supervisor;

/// What Pingora calls errors and nobody can do anything about, by target and the text it begins with. Anything else of
/// the same target is told.
const NOISE: [(&str, &str); 2] = [
    // A listener that is told to stop by the end of whoever would tell it, as where a start fails.
    ("pingora_core::services::listening", "shutdown_signal error channel closed"),
    // A kept connection that its watcher has not let go of yet: a fresh one is made in its place.
    ("pingora_core::connectors", "failed to acquire reusable stream"),
];

/// Starts it.
///
/// # Errors
/// No thread is to be had, or there is a log already.
pub(super) fn start(log: &config::Log) -> Result<Arc<Outlet<Vec<u8>>>, Failed> {
    let outlet = Outlet::open("log", Box::new(std::io::stderr()), Vec::clone);
    let outlet = Arc::new(outlet.map_err(|error| Failed(EX_SOFTWARE, error.to_string()))?);
    let mut builder = env_logger::Builder::new();
    // What passes here is bounded once more by the level in force, which a reload may change.
    builder.filter_level(LevelFilter::Trace).filter_module("pingora_proxy", LevelFilter::Off);
    for module in ["pingora", "pingora_core", "pingora_http", "h2", "notify"] {
        builder.filter_module(module, LevelFilter::Warn);
    }
    let (format, is_journal) = (log.format, supervisor::is_journal());
    // Else it is env_logger's own text, which has colours at a terminal.
    if format == LogFormat::Json || is_journal {
        builder.format(move |out, record| {
            let line = line(out, record, format);
            let line = if is_journal { supervisor::leveled(record.level(), &line) } else { line };
            writeln!(out, "{line}")
        });
    }
    builder.target(Target::Pipe(Box::new(ToOutlet(Arc::clone(&outlet)))));
    let logger = Quiet(builder.build());
    log::set_boxed_logger(Box::new(logger)).map_err(|error| Failed(EX_SOFTWARE, error.to_string()))?;
    log::set_max_level(log.level);
    Ok(outlet)
}

fn line(out: &Formatter, record: &Record<'_>, format: LogFormat) -> String {
    let (level, target) = (record.level(), record.target());
    match format {
        LogFormat::Json => serde_json::json!({
            "time": out.timestamp_millis().to_string(), "level": level.as_str(),
            "target": target, "message": record.args().to_string(),
        })
        .to_string(),
        LogFormat::Text => {
            format!("[{} {level:<5} {target}] {}", out.timestamp_seconds(), record.args())
        }
    }
}

/// Passes all lines on but [`NOISE`], which is of level `debug` to it.
struct Quiet(env_logger::Logger);

impl Log for Quiet {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if !is_noise(record) {
            self.0.log(record);
        } else if log::max_level() >= LevelFilter::Debug {
            let lowered =
                Record::builder().args(*record.args()).target(record.target()).level(Level::Debug).build();
            self.0.log(&lowered);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// Whether an error is one that means nothing.
fn is_noise(record: &Record<'_>) -> bool {
    let is_of = |(target, _): &&(&str, &str)| record.target() == *target;
    let says = |(_, begin): &(&str, &str)| record.args().to_string().starts_with(begin);
    record.level() == Level::Error && NOISE.iter().find(is_of).is_some_and(says)
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
    fn only_what_means_nothing_is_lowered() {
        let noise = |level, target: &str, text: &str| {
            is_noise(&Record::builder().level(level).target(target).args(format_args!("{text}")).build())
        };
        let listening = "pingora_core::services::listening";
        assert!(noise(Level::Error, listening, "shutdown_signal error channel closed"));
        assert!(noise(Level::Error, "pingora_core::connectors", "failed to acquire reusable stream"));
        assert!(!noise(Level::Error, listening, "Accept() failed too many open files"));
        assert!(!noise(Level::Error, "streamgate::server", "shutdown_signal error channel closed"));
        assert!(!noise(Level::Error, "pingora_core::connectors", "shutdown_signal error channel closed"));
        assert!(!noise(Level::Warn, listening, "shutdown_signal error channel closed"));
    }
}
