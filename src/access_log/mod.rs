//! The access log: one line for each exchange.

mod line;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{AccessTarget, LogFormat, NamedFile};
use crate::log_file::{self, LogFile, Reopen};
use crate::outlet::Outlet;
pub use line::Line;
pub(crate) use line::{short, timestamp};

/// Where the lines go. They are rendered away from the threads that serve.
#[derive(Debug)]
pub struct AccessLog {
    outlet: Outlet<Arc<Line>>,
    reopen: Reopen,
}

/// Looks whether the log could be opened, and leaves no trace of it.
///
/// # Errors
/// Why it could not: its file, or the folder that it would be made in, is not there or not to be written to.
pub fn could_open(target: &AccessTarget) -> io::Result<()> {
    match target {
        AccessTarget::File(NamedFile { path, .. }) => log_file::could_open(path),
        _ => Ok(()),
    }
}

impl AccessLog {
    /// Opens the log.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or there is no thread to be had.
    pub fn open(target: &AccessTarget, format: LogFormat) -> io::Result<Self> {
        let reopen = Reopen::default();
        let output: Box<dyn Write + Send> = match target {
            AccessTarget::None => return Ok(Self { outlet: Outlet::none(), reopen }),
            AccessTarget::Stdout => Box::new(io::stdout()),
            AccessTarget::Stderr => Box::new(io::stderr()),
            AccessTarget::File(NamedFile { path, .. }) => {
                Box::new(LogFile::open(path, None, reopen.clone())?)
            }
        };
        let render = move |line: &Arc<Line>| (line.render(format) + "\n").into_bytes();
        Ok(Self { outlet: Outlet::open("access-log", output, render)?, reopen })
    }

    /// Opens the file anew before the next line, for a rotation that has moved it away.
    pub fn reopen(&self) {
        self.reopen.ask();
    }

    /// Has a line written, or drops it when too many wait. Of those that went well only the given share is
    /// written: where `draw`, a random number from 0 to 1, lies below it.
    pub fn write(&self, line: &Arc<Line>, share: f64, draw: f64) {
        if line.is_failure() || draw < share {
            self.outlet.send(Arc::clone(line));
        }
    }

    /// Lines dropped so far.
    pub fn dropped(&self) -> u64 {
        self.outlet.dropped()
    }

    /// Writes what waits, but tries no longer than `patience`.
    pub fn close(&self, patience: Duration) {
        if !self.outlet.close(patience) {
            log::warn!("the access log's output is blocked: its last lines are lost");
        }
    }
}
