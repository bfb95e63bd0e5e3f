//! The file of the figures.
//!
//! The one hard idea: what stands in a file of that name is a whole run, before and after. The figures go into another
//! file beside it, which takes its name once all of them are there; so a full disk, or a run that came to nothing, costs no
//! figures of an earlier one.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tempfile::NamedTempFile;

use super::Error;
use crate::log_file::{folder_of, resolved};

/// A file that can be written, as far as that can be known beforehand.
pub(super) struct Saved {
    /// As the user names it.
    name: PathBuf,
    way: Way,
}

enum Way {
    /// Into a file beside it, which is moved there.
    Beside { file: NamedTempFile, to: PathBuf },
    /// Into a file whose folder takes no other, or into what is no file (`/dev/stdout`, a pipe).
    Itself(File),
}

impl Saved {
    /// Prepares to write there.
    ///
    /// # Errors
    /// It cannot be.
    pub(super) fn prepare(name: &Path) -> Result<Self, Error> {
        let way = prepare(name).map_err(|error| failed(name, &error))?;
        Ok(Self { name: name.to_owned(), way })
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// It could not be.
    pub(super) fn write(self, figures: &[u8]) -> Result<(), Error> {
        let written = match self.way {
            Way::Beside { file, to } => beside(file, &to, figures),
            Way::Itself(file) => itself(file, figures),
        };
        written.map_err(|error| failed(&self.name, &error))
    }
}

fn failed(name: &Path, error: &io::Error) -> Error {
    Error::File(format!("{}: {error}", name.display()))
}

fn prepare(name: &Path) -> io::Result<Way> {
    let itself = || OpenOptions::new().write(true).open(name).map(Way::Itself);
    let mode = match fs::metadata(name) {
        Ok(meta) if !meta.is_file() => return itself(),
        Ok(meta) => {
            access(name, Access::WRITE_OK)?;
            Some(meta.permissions().mode())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let to = resolved(name);
    let folder = folder_of(&to);
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Err(_) if mode.is_some() => return itself(),
        looked => looked?,
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".streamgate-bench-").permissions(Permissions::from_mode(mode.unwrap_or(0o666)));
    Ok(Way::Beside { file: builder.tempfile_in(folder)?, to })
}

fn beside(mut file: NamedTempFile, to: &Path, figures: &[u8]) -> io::Result<()> {
    file.write_all(figures)?;
    // Some file systems say only here that they have no room.
    file.as_file().sync_all()?;
    file.persist(to).map_err(|failed| failed.error)?;
    Ok(())
}

fn itself(mut file: File, figures: &[u8]) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_what_it_has_until_the_rest_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("run.json"), folder.path().join("link.json"));
        fs::write(&path, "the run before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("run.json", &link).unwrap();
        drop(Saved::prepare(&link).unwrap());
        let names = || fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((fs::read_to_string(&path).unwrap(), names()), ("the run before".into(), 2));
        Saved::prepare(&link).unwrap().write(b"this run").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names()), ("this run".into(), 2));
        assert!(link.is_symlink(), "the file is another, the link the same");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let told = |saved: Result<(), Error>| saved.unwrap_err().to_string();
        let prepared = |path: &str| Saved::prepare(Path::new(path)).map(drop);
        assert_eq!(
            told(prepared("/nowhere/run.json")),
            "--json /nowhere/run.json: No such file or directory (os error 2)"
        );
        assert_eq!(told(prepared("/")), "--json /: Is a directory (os error 21)");
        let full = Saved::prepare(Path::new("/dev/full")).unwrap();
        assert_eq!(told(full.write(b"{}")), "--json /dev/full: No space left on device (os error 28)");
    }
}
