//! Why a body is refused.

use super::{DEPTH_MAX, MEMBERS_MAX, NUMBER_BYTES_MAX};

/// Why a body is refused. No message quotes the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is not JSON (RFC 8259).
    #[error("the body is not valid JSON: {reason}")]
    NotJson {
        /// What is wrong and where.
        reason: String,
    },
    /// It is JSON, but no object.
    #[error("the body must be a JSON object")]
    NotObject,
    /// A field that is acted on stands twice; parsers disagree on which one counts.
    #[error("the field {field} stands more than once")]
    Duplicate {
        /// Its name.
        field: &'static str,
    },
    /// The same of a field that a JSON pointer names.
    #[error("the field {pointer} stands more than once")]
    Twice {
        /// The pointer.
        pointer: String,
    },
    /// It is nested too deep.
    #[error("the body is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// It has too many members.
    #[error("the body has more than {MEMBERS_MAX} members")]
    TooMany,
    /// It has a number that is too long.
    #[error("the body has a number of more than {NUMBER_BYTES_MAX} bytes")]
    LongNumber,
    /// A field has the wrong type.
    #[error("the field {field} must be {must}")]
    Type {
        /// Its name.
        field: &'static str,
        /// What it must be.
        must: &'static str,
    },
}

impl Invalid {
    /// The field it is about, if it is about one.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Duplicate { field } | Self::Type { field, .. } => Some(field),
            Self::NotJson { .. }
            | Self::NotObject
            | Self::Twice { .. }
            | Self::TooDeep
            | Self::TooMany
            | Self::LongNumber => None,
        }
    }
}
