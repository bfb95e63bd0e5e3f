//! A control group with little memory, for a process that must not be killed in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::gateway::BINARY;

/// Names of a version's files.
#[derive(Debug)]
struct Names {
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    files: [&'static str; 2],
    events: &'static str,
}

const TWO: Names = Names {
    mount: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    files: ["inactive_file", "active_file"],
    events: "memory.events",
};

const ONE: Names = Names {
    mount: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    files: ["total_inactive_file", "total_active_file"],
    events: "memory.oom_control",
};

/// A group of this test's own; gone with it, once its processes are.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    names: &'static Names,
    folder: PathBuf,
}

impl MemoryGroup {
    /// Makes a group whose processes together may have `limit` bytes.
    pub(crate) fn new(limit: u64) -> io::Result<Self> {
        let names = if Path::new(TWO.mount).join("cgroup.controllers").exists() { &TWO } else { &ONE };
        if names.mount == TWO.mount {
            fs::write(format!("{}/cgroup.subtree_control", TWO.mount), "+memory")?;
        }
        let folder = PathBuf::from(format!("{}/streamgate-test-{}", names.mount, std::process::id()));
        fs::create_dir(&folder)?;
        let group = Self { names, folder };
        fs::write(group.folder.join(names.limit), limit.to_string())?;
        Ok(group)
    }

    /// The binary as a member of the group.
    pub(crate) fn command(&self) -> Command {
        let mut shell = Command::new("sh");
        let script = "echo $$ >\"$GROUP/cgroup.procs\" && exec \"$0\" \"$@\"";
        shell.args(["-c", script, BINARY.as_str()]).env("GROUP", &self.folder);
        shell
    }

    /// Bytes used, without those of files, which can be taken away at any time.
    pub(crate) fn used(&self) -> u64 {
        let usage: u64 = self.read(self.names.usage).trim().parse().expect("a number");
        let stat = self.read("memory.stat");
        usage.saturating_sub(self.names.files.iter().map(|name| field(&stat, name)).sum())
    }

    /// How many of its processes have been killed for want of memory.
    pub(crate) fn killed(&self) -> u64 {
        field(&self.read(self.names.events), "oom_kill")
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("the group {} stays: {error}", self.folder.display());
        }
    }
}

fn field(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(found, _)| *found == name).map_or(0, |(_, number)| number.trim().parse().expect("a number"))
}
