//! The access log: one line for each exchange.
//!
//! Lines go through a bounded channel to a thread of their own: a blocked pipe or a full disk must
//! not stop a stream. What does not fit is dropped and counted.

mod line;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::config::{AccessTarget, LogFormat};
pub use line::Line;

/// Lines that may wait to be written.
const WAITING_MAX: usize = 8192;

/// Where the lines go.
#[derive(Debug)]
pub struct AccessLog {
    sender: Mutex<Option<SyncSender<Line>>>,
    dropped: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AccessLog {
    /// Opens the log.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or there is no thread to be had.
    pub fn open(target: &AccessTarget, format: LogFormat) -> io::Result<Self> {
        let output: Box<dyn Write + Send> = match target {
            AccessTarget::None => return Ok(Self::closed()),
            AccessTarget::Stdout => Box::new(io::stdout()),
            AccessTarget::Stderr => Box::new(io::stderr()),
            AccessTarget::File(path) => Box::new(append(path)?),
        };
        let (log, (sender, receiver)) = (Self::closed(), sync_channel(WAITING_MAX));
        let dropped = Arc::clone(&log.dropped);
        let writer = Writer { output: BufWriter::new(output), format, dropped };
        let thread = std::thread::Builder::new().name("access-log".into());
        *log.writer.lock() = Some(thread.spawn(move || writer.run(&receiver))?);
        *log.sender.lock() = Some(sender);
        Ok(log)
    }

    /// A log that takes no lines.
    fn closed() -> Self {
        Self { sender: Mutex::new(None), dropped: Arc::default(), writer: Mutex::new(None) }
    }

    /// Has a line written, or drops it when too many wait.
    pub fn write(&self, line: Line) {
        if self.sender.lock().as_ref().is_some_and(|sender| sender.try_send(line).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes what waits and closes. Later lines are not written.
    pub fn close(&self) {
        self.sender.lock().take();
        let writer = self.writer.lock().take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            log::error!("the access log's writer has panicked");
        }
    }
}

fn append(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Turns lines into text and writes them, away from the threads that serve.
struct Writer {
    output: BufWriter<Box<dyn Write + Send>>,
    format: LogFormat,
    dropped: Arc<AtomicU64>,
}

impl Writer {
    /// Writes lines as they come, and flushes when none waits.
    fn run(mut self, lines: &Receiver<Line>) {
        while let Ok(first) = lines.recv() {
            self.write(&first);
            while let Ok(next) = lines.try_recv() {
                self.write(&next);
            }
            if self.output.flush().is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn write(&mut self, line: &Line) {
        if writeln!(self.output, "{}", line.render(self.format)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
