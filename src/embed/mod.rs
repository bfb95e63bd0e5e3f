//! A gateway as a part of somebody's own program: the only way to start one, which the command `run` goes too.
//!
//! [`Gateway::builder`] takes a configuration and the hooks (see [`crate::hooks`]); [`Gateway::run`] serves on this thread
//! until the end, [`Gateway::start`] on one of its own. Either way it is the whole gateway: its listeners and its admin
//! listener, its reloads, its drain.
//!
//! What belongs to the process and not to a gateway: the log, which goes to the facade of the `log` crate; the
//! allocator, which this crate sets (jemalloc); and signals. Any gateway that serves takes SIGTERM, SIGINT, SIGHUP,
//! SIGQUIT and SIGUSR1, as the command does.

mod builder;
mod running;

use std::path::PathBuf;

pub use builder::Builder;
pub use running::Running;

use crate::config::Loaded;
use crate::edge::Below;
use crate::hooks::Hooks;
use crate::outlet::Losses;
use crate::server::{self, Listening, Start, StartError};
use crate::signals::Stop;

/// A gateway that can be started.
pub struct Gateway {
    pub(crate) loaded: Loaded,
    pub(crate) file: Option<PathBuf>,
    pub(crate) start: Start,
    pub(crate) log: Losses,
    pub(crate) hooks: Hooks,
    pub(crate) below: Vec<Below>,
    pub(crate) stop: Stop,
    on_listening: Box<dyn FnOnce(&Listening) + Send>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Gateway")
            .field("file", &self.file)
            .field("start", &self.start)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Begins with a configuration, as [`config::load`](crate::config::load) gives it.
    pub fn builder(config: Loaded) -> Builder {
        Builder::new(config)
    }

    /// Serves until it has drained or a successor has taken over. It brings its own runtime, so it must not be called
    /// from within one of tokio's.
    ///
    /// # Errors
    /// It could not start.
    pub fn run(mut self) -> Result<(), StartError> {
        for warning in &self.loaded.warnings {
            log::warn!("{warning}");
        }
        let on_listening = std::mem::replace(&mut self.on_listening, Box::new(|_| {}));
        server::run(self, on_listening)
    }

    /// Serves on a thread of its own; returns once it accepts.
    ///
    /// # Errors
    /// It could not start.
    pub fn start(self) -> Result<Running, StartError> {
        running::start(self)
    }
}
