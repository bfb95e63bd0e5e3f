//! SIGQUIT: the process starts its own successor.
//!
//! Under systemd there is a process between the two, which only waits. systemd waits for the main process of a service,
//! and restarts it, where it is its parent; and it asks who the parent is at the moment of MAINPID. So the process
//! between goes before that, and the successor is systemd's.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::Instant;

use rustix::process::{Pid, Signal, getpgid, kill_process_group};

use super::WARM_MAX;
use crate::supervisor;

/// How long a successor may take from its start until it asks for the sockets: its file, names that are
/// slow to resolve, and the first checks.
const ASKS_WITHIN: Duration = WARM_MAX.saturating_add(Duration::from_secs(10));

/// Set for the process between.
const BETWEEN: &str = "STREAMGATE_STARTS_SUCCESSOR";

/// What a shell has for a process that a signal has ended, beside the signal's number.
const SIGNALLED: u8 = 128;

/// In the process between: starts the successor, with the same arguments, and returns its exit code.
///
/// `None` in any other process.
pub(crate) fn start_as_between() -> Option<io::Result<u8>> {
    std::env::var_os(BETWEEN)?;
    let mut arguments = std::env::args_os();
    let program = arguments.next()?;
    let mut command = std::process::Command::new(program);
    let status = command.args(arguments).env_remove(BETWEEN).status();
    Some(status.map(|status| {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        let signal = status.signal().and_then(|signal| u8::try_from(signal).ok()).unwrap_or_default();
        code.unwrap_or_else(|| SIGNALLED.saturating_add(signal))
    }))
}

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
        let has_between = supervisor::is_there();
        if has_between {
            // A group, so that both can be ended.
            command.env(BETWEEN, "1").process_group(0);
        }
        let child = command.spawn().map_err(|error| {
            let text = format!("{} cannot be started: {error}", self.path.display());
            io::Error::new(error.kind(), text)
        })?;
        log::info!("a successor is started: {}", self.path.display());
        let group = if has_between { pid(child.id()) } else { None };
        Ok(Launched { child, group, asks_until: Instant::now() + ASKS_WITHIN, is_over: false })
    }
}

/// A successor that we have started. It ends with this, unless it has taken over.
#[derive(Debug)]
pub(super) struct Launched {
    child: Child,
    /// Of the child and the successor, where they are two.
    group: Option<Pid>,
    asks_until: Instant,
    is_over: bool,
}

impl Launched {
    pub(super) fn is(&self, pid: u32) -> bool {
        self.child.id() == Some(pid) || self.group.is_some() && of_group(pid) == self.group
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

    /// Leaves it alone from now on; the process between is gone when this returns.
    pub(super) async fn let_go(mut self, successor: u32) {
        self.is_over = true;
        if self.child.id() != Some(successor) {
            // It can only have ended by itself.
            drop(self.child.kill().await);
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if !self.is_over {
            // It may be gone already.
            drop(self.child.start_kill());
            if let Some(group) = self.group
                && let Err(error) = kill_process_group(group, Signal::KILL)
            {
                log::debug!("the successor cannot be ended: {error}");
            }
        }
    }
}

fn pid(number: Option<u32>) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number?).ok()?)
}

fn of_group(number: u32) -> Option<Pid> {
    getpgid(Some(pid(Some(number))?)).ok()
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
        let mut launched = Launched { child, group: None, asks_until: Instant::now(), is_over: false };
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
