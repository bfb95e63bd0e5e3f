//! The control groups that this process is in, and how much memory each may have.

use std::fs;
use std::path::Path;

/// Which of the two systems of control groups a group belongs to; their files have other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupVersion {
    /// One hierarchy for each resource.
    One,
    /// One for all.
    Two,
}

/// A control group whose memory is bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its folder, below the root of the file system.
    pub folder: String,
    /// What its files are called.
    pub version: GroupVersion,
    /// Bytes of memory that it may have.
    pub limit: u64,
}

/// What version 1 writes for "no limit" is the largest number of whole pages, whatever their size; no machine has
/// as much.
const NO_LIMIT: u64 = 1 << 62;

/// The groups of this process that are bounded, below `root`, a file system with /proc and /sys.
pub fn bounded_groups(root: &Path) -> Vec<Group> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let lists = read("proc/self/cgroup").unwrap_or_default();
    let bounded = folders(&lists).into_iter().filter_map(|(folder, version)| {
        let file = match version {
            GroupVersion::One => "memory.limit_in_bytes",
            GroupVersion::Two => "memory.max",
        };
        let limit = read(&format!("{folder}/{file}"))?.trim().parse().ok()?;
        Some(Group { folder, version, limit })
    });
    bounded.filter(|group| group.limit < NO_LIMIT).collect()
}

/// The folders of the groups of /proc/self/cgroup that may bound memory: each group's own and its parents', since
/// the tightest one counts. Inside a container the top of the mount is the container's.
fn folders(groups: &str) -> Vec<(String, GroupVersion)> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (mount, version) = match controllers {
            "" => ("sys/fs/cgroup", GroupVersion::Two),
            v1 if v1.split(',').any(|name| name == "memory") => ("sys/fs/cgroup/memory", GroupVersion::One),
            _ => continue,
        };
        let mut path = path.trim_matches('/');
        while !path.is_empty() {
            folders.push((format!("{mount}/{path}"), version));
            path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        folders.push((mount.to_owned(), version));
    }
    folders
}
