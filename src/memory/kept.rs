//! A small file of the kernel's that is read again and again.
//!
//! It stays open: a process without a descriptor left can open nothing, and that is the moment at which the reading
//! matters. The kernel writes such a file anew for whoever reads it from its beginning.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Most that is read of it: several times the longest there is, memory.stat.
const MOST: usize = 16 * 1024;

/// The file, and what was read of it last.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    file: Option<File>,
    text: Vec<u8>,
}

/// A file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub(super) struct Unread {
    path: PathBuf,
    why: io::Error,
}

impl Kept {
    /// The file at this path. If it cannot be opened now, that is tried again when it is read.
    pub(super) fn new(path: PathBuf) -> Self {
        let file = File::open(&path).ok();
        Self { path, file, text: vec![0; MOST] }
    }

    /// What `find` finds in it as it is now.
    ///
    /// # Errors
    /// It cannot be read, or nothing is found.
    pub(super) fn read<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> Result<T, Unread> {
        let found = self.fill().and_then(|length| {
            let text = String::from_utf8_lossy(&self.text[..length]);
            find(&text).ok_or_else(|| io::Error::other("it does not say what it should"))
        });
        found.map_err(|why| Unread { path: self.path.clone(), why })
    }

    /// Reads it; from a new descriptor where the old one does no more and another is to be had.
    fn fill(&mut self) -> io::Result<usize> {
        let kept = self.file.as_ref().and_then(|file| whole(file, &mut self.text).ok());
        if let Some(length) = kept {
            return Ok(length);
        }
        let file = File::open(&self.path)?;
        let length = whole(&file, &mut self.text)?;
        self.file = Some(file);
        Ok(length)
    }
}

/// Reads a file from its beginning, as much as there is room for.
fn whole(file: &File, into: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < into.len() {
        match file.read_at(&mut into[length..], length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn number(text: &str) -> Option<u64> {
        text.trim().parse().ok()
    }

    #[test]
    fn it_is_read_from_the_descriptor_that_was_opened_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        fs::write(&path, "1").unwrap();
        let mut kept = Kept::new(path.clone());
        assert_eq!(kept.read(number).unwrap(), 1);
        fs::write(&path, "22").unwrap();
        assert_eq!(kept.read(number).unwrap(), 22);
        // Nothing can be opened by that name any more.
        fs::remove_file(&path).unwrap();
        assert_eq!(kept.read(number).unwrap(), 22);
    }

    #[test]
    fn what_is_not_there_yet_is_opened_when_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        let mut kept = Kept::new(path.clone());
        let unread = kept.read(number).unwrap_err().to_string();
        assert!(unread.starts_with(&format!("{}: No such file", path.display())), "{unread}");
        fs::write(&path, "no number").unwrap();
        assert!(kept.read(number).is_err());
        fs::write(&path, "3").unwrap();
        assert_eq!(kept.read(number).unwrap(), 3);
    }
}
