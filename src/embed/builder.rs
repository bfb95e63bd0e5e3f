//! A gateway under construction.

use std::path::PathBuf;
use std::sync::Arc;

use super::Gateway;
use crate::config::Loaded;
use crate::handover::TakeError;
use crate::hooks::{Admit, ChooseBackend, Facts, Hooks, Observe};
use crate::outlet::Losses;
use crate::server::{self, Listening, Start, StartError};
use crate::signals::Stop;

/// A gateway under construction. Without a hook it is the gateway that the command runs.
#[must_use = "nothing is built before `build`"]
pub struct Builder {
    loaded: Loaded,
    file: Option<PathBuf>,
    start: Start,
    log: Losses,
    hooks: Hooks,
    on_listening: Box<dyn FnOnce(&Listening) + Send>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Builder")
            .field("file", &self.file)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(loaded: Loaded) -> Self {
        Self {
            loaded,
            file: None,
            start: Start::Fresh,
            log: Losses::default(),
            hooks: Hooks::default(),
            on_listening: Box::new(|_| {}),
        }
    }

    /// Says which file the configuration came from: it is read again when it changes, on SIGHUP and when an operator
    /// asks. Hooks stay as they are.
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Asks this hook for the backend of each attempt.
    pub fn choose(mut self, hook: impl ChooseBackend + 'static) -> Self {
        self.hooks.choose = Some(Arc::new(hook));
        self
    }

    /// Asks this hook whether an exchange is let in.
    pub fn admit(mut self, hook: impl Admit + 'static) -> Self {
        self.hooks.admit = Some(Arc::new(hook));
        self
    }

    /// Asks for an observer of each answer when its head has come; `None` for an exchange that needs none, which then
    /// costs nothing more.
    pub fn observe(
        mut self,
        begin: impl Fn(&Facts<'_>) -> Option<Box<dyn Observe>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.observe = Some(Arc::new(begin));
        self
    }

    /// Calls this once it accepts. Ports that the file leaves to the system are known by then.
    pub fn on_listening(mut self, say: impl FnOnce(&Listening) + Send + 'static) -> Self {
        self.on_listening = Box::new(say);
        self
    }

    /// Has it take over from a gateway that runs, over the file's `server.upgrade_socket`, as the command `upgrade` does.
    /// A gateway that gets SIGQUIT starts its own executable with `upgrade --config FILE`: a program that wants to be
    /// upgraded so must understand that.
    pub fn as_successor(mut self) -> Self {
        self.start = Start::Successor;
        self
    }

    /// Counts what the log has lost.
    pub(crate) fn log_losses(mut self, log: Losses) -> Self {
        self.log = log;
        self
    }

    /// Checks what can be checked before it starts. Nothing is bound yet.
    ///
    /// # Errors
    /// A certificate cannot be used, or a gateway with simulated engines was to take over.
    pub fn build(self) -> Result<Gateway, StartError> {
        let Self { loaded, file, start, log, hooks, on_listening } = self;
        if start == Start::Successor && !loaded.config.sim.is_empty() {
            return Err(TakeError::Simulated.into());
        }
        let below = server::below(&loaded.config.server.listen)?;
        Ok(Gateway { loaded, file, start, log, hooks, below, stop: Stop::default(), on_listening })
    }
}
