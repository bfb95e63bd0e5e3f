//! Reads how much memory is used, of how much: of the process, and of each control group that it is in.
//!
//! Pages of files can be taken away at any time (those of the access log, and of the program itself), so they do not
//! count. What remains is what one is killed for: memory that nobody can take back; of a group of version 2 the
//! kernel's buffers of its sockets are a part. The reading that counts is the one that is nearest to its limit.

use std::fs;
use std::path::{Path, PathBuf};

use super::level::Reading;
use crate::config::{Group, GroupVersion};

/// One figure that has a limit.
#[derive(Debug)]
enum Gauge {
    /// What the process has in memory, without files.
    Process { status: PathBuf },
    /// What a group has, without files.
    Group { usage: PathBuf, stat: PathBuf, files: [&'static str; 2] },
}

/// Everything that is looked at.
#[derive(Debug)]
pub struct Meter {
    gauges: Vec<(Gauge, u64)>,
}

impl Meter {
    /// A meter of this process, which may have `limit` bytes, and of those of its groups that are bounded.
    /// `root` is a file system with /proc and /sys.
    pub fn new(root: &Path, limit: u64, groups: &[Group]) -> Self {
        let process = (Gauge::Process { status: root.join("proc/self/status") }, limit);
        let groups = groups.iter().map(|group| (of_group(root, group), group.limit));
        Self { gauges: std::iter::once(process).chain(groups).collect() }
    }

    /// The reading that is nearest to its limit; `None` where nothing can be read.
    pub fn read(&self) -> Option<Reading> {
        let readings = self
            .gauges
            .iter()
            .filter_map(|(gauge, limit)| Some(Reading { used: gauge.read()?, promised: 0, limit: *limit }));
        readings.reduce(Reading::tighter)
    }
}

fn of_group(root: &Path, group: &Group) -> Gauge {
    let folder = root.join(&group.folder);
    let (usage, files) = match group.version {
        GroupVersion::Two => ("memory.current", ["inactive_file", "active_file"]),
        GroupVersion::One => ("memory.usage_in_bytes", ["total_inactive_file", "total_active_file"]),
    };
    Gauge::Group { usage: folder.join(usage), stat: folder.join("memory.stat"), files }
}

impl Gauge {
    fn read(&self) -> Option<u64> {
        match self {
            Self::Process { status } => {
                let status = fs::read_to_string(status).ok()?;
                let shared = field(&status, "RssShmem:").unwrap_or_default();
                // The kernel says "kB" and means KiB.
                Some((field(&status, "RssAnon:")? + shared) * 1024)
            }
            Self::Group { usage, stat, files } => {
                let usage: u64 = fs::read_to_string(usage).ok()?.trim().parse().ok()?;
                let stat = fs::read_to_string(stat).unwrap_or_default();
                let files = files.iter().filter_map(|name| field(&stat, name)).sum();
                Some(usage.saturating_sub(files))
            }
        }
    }
}

/// The number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| {
        words.next().filter(|word| *word == name).and_then(|_| words.next()?.parse().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::machine;

    const MIB: u64 = 1 << 20;

    fn group(folder: &str, version: GroupVersion, limit: u64) -> Group {
        Group { folder: folder.to_owned(), version, limit }
    }

    #[test]
    fn files_of_a_group_do_not_count() {
        let root = machine(&[
            ("g/memory.current", "220200960\n"),
            ("g/memory.stat", "anon 1\nfile 9\ninactive_file 10485760\nactive_file 104857600\n"),
            ("h/memory.usage_in_bytes", "220200960\n"),
            ("h/memory.stat", "inactive_file 1\ntotal_inactive_file 10485760\ntotal_active_file 104857600\n"),
        ]);
        for (folder, version) in [("g", GroupVersion::Two), ("h", GroupVersion::One)] {
            let meter = Meter::new(root.path(), MIB, &[group(folder, version, 256 * MIB)]);
            assert_eq!(
                meter.read(),
                Some(Reading { used: 100 * MIB, promised: 0, limit: 256 * MIB }),
                "{folder}"
            );
        }
    }

    #[test]
    fn what_is_nearest_to_its_limit_counts() {
        let root = machine(&[
            (
                "proc/self/status",
                "VmRSS:\t 99999 kB\nRssAnon:\t  102300 kB\nRssFile:\t 9 kB\nRssShmem:\t 100 kB\n",
            ),
            ("g/memory.current", "104857600"),
        ]);
        let read = |limit, of_group| {
            Meter::new(root.path(), limit, &[group("g", GroupVersion::Two, of_group)]).read().unwrap()
        };
        assert_eq!(read(400 * MIB, 200 * MIB).limit, 200 * MIB);
        assert_eq!(read(150 * MIB, 200 * MIB).limit, 150 * MIB);
    }

    #[test]
    fn the_process_itself_can_be_read_and_no_file_is_no_reading() {
        let meter = Meter::new(Path::new("/"), 1 << 40, &[]);
        let before = meter.read().unwrap().used;
        let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(meter.read().unwrap().used > before + (60 << 20));
        drop(touched);
        assert_eq!(Meter::new(Path::new("/nowhere"), 1, &[]).read(), None);
    }
}
