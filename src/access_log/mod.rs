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
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::config::{AccessTarget, LogFormat};
pub use line::Line;

/// Lines that may wait to be written.
const WAITING_MAX: usize = 8192;

/// Where the lines go.
#[derive(Debug)]
pub struct AccessLog {
    format: LogFormat,
    sender: Mutex<Option<SyncSender<String>>>,
    dropped: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AccessLog {
    /// Opens the log.
    ///
    /// # Errors
    /// The file cannot be opened for appending.
    pub fn open(target: &AccessTarget, format: LogFormat) -> io::Result<Self> {
        let output: Option<Box<dyn Write + Send>> = match target {
            AccessTarget::None => None,
            AccessTarget::Stdout => Some(Box::new(io::stdout())),
            AccessTarget::Stderr => Some(Box::new(io::stderr())),
            AccessTarget::File(path) => Some(Box::new(append(path)?)),
        };
        let dropped = Arc::new(AtomicU64::new(0));
        let Some(output) = output else {
            return Ok(Self { format, sender: Mutex::new(None), dropped, writer: Mutex::new(None) });
        };
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let writer = std::thread::Builder::new().name("access-log".into()).spawn({
            let dropped = Arc::clone(&dropped);
            move || write_all(&receiver, output, &dropped)
        })?;
        Ok(Self { format, sender: Mutex::new(Some(sender)), dropped, writer: Mutex::new(Some(writer)) })
    }

    /// Writes a line, or drops it when too many wait.
    pub fn write(&self, line: &Line) {
        let line = line.render(self.format);
        if self.sender.lock().as_ref().is_some_and(|sender| sender.try_send(line).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes what waits and closes. Later lines are dropped.
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

/// Writes lines as they come and flushes when none waits.
fn write_all(receiver: &Receiver<String>, output: Box<dyn Write + Send>, dropped: &AtomicU64) {
    let mut output = BufWriter::new(output);
    let mut write = |line: String| {
        if writeln!(output, "{line}").is_err() {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
        loop {
            match receiver.try_recv() {
                Ok(line) if writeln!(output, "{line}").is_err() => {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
                Ok(_) => {}
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        if output.flush().is_err() {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    };
    while let Ok(line) = receiver.recv() {
        write(line);
    }
}
