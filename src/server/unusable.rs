//! What a start would find wrong beside the text of the file, found without starting.

use super::StartError;
use super::clients::each_below;
use crate::config::{Config, UsageTarget};
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
    (below, errors)
}
