//! Reads how much memory is used, of how much: of the process, and of each control group that it is in.
//!
//! Pages of files can be taken away at any time (those of the access log, and of the program itself), so they do not
//! count. What remains is what one is killed for: memory that nobody can take back; of a group of version 2 the
//! kernel's buffers of its sockets are a part. The reading that counts is the one that is nearest to its limit.
//!
//! Where memory is short, descriptors often are too. So the files stay open ([`Kept`]), and looking takes none.

use std::path::Path;

use super::kept::{Kept, Unread};
use super::level::Reading;
use crate::config::{Group, GroupVersion};

/// One figure that has a limit.
#[derive(Debug)]
enum Gauge {
    /// What the process has in memory, without files.
    Process { status: Kept },
    /// What a group has, without files; a group that does not tell of them counts with them.
    Group { usage: Kept, stat: Option<Kept>, files: [&'static str; 2] },
}

/// Everything that is looked at.
#[derive(Debug)]
pub struct Meter {
    gauges: Vec<(Gauge, u64)>,
}

/// What a look has come to.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The reading that is nearest to its limit; `None` where nothing can be read.
    pub(super) reading: Option<Reading>,
    /// One that could not be had.
    pub(super) unread: Option<Unread>,
}

impl Meter {
    /// A meter of this process, which may have `limit` bytes, and of those of its groups that are bounded.
    /// `root` is a file system with /proc and /sys.
    pub fn new(root: &Path, limit: u64, groups: &[Group]) -> Self {
        let process = (Gauge::Process { status: Kept::new(root.join("proc/self/status")) }, limit);
        let groups = groups.iter().map(|group| (of_group(root, group), group.limit));
        Self { gauges: std::iter::once(process).chain(groups).collect() }
    }

    /// Looks at all of them.
    pub(super) fn look(&mut self) -> Look {
        let mut look = Look::default();
        for (gauge, limit) in &mut self.gauges {
            match gauge.read() {
                Ok(used) => {
                    let reading = Reading { used, promised: 0, limit: *limit };
                    look.reading = Some(look.reading.map_or(reading, |nearest| nearest.tighter(reading)));
                }
                Err(unread) => look.unread = Some(unread),
            }
        }
        look
    }
}

fn of_group(root: &Path, group: &Group) -> Gauge {
    let folder = root.join(&group.folder);
    let (usage, files) = match group.version {
        GroupVersion::Two => ("memory.current", ["inactive_file", "active_file"]),
        GroupVersion::One => ("memory.usage_in_bytes", ["total_inactive_file", "total_active_file"]),
    };
    let stat = folder.join("memory.stat");
    Gauge::Group { usage: Kept::new(folder.join(usage)), stat: stat.exists().then(|| Kept::new(stat)), files }
}

impl Gauge {
    fn read(&mut self) -> Result<u64, Unread> {
        match self {
            Self::Process { status } => status.read(|text| {
                let shared = field(text, "RssShmem:").unwrap_or_default();
                // The kernel says "kB" and means KiB.
                Some((field(text, "RssAnon:")? + shared) * 1024)
            }),
            Self::Group { usage, stat, files } => {
                let usage: u64 = usage.read(|text| text.trim().parse().ok())?;
                let Some(stat) = stat else { return Ok(usage) };
                // Without this figure a group that has read large files would look full.
                let files = stat.read(|text| {
                    let known = files.iter().filter_map(|name| field(text, name));
                    (!text.is_empty()).then(|| known.sum::<u64>())
                })?;
                Ok(usage.saturating_sub(files))
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
    use std::fs;

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
            let mut meter = Meter::new(root.path(), MIB, &[group(folder, version, 256 * MIB)]);
            assert_eq!(
                meter.look().reading,
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
            Meter::new(root.path(), limit, &[group("g", GroupVersion::Two, of_group)]).look().reading.unwrap()
        };
        assert_eq!(read(400 * MIB, 200 * MIB).limit, 200 * MIB);
        assert_eq!(read(150 * MIB, 200 * MIB).limit, 150 * MIB);
    }

    #[test]
    fn the_process_itself_can_be_read_and_no_file_is_no_reading() {
        let mut meter = Meter::new(Path::new("/"), 1 << 40, &[]);
        let before = meter.look().reading.unwrap().used;
        // Much more than the tests beside this one may give back meanwhile.
        let touched = std::hint::black_box(vec![1_u8; 256 << 20]);
        assert!(meter.look().reading.unwrap().used > before + (128 << 20));
        drop(touched);
        let look = Meter::new(Path::new("/nowhere"), 1, &[]).look();
        assert!(look.reading.is_none() && look.unread.is_some());
    }

    #[test]
    fn what_cannot_be_read_for_a_while_is_read_when_it_is_back() {
        let root = machine(&[
            ("proc/self/status", "RssAnon:\t 10240 kB\n"),
            ("g/memory.current", "104857600\n"),
            ("g/memory.stat", "inactive_file 52428800\nactive_file 0\n"),
        ]);
        let mut meter = Meter::new(root.path(), MIB << 10, &[group("g", GroupVersion::Two, 200 * MIB)]);
        let mut told = || {
            let look = meter.look();
            (look.reading.map(|reading| reading.used / MIB), look.unread.map(|unread| unread.to_string()))
        };
        assert_eq!(told(), (Some(50), None));
        fs::write(root.path().join("g/memory.stat"), "").unwrap();
        let (used, unread) = told();
        assert_eq!(used, Some(10), "what remains is the process, and no group that looks full");
        assert!(unread.is_some_and(|unread| unread.contains("g/memory.stat")));
        fs::write(root.path().join("proc/self/status"), "").unwrap();
        assert_eq!(told().0, None);
        fs::write(root.path().join("proc/self/status"), "RssAnon:\t 20480 kB\n").unwrap();
        fs::write(root.path().join("g/memory.stat"), "inactive_file 0\nactive_file 0\n").unwrap();
        assert_eq!(told(), (Some(100), None));
    }
}
