//! Whether a delta brings anything.
//!
//! Engines call text, reasoning and tool calls by ever new names, and a name that were not known would let a whole answer
//! pass for nothing. So it is the other way round: all that says something counts, but for what only says whose or of what
//! kind it is.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::lax;

/// Members that are no part of an answer.
const ABOUT: [&str; 3] = ["role", "type", "index"];

/// A delta, read for whether it brings anything.
#[derive(Debug, Default)]
pub(super) struct Brings {
    pub(super) anything: bool,
}

impl<'de> Deserialize<'de> for Brings {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Brings;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Brings, A::Error> {
        let mut brings = Brings::default();
        while let Some((name, value)) = map.next_entry::<Cow<'de, str>, &RawValue>()? {
            brings.anything |= lax::is_present(Some(value)) && !ABOUT.contains(&&*name);
        }
        Ok(brings)
    }
}
