//! What the log says of a reload: how it ended, and what it has changed.

use std::path::Path;

use super::{Cause, InForce, Outcome};
use crate::config;

/// Lines of problems that are logged; the answer to POST /reload has all of them.
const PROBLEMS_MAX: usize = 20;

/// Changes that are named.
const CHANGES_MAX: usize = 10;

/// Says how it ended.
pub(super) fn outcome(cause: Cause, file: Option<&Path>, outcome: &Outcome) {
    let file = file.map_or_else(|| "-".into(), |file| file.display().to_string());
    match outcome {
        Outcome::Applied { generation } => {
            log::info!("{cause}: {file} is in force as generation {generation}");
        }
        Outcome::Unchanged { generation } => {
            log::info!("{cause}: {file} says what is in force already, generation {generation}");
        }
        Outcome::Refused { problems } => {
            log::error!("{cause}: the configuration is refused, and the one in force stays");
            problems.lines().take(PROBLEMS_MAX).for_each(|problem| log::error!("{problem}"));
        }
        Outcome::Leaving => {}
    }
}

/// The same in a few words, for systemd.
pub(super) fn status(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied { generation } | Outcome::Unchanged { generation } => {
            format!("serving, generation {generation}")
        }
        Outcome::Refused { problems } => {
            format!("serving; the last file is refused: {}", problems.lines().next().unwrap_or_default())
        }
        Outcome::Leaving => "draining".into(),
    }
}

/// Bytes of both texts together above which they are not compared: that reads both once more, beside the streams and
/// the next reload.
const COMPARED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Says what is not as it was, as `streamgate diff` does. Where no setting differs, a name has other addresses.
pub(super) fn changes(generation: u64, before: &InForce, after: &InForce) {
    let (before, after) = (before.version(), after.version());
    if before.text.len() + after.text.len() > COMPARED_BYTES_MAX {
        log::info!("generation {generation}: too large to tell what differs; `streamgate diff` does");
        return;
    }
    let changes = config::changes(before, after);
    let named: Vec<String> = changes.iter().take(CHANGES_MAX).map(ToString::to_string).collect();
    if named.is_empty() {
        log::info!("generation {generation}: no setting differs, only addresses behind names");
        return;
    }
    let more = match changes.len() - named.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    log::info!("generation {generation}: {}{more}", named.join(", "));
}
