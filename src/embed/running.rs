//! A gateway on a thread of its own.

use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use super::Gateway;
use crate::server::{Listening, StartError};
use crate::signals::Stop;

/// A gateway that serves. When it is dropped the gateway ends at once, as after a second SIGTERM.
#[derive(Debug)]
#[must_use = "the gateway ends when this is dropped"]
pub struct Running {
    listening: Listening,
    stop: Stop,
    /// `None` once it has been waited for.
    thread: Option<JoinHandle<Result<(), StartError>>>,
}

impl Running {
    /// Where it listens.
    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    /// Has it drain, as after SIGTERM, and waits for that: at most the file's `server.shutdown` and a moment. The thread
    /// is blocked meanwhile.
    ///
    /// # Errors
    /// It has ended in an error.
    ///
    /// # Panics
    /// It has panicked.
    pub fn stop(mut self) -> Result<(), StartError> {
        self.stop.ask();
        self.thread.take().map_or(Ok(()), ended)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop.ask();
            self.stop.ask();
            // Nobody is there to be told how it ended.
            drop(thread.join());
        }
    }
}

/// Starts it, and waits until it accepts.
pub(super) fn start(mut gateway: Gateway) -> Result<Running, StartError> {
    let (said, listening) = mpsc::channel();
    let before = std::mem::replace(&mut gateway.on_listening, Box::new(|_| {}));
    gateway.on_listening = Box::new(move |listening| {
        before(listening);
        // The one who started it waits for this.
        drop(said.send(listening.clone()));
    });
    let stop = gateway.stop.clone();
    let thread = thread::Builder::new().name("streamgate-main".into()).spawn(move || gateway.run());
    let thread = thread.map_err(|error| StartError::Setup(error.to_string()))?;
    match listening.recv() {
        Ok(listening) => Ok(Running { listening, stop, thread: Some(thread) }),
        Err(mpsc::RecvError) => {
            ended(thread)?;
            Err(StartError::Setup("it was told to end before it served".into()))
        }
    }
}

fn ended(thread: JoinHandle<Result<(), StartError>>) -> Result<(), StartError> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
