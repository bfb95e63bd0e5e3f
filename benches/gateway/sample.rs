//! What a proxy costs, read from /proc: of all processes of its group, as some have a master beside their worker.

use std::fs;
use std::path::Path;

use crate::error::Error;

/// CPU time of all threads so far, user and system, in microseconds.
///
/// From `schedstat`, which counts nanoseconds where `stat` counts ticks of 10 ms. A thread that has
/// ended is not counted; the proxies keep theirs.
pub(crate) fn cpu_us(group: u32) -> Result<f64, Error> {
    sum(group, |pid| {
        let mut nanos = 0;
        for task in entries(&format!("/proc/{pid}/task"))? {
            let text = read(&task.join("schedstat"))?;
            let first = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
            nanos += first.ok_or_else(|| Error::Proc(text.clone()))?;
        }
        Ok(nanos as f64 / 1_000.0)
    })
}

/// Resident memory in KiB.
pub(crate) fn rss_kib(group: u32) -> Result<f64, Error> {
    sum(group, |pid| rolled_up(pid, "Rss:"))
}

/// The same, with a page that several processes share counted once.
pub(crate) fn pss_kib(group: u32) -> Result<f64, Error> {
    sum(group, |pid| rolled_up(pid, "Pss:"))
}

/// Open file descriptors.
pub(crate) fn fds(group: u32) -> Result<usize, Error> {
    let open = sum(group, |pid| entries(&format!("/proc/{pid}/fd")).map(|entries| entries.len() as f64))?;
    Ok(open as usize)
}

/// The processes of a group, which has the id of its first one.
pub(crate) fn members(group: u32) -> Result<Vec<u32>, Error> {
    let pids = entries("/proc")?.into_iter().filter_map(|entry| entry.file_name()?.to_str()?.parse().ok());
    Ok(pids.filter(|pid| group_of(*pid) == Some(group)).collect())
}

/// `pid (name) state ppid pgrp ...`, where the name may hold anything. A process that has ended and is not yet
/// waited for is none.
fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let (state, group) = (words.next()?, words.nth(1)?.parse().ok()?);
    (state != "Z").then_some(group)
}

/// Of all members; one that ends meanwhile counts for nothing, as long as the first one is there.
fn sum(group: u32, of: impl Fn(u32) -> Result<f64, Error>) -> Result<f64, Error> {
    let others = members(group)?.into_iter().filter(|pid| *pid != group);
    Ok(of(group)? + others.filter_map(|pid| of(pid).ok()).sum::<f64>())
}

/// From `smaps_rollup`, which counts pages where `status` may lag behind.
fn rolled_up(pid: u32, name: &str) -> Result<f64, Error> {
    let text = read(Path::new(&format!("/proc/{pid}/smaps_rollup")))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|value| value.parse().ok());
    value.ok_or(Error::Proc(text))
}

/// Bytes in the sockets of a proxy that listens on `listen` and asks an engine on `engine`: received
/// from the engine and not read yet, and sent to clients and not acknowledged yet.
pub(crate) fn socket_bytes(listen: u16, engine: u16) -> Result<u64, Error> {
    let text = read(Path::new("/proc/net/tcp"))?;
    let mut bytes = 0;
    for line in text.lines().skip(1) {
        let socket = Socket::parse(line).ok_or_else(|| Error::Proc(line.to_owned()))?;
        if socket.local == listen {
            bytes += socket.to_send;
        }
        if socket.remote == engine {
            bytes += socket.to_read;
        }
    }
    Ok(bytes)
}

struct Socket {
    local: u16,
    remote: u16,
    to_send: u64,
    to_read: u64,
}

impl Socket {
    /// `sl local_address rem_address st tx_queue:rx_queue ...`, all in hexadecimal.
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
        let port = |word: &str| u16::from_str_radix(word.split_once(':')?.1, 16).ok();
        let (to_send, to_read) = words.get(4)?.split_once(':')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Self {
            local: port(words.get(1)?)?,
            remote: port(words.get(2)?)?,
            to_send: number(to_send)?,
            to_read: number(to_read)?,
        })
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::io(format!("read {}", path.display()), error))
}

fn entries(dir: &str) -> Result<Vec<std::path::PathBuf>, Error> {
    let failed = |error| Error::io(format!("read {dir}"), error);
    fs::read_dir(dir).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}
