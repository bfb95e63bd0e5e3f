//! Why a request has no key that is known, for the operator. A client is told the same words for all of them.

/// Why a request has no key that is known. The words are those of the access log's `key_error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    /// Neither header that could carry a key is there.
    Missing,
    /// `Authorization` is there and says something else than `Bearer`, so it is no key.
    OtherScheme,
    /// What stands where the key should be cannot be one: nothing, or too much.
    Malformed,
    /// There are two keys, and they differ.
    Differing,
    /// There is a key, and the file does not have it (any more).
    Unknown,
}

impl KeyError {
    /// The word in the access log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::OtherScheme => "other_scheme",
            Self::Malformed => "malformed",
            Self::Differing => "differing",
            Self::Unknown => "unknown",
        }
    }
}
