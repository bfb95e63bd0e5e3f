//! What comes with the binary and is made of the definitions of its commands: completions for shells, manual pages.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, EX_TEMPFAIL, Failed, show};

/// The name of the binary, which completions are for.
const NAME: &str = env!("CARGO_PKG_NAME");

/// Prints the completions for a shell.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn completions(shell: Shell) -> Result<(), Failed> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    show(String::from_utf8_lossy(&script).trim_end())
}

/// Writes `streamgate.1`, and a page for each command beside it. The folder is made where it is missing.
///
/// # Errors
/// The folder cannot be made or written to.
pub(super) fn manual(folder: &Path) -> Result<(), Failed> {
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failed(EX_TEMPFAIL, format!("{}: {error}", folder.display())))
}
