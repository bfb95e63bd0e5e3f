//! A file that lines are appended to, and what an operator does to it meanwhile: move it away, or bound it.
//!
//! The one hard idea: a reader of JSON lines must never meet half a line. What is written at once is whole
//! lines and goes into one file; where a full disk took only a part, that part is taken back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Access, OFlags, access, fcntl_setfl};
use rustix::io::Errno;

use crate::config::Rotate;

/// Links that are followed from one to the next; the kernel goes no further either.
const LINKS_MAX: usize = 40;

/// Asks a [`LogFile`] to open its file anew before the next line, for a rotation that has moved it away.
#[derive(Debug, Clone, Default)]
pub struct Reopen(Arc<AtomicBool>);

impl Reopen {
    /// Asks for it.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

/// A file that is appended to.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    path: PathBuf,
    /// Bytes in it.
    size: u64,
    rotate: Option<Rotate>,
    reopen: Reopen,
    /// The last write left half a line.
    torn: bool,
}

impl LogFile {
    /// Opens the file, which grows without bound where `rotate` is `None`.
    ///
    /// # Errors
    /// It cannot be opened for appending.
    pub fn open(path: &Path, rotate: Option<Rotate>, reopen: Reopen) -> io::Result<Self> {
        let (file, size, torn) = append(path)?;
        Ok(Self { file, path: path.to_owned(), size, rotate, reopen, torn })
    }

    fn open_anew(&mut self) {
        match append(&self.path) {
            Ok((file, size, torn)) => (self.file, self.size, self.torn) = (file, size, torn),
            Err(error) => log::error!(
                "{} cannot be opened anew: {error}; its lines go on into the file that has been open",
                self.path.display()
            ),
        }
    }

    /// Moves the file away as number 1, those before it each one further, and begins another. Where that cannot
    /// be done the file grows on: no line is lost for want of tidiness.
    fn rotate(&mut self, keep: u64) {
        let moved = match self.path.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => (1..keep).rev().try_for_each(|n| rename(&self.numbered(n), &self.numbered(n + 1))),
        };
        match moved.and_then(|()| rename(&self.path, &self.numbered(1))) {
            Ok(()) => self.open_anew(),
            Err(error) => {
                log::error!("{} cannot be rotated: {error}", self.path.display());
                // Tried again when as much has been written once more, rather than with every line.
                self.size = 0;
            }
        }
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    /// Writes all of it, or nothing: what a full disk took of it is taken back. Where that cannot be, half a line stands
    /// there and is ended before the next.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let before = self.size;
        let written = self.append_some(lines);
        // Only what is ours may be taken back: another process may have written behind it.
        if written.is_err()
            && self.torn
            && self.file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == self.size)
            && self.file.set_len(before).is_ok()
        {
            (self.size, self.torn) = (before, false);
        }
        written
    }

    fn append_some(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.size += count as u64;
                    self.torn = rest[count - 1] != b'\n';
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Takes whole lines, as many at once as stand together in one file.
impl Write for LogFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if self.reopen.is_asked() {
            self.open_anew();
        }
        if let Some(Rotate { size, keep }) = self.rotate
            && self.size > 0
            && self.size + lines.len() as u64 > size
        {
            self.rotate(keep);
        }
        if self.torn {
            self.append(b"\n")?;
        }
        self.append(lines)?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Looks whether a file could be opened for appending, and leaves no trace of it.
///
/// # Errors
/// Why it could not: the file, or the folder that it would be made in, is not there or not to be written to.
pub fn could_open(path: &Path) -> io::Result<()> {
    let path = &resolved(path);
    match path.metadata() {
        Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// Whether it is a pipe: it can be opened only while somebody reads it, and to try that would end the reader.
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.file_type().is_fifo())
}

/// Where a path leads through links, those to a file that is not there yet included: opening it makes that file.
pub fn resolved(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(to);
    }
    path
}

/// Whether lines for the one would go into the other, under whatever names. Devices take what comes.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => {
            (one.dev(), one.ino()) == (other.dev(), other.ino()) && !one.file_type().is_char_device()
        }
        // Two names of one file that the first of them will make.
        (Err(_), Err(_)) => match (to_be_made(one), to_be_made(other)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        },
        _ => false,
    }
}

/// Folder and name of a file that is not there, the folder by its one true path.
fn to_be_made(path: &Path) -> Option<PathBuf> {
    let path = resolved(path);
    Some(folder_of(&path).canonicalize().ok()?.join(path.file_name()?))
}

/// The folder of a file, be it the one that the process works in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Opens it for appending, and waits for nobody: a pipe that has no reader is an error, not a start that hangs.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.create(true).append(true).custom_flags(at_once).open(path).map_err(|error| {
        let is_unread = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        if is_unread { io::Error::other("nobody reads this pipe") } else { error }
    })?;
    // What is written later may wait: for a reader that is slow, lines wait and are bounded elsewhere.
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

/// The file, its size, and whether it ends with half a line, which a process that was killed may have left.
fn append(path: &Path) -> io::Result<(File, u64, bool)> {
    let file = open(path)?;
    let meta = file.metadata()?;
    let torn = meta.is_file() && meta.len() > 0 && !ends_with_a_line(path, meta.len());
    Ok((file, meta.len(), torn))
}

/// Whether its last byte ends a line; a file that cannot be read is taken for one that does.
fn ends_with_a_line(path: &Path, size: u64) -> bool {
    let mut last = [b'\n'];
    let read = File::open(path).and_then(|file| file.read_at(&mut last, size - 1));
    read.is_err() || last == [b'\n']
}

/// Moves a file; one that is not there need not be moved.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests;
