//! Reading a configuration file, boundedly.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use super::environment::Environment;
use super::error::{Problem, Problems};
use super::tree::FILE_BYTES_MAX;

/// Largest file that the configuration names: a chain of certificates, a token.
const NAMED_BYTES_MAX: usize = 4 * 1024 * 1024;
use super::{Config, Loaded};

/// Reads, parses and checks the file at `path`. Start-up, `check` and reload all come here.
///
/// # Errors
/// Every problem of the file, or why it could not be read; either way named by `path`.
pub fn load(path: &Path, environment: &Environment) -> Result<Loaded, Problems> {
    let name = path.display().to_string();
    let bytes =
        read(path).map_err(|what| Problems::from(Problem::of_file(None, None, what, "")).unreadable());
    bytes
        .and_then(|bytes| Config::parse_bytes(&bytes, environment))
        .map_err(|problems| problems.in_file(name))
}

/// The bytes of a file, up to one more than is allowed; so a file without end is refused, not read.
///
/// # Errors
/// Why it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let kind = std::fs::metadata(path).map_err(cannot)?.file_type();
    if kind.is_dir() {
        return Err("cannot be read: it is a directory".into());
    }
    // Opening it would wait for whoever writes into it, and with it every reload to come. A shell's own, as in
    // `check -c <(...)`, has a writer.
    if kind.is_fifo() && !path.starts_with("/dev") {
        return Err("cannot be read: it is a pipe".into());
    }
    let file = File::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

/// The bytes of a file that the configuration names.
pub(super) fn read_named(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read(path)?;
    if bytes.len() > NAMED_BYTES_MAX {
        return Err("is larger than 4 MiB".into());
    }
    Ok(bytes)
}

/// What a file of one credential says. An editor ends its line: that line end is no part of it.
pub(super) fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|_| "is no text".to_owned())?;
    Ok(text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line)).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVIRONMENT: Environment = Environment::bare(2, 1 << 30);

    fn told(path: &Path) -> String {
        load(path, &ENVIRONMENT).unwrap_err().to_string()
    }

    #[test]
    fn a_path_that_is_no_file_is_told_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent.yaml");
        assert!(told(&absent).starts_with(&format!("{}: cannot be read: No such file", absent.display())));
        assert!(told(folder.path()).ends_with("it is a directory"));
        let circle = folder.path().join("circle.yaml");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        assert!(told(&circle).contains("cannot be read"));
    }

    #[test]
    fn a_file_without_end_is_refused() {
        assert!(told(Path::new("/dev/zero")).contains("larger than 32 MiB"));
    }

    #[test]
    fn a_file_that_is_not_utf8_is_told_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin1.yaml");
        std::fs::write(&path, b"server:\n  # caf\xe9\n").unwrap();
        assert!(told(&path).contains("latin1.yaml:2: not UTF-8"));
    }
}
