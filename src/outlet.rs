//! Lines on their way out of the process, to a place that may be slow, full or blocked.
//!
//! Nobody waits for them: they go through a bounded channel to a thread of their own, and what finds no
//! room is dropped and counted. A pipe that nobody reads must not stop a stream.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;

/// Lines that may wait to be written.
const WAITING_MAX: usize = 8192;

/// Bytes that are written at once where lines wait.
const BATCH_BYTES: usize = 64 * 1024;

/// Lines that an outlet has lost so far.
#[derive(Debug, Clone, Default)]
pub struct Losses(Arc<AtomicU64>);

impl Losses {
    /// How many.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A way out for lines of type `T`.
#[derive(Debug)]
pub struct Outlet<T> {
    sender: Mutex<Option<SyncSender<T>>>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Option<Receiver<()>>>,
    dropped: Arc<AtomicU64>,
}

impl<T: Send + 'static> Outlet<T> {
    /// An outlet that takes nothing and counts nothing.
    pub fn none() -> Self {
        Self { sender: Mutex::new(None), ended: Mutex::new(None), dropped: Arc::default() }
    }

    /// Starts a thread called `name` that turns lines into bytes with `render` and writes them.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn open(
        name: &str,
        output: Box<dyn Write + Send>,
        render: impl Fn(&T) -> Vec<u8> + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, lines) = sync_channel(WAITING_MAX);
        let (ending, ended) = channel();
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        let health = Health { name: name.to_owned(), is_well: true };
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            write_all(&lines, output, render, &lost, health);
            drop(ending);
        })?;
        Ok(Self { sender: Mutex::new(Some(sender)), ended: Mutex::new(Some(ended)), dropped })
    }

    /// Has a line written, or drops it when too many wait.
    pub fn send(&self, line: T) {
        if self.sender.lock().as_ref().is_some_and(|sender| sender.try_send(line).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// To be counted by somebody else.
    pub fn losses(&self) -> Losses {
        Losses(Arc::clone(&self.dropped))
    }

    /// Takes no more lines and waits for those that are in, but no longer than `patience`.
    ///
    /// Says whether they are out.
    pub fn close(&self, patience: Duration) -> bool {
        self.sender.lock().take();
        let ended = self.ended.lock().take();
        ended.is_none_or(|ended| ended.recv_timeout(patience) != Err(RecvTimeoutError::Timeout))
    }
}

/// Writes lines as they come, those that wait together. What cannot be written is lost.
fn write_all<T>(
    lines: &Receiver<T>,
    mut output: impl Write,
    render: impl Fn(&T) -> Vec<u8>,
    lost: &AtomicU64,
    mut health: Health,
) {
    while let Ok(first) = lines.recv() {
        let (mut batch, mut count) = (render(&first), 1);
        while batch.len() < BATCH_BYTES
            && let Ok(next) = lines.try_recv()
        {
            batch.extend_from_slice(&render(&next));
            count += 1;
        }
        let written = output.write_all(&batch).and_then(|()| output.flush());
        if written.is_err() {
            lost.fetch_add(count, Ordering::Relaxed);
        }
        health.tell(written);
    }
}

/// Says when lines begin to be lost and when they are written again, and nothing in between.
struct Health {
    name: String,
    is_well: bool,
}

impl Health {
    fn tell(&mut self, written: io::Result<()>) {
        let was_well = std::mem::replace(&mut self.is_well, written.is_ok());
        match written {
            Err(error) if was_well => {
                log::error!("{}: lines are lost, as they cannot be written: {error}", self.name);
            }
            Ok(()) if !was_well => log::warn!("{}: lines are written again", self.name),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks in its first write until it is let go.
    struct Blocked(Receiver<()>);

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let held = self.0.recv();
            assert!(held.is_err(), "let go by hanging up");
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_output_loses_lines_and_never_time() {
        let (release, held) = channel();
        let outlet = Outlet::open("test", Box::new(Blocked(held)), |line: &Vec<u8>| line.clone()).unwrap();
        for _ in 0..WAITING_MAX * 3 {
            outlet.send(vec![b'x'; 1024]);
        }
        assert!(outlet.dropped() > 0);
        assert!(!outlet.close(Duration::from_millis(10)));
        drop(release);
    }

    #[test]
    fn what_was_sent_before_the_end_is_written() {
        let (seen, lines) = channel();
        struct Tell(std::sync::mpsc::Sender<Vec<u8>>);
        impl Write for Tell {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let outlet = Outlet::open("test", Box::new(Tell(seen)), |line: &u8| vec![*line]).unwrap();
        for line in b"abc" {
            outlet.send(*line);
        }
        assert!(outlet.close(Duration::from_secs(10)));
        assert_eq!(lines.iter().flatten().collect::<Vec<u8>>(), b"abc");
    }
}
