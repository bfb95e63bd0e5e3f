//! What a process costs, read from /proc.

use std::fs;
use std::path::Path;

use crate::error::Error;

/// CPU time of all its threads so far, user and system, in microseconds.
///
/// From `schedstat`, which counts nanoseconds where `stat` counts ticks of 10 ms. A thread that has
/// ended is not counted; the proxies keep theirs.
pub(crate) fn cpu_us(pid: u32) -> Result<f64, Error> {
    let mut nanos = 0;
    for task in entries(&format!("/proc/{pid}/task"))? {
        let text = read(&task.join("schedstat"))?;
        let first = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        nanos += first.ok_or_else(|| Error::Proc(text.clone()))?;
    }
    Ok(nanos as f64 / 1_000.0)
}

/// Resident memory in KiB. From `smaps_rollup`, which counts pages where `status` may lag behind.
pub(crate) fn rss_kib(pid: u32) -> Result<f64, Error> {
    let text = read(Path::new(&format!("/proc/{pid}/smaps_rollup")))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let value = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|value| value.parse().ok());
    value.ok_or(Error::Proc(text))
}

/// Open file descriptors.
pub(crate) fn fds(pid: u32) -> Result<usize, Error> {
    entries(&format!("/proc/{pid}/fd")).map(|entries| entries.len())
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
