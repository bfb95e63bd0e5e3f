//! How an exchange ended, as far as it has been said: what its counts and its access line are made of.

use std::borrow::Cow;

use crate::keys::KeyError;
use crate::outcome::{Outcome, Phase};

/// How the exchange ended, as far as it has been said.
pub(super) struct Ending {
    /// What it counts as.
    pub(super) outcome: Outcome,
    /// `error.code` of what the client was told.
    pub(super) code: Option<&'static str>,
    /// The limit that refused it.
    pub(super) limit: Option<Cow<'static, str>>,
    /// Why its key was none.
    pub(super) key_error: Option<KeyError>,
    /// Where it was when it ended early.
    pub(super) phase: Phase,
    /// The status the client saw; 0 for none.
    pub(super) status: u16,
    /// What it was refused for, in the words that the client was told.
    pub(super) why: Option<String>,
}

impl Default for Ending {
    /// Nothing has been said yet.
    fn default() -> Self {
        let (outcome, phase) = (Outcome::Abandoned, Phase::Upload);
        Self { outcome, code: None, limit: None, key_error: None, phase, status: 0, why: None }
    }
}
