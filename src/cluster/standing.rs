//! Whether a backend may be given an attempt now, and if not, why.
//!
//! Each reason has one owner, and they are asked in the order of how long they last.

use std::sync::Arc;

use super::health::Fitness;
use super::{Ask, Backend};

/// What a backend is good for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may be picked.
    Usable,
    /// It takes no new work.
    Draining,
    /// This exchange has been tried on it.
    Tried,
    /// It is ill.
    Out,
    /// Its checks fail and nothing else speaks against it, or it fails and as many as may be are out: it is picked
    /// where no other is left.
    Doubted,
    /// It was ill, and one request may try it.
    HalfOpen,
    /// It asked to be left alone for a while.
    Resting,
    /// It has as many attempts as it takes.
    Full,
}

impl Standing {
    /// Whether what is at home on such a backend stays so: it will soon be back, or only this exchange
    /// passes it over. Moving costs a cache.
    pub(super) fn keeps_homes(self) -> bool {
        match self {
            Self::Draining | Self::Out => false,
            Self::Tried | Self::Doubted | Self::HalfOpen | Self::Resting | Self::Full | Self::Usable => true,
        }
    }
}

/// The standing of `backend` for this attempt. With `fail_static` its checks say nothing.
pub(super) fn of(backend: &Arc<Backend>, ask: &Ask<'_>, fail_static: bool) -> Standing {
    if backend.state.leaving.takes_nothing() {
        return Standing::Draining;
    }
    if ask.tried.iter().any(|other| backend.is(other)) {
        return Standing::Tried;
    }
    match backend.state.health.fitness(ask.now) {
        Fitness::HalfOpen => Standing::HalfOpen,
        Fitness::Kept => Standing::Doubted,
        Fitness::Doubted if !fail_static => Standing::Doubted,
        Fitness::Out => Standing::Out,
        _ if ask.sound && backend.state.health.is_failing() => Standing::Out,
        _ if backend.state.rest_ends(ask.now).is_some() => Standing::Resting,
        _ if backend.is_full() => Standing::Full,
        _ => Standing::Usable,
    }
}
