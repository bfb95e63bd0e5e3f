//! A process on a core of its own, which ends with its guard.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::error::Error;

/// The core of the proxies.
pub(crate) const PROXY_CORE: u32 = 0;
/// The core of the engine and of the clients.
pub(crate) const LOAD_CORE: u32 = 1;

/// A running process. It is killed when this drops: nothing here has anything to save.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    /// Kept open, since a process that writes into a closed pipe would end.
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `program` on `core`.
    pub(crate) fn start(
        name: &'static str,
        core: u32,
        program: &str,
        args: &[String],
    ) -> Result<Self, Error> {
        let failed = |error| Error::io(format!("start {name} with taskset"), error);
        let mut command = Command::new("taskset");
        // taskset replaces itself with the program, so the child's id is the program's.
        command.args(["-c", &core.to_string(), program]).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or(Error::NotReady(name))?;
        Ok(Self { name, child, stdout: BufReader::new(stdout) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Reads what it prints until it is ready; gives the address behind `label`.
    pub(crate) fn address(&mut self, label: &str) -> Result<SocketAddr, Error> {
        let mut address = None;
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line);
            let read = read.map_err(|error| Error::io(format!("read what {} prints", self.name), error))?;
            if read == 0 {
                return Err(Error::NotReady(self.name));
            }
            if let Some((before, url)) = line.trim_end().split_once(" on http://")
                && before == label
            {
                address = url.parse().ok();
            }
            if line == "ready\n" {
                return address.ok_or(Error::NotReady(self.name));
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            eprintln!("bench: {} had ended before its time: {status}", self.name);
        }
        // An error says that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
