//! What a chooser is shown, and how the choice of a backend asks it.

use std::fmt;

use super::{ChooseBackend, OwnedFacts};

/// A backend that may be chosen now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The cluster it belongs to.
    pub cluster: &'a str,
    /// Its name in the cluster.
    pub name: &'a str,
    /// Work that is open on it, in tokens to generate: ours, refined by what the engine says of itself.
    pub load: u64,
    /// Attempts of ours that are open on it.
    pub in_flight: usize,
    /// Its weight as the file has it, at least 1.
    pub weight: u32,
}

/// A hook and the request that it is asked about.
#[derive(Clone, Copy)]
pub struct Chooser<'a> {
    pub(crate) hook: &'a dyn ChooseBackend,
    pub(crate) request: &'a OwnedFacts,
}

impl Chooser<'_> {
    /// The place of the one to use, if the hook has an opinion that can be followed.
    pub(crate) fn choose(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        self.hook.choose(&self.request.facts(), candidates).filter(|place| *place < candidates.len())
    }
}

impl fmt::Debug for Chooser<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Chooser").field("request", &self.request).finish_non_exhaustive()
    }
}
