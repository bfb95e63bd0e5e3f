//! What a start would find wrong beside the text of the file, found without starting.

use super::StartError;
use super::clients::each_below;
use crate::config::{AccessTarget, Config, Log, NamedFile, Problem, UsageTarget};
use crate::edge::Below;
use crate::{access_log, log_file};

/// The certificates of the listeners, and everything that the file names and that could not be used here and now: not
/// the first problem only, as a start has it.
pub fn unusable(config: &Config) -> (Vec<Below>, Vec<StartError>) {
    let (mut below, mut errors) = (Vec::new(), Vec::new());
    for listener in each_below(&config.server.listen) {
        // One that is missing stands in for nothing: what is told of the others has their numbers.
        below.push(listener.unwrap_or_else(|error| {
            errors.push(error);
            Below::Plain
        }));
    }
    let target = &config.log.access;
    let opened = access_log::could_open(target);
    errors.extend(opened.err().map(|source| StartError::AccessLog { target: target.clone(), source }));
    if let Some(UsageTarget { file, .. }) = &config.log.usage {
        let opened = log_file::could_open(&file.path);
        errors.extend(opened.err().map(|source| StartError::UsageLog { file: file.clone(), source }));
    }
    errors.extend(one_file_each(&config.log).err());
    (below, errors)
}

/// Whether the access log and the usage log are two files, whatever links lead to them.
///
/// # Errors
/// They are one: its rotation would take the lines of the other away.
pub(crate) fn one_file_each(log: &Log) -> Result<(), StartError> {
    match (&log.access, &log.usage) {
        (AccessTarget::File(access), Some(UsageTarget { file, .. }))
            if log_file::is_same(&access.path, &file.path) =>
        {
            Err(StartError::SameLog { file: file.clone() })
        }
        _ => Ok(()),
    }
}

/// What deserves a warning: pipes. Whether somebody reads them is known at the start, not before it.
pub fn pipes(log: &Log) -> Vec<Problem> {
    let access = match &log.access {
        AccessTarget::File(file) => Some(("log.access", file)),
        _ => None,
    };
    let usage = log.usage.as_ref().map(|target| ("log.usage", &target.file));
    let pipes = access.into_iter().chain(usage).filter(|(_, file)| log_file::is_pipe(&file.path));
    pipes.map(|(setting, file)| unread(setting, file)).collect()
}

fn unread(setting: &str, file: &NamedFile) -> Problem {
    Problem {
        path: setting.to_owned(),
        line: Some(file.line),
        column: None,
        what: format!("{} is a pipe", file.path.display()),
        fix: "the start fails unless somebody reads it by then".to_owned(),
    }
}
