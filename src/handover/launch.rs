//! SIGQUIT: the process starts its own successor.

use std::io;
use std::path::{Path, PathBuf, absolute};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::WARM_MAX;

/// How long a successor may take from its start until it asks for the sockets: its file, names that are
/// slow to resolve, and the first checks.
const ASKS_WITHIN: Duration = WARM_MAX.saturating_add(Duration::from_secs(10));

/// How a successor is started.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    file: PathBuf,
}

impl Program {
    /// As this process was started. By the path that was named, so that another file there, or another
    /// target of a link, is what is started.
    ///
    /// # Errors
    /// There is no telling where the executable is.
    pub(crate) fn of_this_process(file: &Path) -> io::Result<Self> {
        let named = std::env::args_os().next().map(PathBuf::from);
        let path = match named.filter(|path| path.components().count() > 1) {
            Some(path) => absolute(path)?,
            None => std::env::current_exe()?,
        };
        Ok(Self { path, file: absolute(file)? })
    }

    /// Starts a successor.
    pub(super) fn launch(&self) -> io::Result<Launched> {
        let mut command = Command::new(&self.path);
        command.args(["upgrade", "--config"]).arg(&self.file).stdin(Stdio::null());
        let child = command.spawn().map_err(|error| {
            let text = format!("{} cannot be started: {error}", self.path.display());
            io::Error::new(error.kind(), text)
        })?;
        log::info!("process {} is to take over: {}", child.id().unwrap_or_default(), self.path.display());
        Ok(Launched { child, asks_until: Instant::now() + ASKS_WITHIN, is_over: false })
    }
}

/// A successor that we have started. It ends with this, unless it has taken over.
#[derive(Debug)]
pub(super) struct Launched {
    child: Child,
    asks_until: Instant,
    is_over: bool,
}

impl Launched {
    pub(super) fn is(&self, pid: u32) -> bool {
        self.child.id() == Some(pid)
    }

    /// Returns why it will not take over, when that is sure.
    pub(super) async fn failed(&mut self) -> String {
        tokio::select! {
            status = self.child.wait() => told(status),
            () = tokio::time::sleep_until(self.asks_until) => {
                format!("it has not asked for the sockets within {ASKS_WITHIN:?}, and is ended")
            }
        }
    }

    /// Leaves it alone from now on.
    pub(super) fn let_go(mut self) {
        self.is_over = true;
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if !self.is_over {
            // It may be gone already.
            drop(self.child.start_kill());
        }
    }
}

fn told(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => format!("it has ended ({status}); its own log has the reason"),
        Err(error) => format!("it is lost: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_that_never_asks_is_given_up_and_ended() {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id().unwrap();
        let mut launched = Launched { child, asks_until: Instant::now(), is_over: false };
        assert!(launched.is(pid));
        assert!(launched.failed().await.contains("has not asked for the sockets within 30s"));
        drop(launched);
        // It is reaped by the runtime, or still a zombie.
        let ended =
            || std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z"));
        let until = Instant::now() + Duration::from_secs(8);
        while !ended() {
            assert!(Instant::now() < until, "it still runs");
            tokio::task::yield_now().await;
        }
    }
}
