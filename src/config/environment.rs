//! The machine as the configuration sees it: what `auto` stands for, variables, files.
//!
//! It comes in as an argument, so that what a file means depends on nothing else, and a test can say
//! what the machine is like.

use std::env::VarError;
use std::fs;
use std::path::Path;

use super::groups::bounded_groups;

/// The means of the process, and what it can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Environment {
    /// Cores that the process may use, at least 1.
    pub cores: usize,
    /// Memory that the process may use, in bytes.
    pub memory_bytes: u64,
    /// The value of an environment variable.
    pub variable: fn(&str) -> Result<String, VarError>,
    /// The bytes of a file that the configuration names, of at most 4 MiB; else why it cannot be read.
    pub file: fn(&Path) -> Result<Vec<u8>, String>,
}

impl Environment {
    /// A machine without variables and files.
    #[must_use]
    pub const fn bare(cores: usize, memory_bytes: u64) -> Self {
        Self {
            cores,
            memory_bytes,
            variable: |_| Err(VarError::NotPresent),
            file: |_| Err("cannot be read: there are no files".to_owned()),
        }
    }

    /// Looks at the limits of the process: its control group's (v2, then v1), bounded by the machine's memory.
    #[must_use]
    pub fn detect() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(Path::new("/")),
            variable: |name| std::env::var(name),
            file: super::file::read_named,
        }
    }
}

/// What to count on where nothing can be found out.
const MEMORY_FALLBACK: u64 = 1 << 30;

/// The smallest memory limit below `root`, a file system with /proc and /sys.
fn memory_bytes(root: &Path) -> u64 {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total_bytes(&text));
    let limits = bounded_groups(root).into_iter().map(|group| group.limit);
    limits.chain(machine).min().unwrap_or(MEMORY_FALLBACK)
}

/// `MemTotal` of /proc/meminfo, which says "kB" and means KiB.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A root directory with these files in it, as the kernel of some machine would have them.
#[cfg(test)]
pub(crate) fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_of_the_groups_counts() {
        let root = machine(&[
            ("proc/meminfo", "MemTotal:       8000000 kB\nMemFree: 1 kB\n"),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ]);
        assert_eq!(memory_bytes(root.path()), 1_000_000);
    }

    #[test]
    fn version_one_without_a_limit_is_bounded_by_the_machine() {
        let root = machine(&[
            ("proc/meminfo", "MemTotal: 100 kB\n"),
            ("proc/self/cgroup", "5:cpu,memory:/docker/x\n2:cpuset:/docker/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(memory_bytes(root.path()), 102_400);
    }

    #[test]
    fn an_unknown_machine_gets_a_modest_guess() {
        assert_eq!(memory_bytes(machine(&[]).path()), MEMORY_FALLBACK);
        let here = Environment::detect();
        assert!(here.cores > 0 && here.memory_bytes > 0);
    }
}
