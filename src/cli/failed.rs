//! What ends a command early, and the exit code that says so.

use std::error::Error;
use std::path::Path;

use super::{EX_SOFTWARE, EX_TEMPFAIL, EX_USAGE};
use crate::config::Problems;
use crate::server::{self, StartError};

/// What ends a command early: its exit code, and what to say on stderr.
pub(super) struct Failed(pub(super) u8, pub(super) String);

impl Failed {
    pub(super) fn output(error: &std::io::Error) -> Self {
        Self(EX_SOFTWARE, format!("standard output cannot be written: {error}"))
    }

    pub(super) fn start(error: &dyn Error) -> Self {
        Self(EX_TEMPFAIL, server::chain(error))
    }

    /// A start that failed, with the line of the file where there is one.
    pub(super) fn in_file(file: &Path, error: &StartError) -> Self {
        let Self(code, text) = Self::start(error);
        let place = error.line().map(|line| format!("{}:{line}: ", file.display())).unwrap_or_default();
        Self(if error.is_configuration() { EX_USAGE } else { code }, place + &text)
    }
}

impl From<Problems> for Failed {
    fn from(problems: Problems) -> Self {
        Self(if problems.is_unreadable() { EX_TEMPFAIL } else { EX_USAGE }, problems.to_string())
    }
}
