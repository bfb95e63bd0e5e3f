//! One try of an exchange on one backend: guards, so that it is counted for as long as it lasts.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::{InFlight, Second, Watched};
use crate::memory::Entry;
use crate::upstream::Link;

/// One try of the exchange on one backend.
pub(super) struct Attempt {
    /// Counts it on its backend.
    pub(super) in_flight: InFlight,
    /// What its session tells us.
    pub(super) link: Arc<Link>,
    /// The status of its answer, once there is one.
    pub(super) status: Option<u16>,
    /// How long the backend asked to be left alone.
    pub(super) retry_after: Option<Duration>,
    /// It has failed, and another is to follow it.
    pub(super) is_followed: bool,
    /// Counts it in the retry budget, if it is a second one.
    pub(super) _second: Option<Second>,
    /// Lets its backend's health see how it goes.
    pub(super) _watched: Watched,
    /// Lets it be cut when memory is wanted and its client takes nothing.
    pub(super) _held: Option<Entry>,
}
