//! API keys: who a client is, by the key that it presents.
//!
//! A key is never stored and never compared: only its SHA-256 digest is known here, and whole digests are
//! what is looked up and compared. Nothing here asks a file, a network or a clock, so that a wrong key costs
//! one hash and one look into a table, whoever sends it and whatever it asks for.

mod error;
mod presented;
mod ring;
mod strangers;

/// Why a request was not let in. The words are those of the metric `streamgate_keys_denied_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It has no key.
    Missing,
    /// It has one that is not known, or two that differ. Who sent it is told as if it had none.
    Unknown,
    /// The same, once too often from its address.
    Repeated,
    /// Its key is known, and may not use the model.
    Model,
}

impl Denied {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Missing, Self::Unknown, Self::Repeated, Self::Model];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Repeated => "repeated",
            Self::Model => "model",
        }
    }
}

pub use error::KeyError;
pub use presented::{KEY_BYTES_MAX, Presented, presented};
pub use ring::{BadDigest, Digest, Ring, hex};
pub use strangers::{Strangers, neighbourhood};
