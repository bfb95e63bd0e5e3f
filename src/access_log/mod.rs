//! The access log: one line for each exchange.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::config::{AccessTarget, LogFormat};
use crate::outlet::Outlet;
pub use line::Line;

/// Where the lines go. They are rendered away from the threads that serve.
#[derive(Debug)]
pub struct AccessLog {
    outlet: Outlet<Line>,
    /// Set when the file is to be opened anew before the next line.
    reopen: Arc<AtomicBool>,
}

impl AccessLog {
    /// Opens the log.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or there is no thread to be had.
    pub fn open(target: &AccessTarget, format: LogFormat) -> io::Result<Self> {
        let reopen = Arc::new(AtomicBool::new(false));
        let output: Box<dyn Write + Send> = match target {
            AccessTarget::None => return Ok(Self { outlet: Outlet::none(), reopen }),
            AccessTarget::Stdout => Box::new(io::stdout()),
            AccessTarget::Stderr => Box::new(io::stderr()),
            AccessTarget::File(path) => {
                Box::new(Reopening { file: append(path)?, path: path.clone(), wanted: Arc::clone(&reopen) })
            }
        };
        let render = move |line: &Line| (line.render(format) + "\n").into_bytes();
        Ok(Self { outlet: Outlet::open("access-log", output, render)?, reopen })
    }

    /// Opens the file anew before the next line, for a rotation that has moved it away.
    pub fn reopen(&self) {
        self.reopen.store(true, Ordering::Relaxed);
    }

    /// Has a line written, or drops it when too many wait.
    pub fn write(&self, line: Line) {
        self.outlet.send(line);
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

/// A file that can be opened anew under its name.
struct Reopening {
    file: File,
    path: PathBuf,
    wanted: Arc<AtomicBool>,
}

impl Write for Reopening {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.wanted.swap(false, Ordering::Relaxed) {
            match append(&self.path) {
                Ok(file) => self.file = file,
                Err(error) => log::error!("{} cannot be opened anew: {error}", self.path.display()),
            }
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
