//! `streamgate check`: everything that a start would complain of, without starting.
//!
//! The text of the file comes first; where that is sound, the files that it names: certificates, keys, authorities,
//! and where the access log is to go.

use std::path::Path;
use std::time::SystemTime;

use super::{EX_TEMPFAIL, EX_USAGE, Failed, show};
use crate::config::{self, Environment};
use crate::server::{self, StartError, certificates};

/// Checks a file: a line for each warning, and that it is sound.
///
/// # Errors
/// Every problem of its text, or else of what it names.
pub(super) fn check(path: &Path) -> Result<(), Failed> {
    let loaded = config::load(path, &Environment::detect())?;
    let (below, errors) = server::unusable(&loaded.config);
    if !errors.is_empty() {
        return Err(failed(path, &errors));
    }
    let mut warnings = loaded.warnings;
    warnings.extend(server::pipes(&loaded.config.log));
    warnings.extend(certificates::remarks(&below, SystemTime::now()));
    let name = path.display().to_string();
    let mut lines: Vec<String> =
        warnings.iter().map(|warning| format!("warning: {}", warning.in_file(&name))).collect();
    lines.push(format!("{name}: ok"));
    show(&lines.join("\n"))
}

/// As a start has it: wrong is worse than not there.
fn failed(path: &Path, errors: &[StartError]) -> Failed {
    let code = if errors.iter().any(StartError::is_configuration) { EX_USAGE } else { EX_TEMPFAIL };
    let texts: Vec<String> = errors.iter().map(|error| Failed::in_file(path, error).1).collect();
    Failed(code, texts.join("\n"))
}
