//! Picking members of a JSON object by name, in one pass, without building anything.
//!
//! Values are kept as slices of the text. The rest of the object is checked for its lexical form
//! only, so escaped lone surrogates and numbers of any size pass, as they do with the engines.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The values of the wanted members, in the order of their names.
pub(super) struct Members<'a, const N: usize> {
    /// `None` where the object has no such member.
    pub(super) values: [Option<&'a RawValue>; N],
    /// Index of a name that stands more than once.
    pub(super) twice: Option<usize>,
}

impl<'a, const N: usize> Members<'a, N> {
    /// Reads the object that is the whole of `text`.
    pub(super) fn read(text: &'a str, names: [&str; N]) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let members = json.deserialize_map(Names(names))?;
        json.end()?;
        Ok(members)
    }
}

/// Where `value` stands in `text`, in bytes; it must be a slice of it.
pub(super) fn span(text: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + value.get().len()
}

struct Names<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Names<'_, N> {
    type Value = Members<'de, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members { values: [None; N], twice: None };
        while let Some(index) = map.next_key_seed(Key(&self.0))? {
            let Some(index) = index else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if members.values[index].replace(map.next_value()?).is_some() {
                members.twice = Some(index);
            }
        }
        Ok(members)
    }
}

/// A member's name as an index. Read as bytes, since only so a lone surrogate in a name passes.
struct Key<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|wanted| wanted.as_bytes() == name))
    }
}
