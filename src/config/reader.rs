//! From the located tree to the `raw` types, noting every problem on the way.
//!
//! A serde `Deserializer` over [`Node`]s. Serde gives up at the first error; here each
//! [`Field`](super::raw::Field) is a bulkhead: its error is noted where it happened and reading goes
//! on beside it. Unknown keys are noted and skipped, with the nearest known one as advice.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::place::{At, shown};
use super::raw::FIELD;
use super::tree::{Node, Scalar, Value};

/// Reads the tree as `T`. What is wrong goes to the report behind `at`.
pub(super) fn read<'t, T: de::Deserialize<'t> + Default>(at: &At<'t>) -> T {
    let Some(node) = at.node() else { return T::default() };
    T::deserialize(Reader { node, at: at.clone() }).unwrap_or_else(|wrong| {
        at.problem(wrong.what, wrong.fix);
        T::default()
    })
}

/// Parts the two halves of a message that passes through [`de::Error::custom`].
pub(super) const FIX: char = '\u{1f}';

/// Why a value cannot be read as what it should be.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    what: String,
    fix: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.what)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        let (what, fix) = message.split_once(FIX).unwrap_or((&message, ""));
        Self { what: what.into(), fix: fix.into() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let wanted = wanted(&expected.to_string());
        let fix = match found {
            Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_)
                if wanted == "a text" =>
            {
                "put it in quotes".into()
            }
            Unexpected::Str(text) if text.parse::<f64>().is_ok() && wanted.contains("number") => {
                format!("write {text} without quotes")
            }
            _ => String::new(),
        };
        Self { what: format!("found {}, but {wanted} belongs here", seen(found)), fix }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let wanted = wanted(&expected.to_string());
        Self { what: format!("{} is out of range for {wanted}", seen(found)), fix: String::new() }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let fix = match nearest(variant, expected) {
            Some(near) => format!("did you mean {near}? One of {}", expected.join(", ")),
            None => format!("write one of {}", expected.join(", ")),
        };
        Self { what: format!("{} is not known here", shown(variant)), fix }
    }
}

/// Serde's name of a type in words.
fn wanted(expected: &str) -> String {
    match expected {
        "a string" => "a text".into(),
        "a boolean" => "true or false".into(),
        "f64" | "f32" => "a number".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number".into(),
        other => other.into(),
    }
}

fn seen(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => shown(text),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Unit => "nothing".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a map".into(),
        other => other.to_string(),
    }
}

/// The known word nearest to `word`, if it is near enough to be meant.
fn nearest(word: &str, known: &'static [&'static str]) -> Option<&'static str> {
    if word.len() > NEAR_BYTES_MAX {
        return None;
    }
    let bound = 1 + word.len() / 3;
    let distances = known.iter().map(|&near| (distance(&word.to_lowercase(), near), near));
    distances.min().filter(|&(far, _)| far <= bound).map(|(_, near)| near)
}

/// No setting's name is longer; it bounds the work on a hostile key.
const NEAR_BYTES_MAX: usize = 40;

/// Levenshtein's distance: insertions, deletions and exchanges that make `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.bytes().enumerate() {
            let exchange = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = exchange.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

struct Reader<'t> {
    node: &'t Node,
    at: At<'t>,
}

impl<'t> Reader<'t> {
    fn found(&self) -> Unexpected<'t> {
        match &self.node.value {
            Value::Scalar(Scalar::Null) => Unexpected::Unit,
            Value::Scalar(Scalar::Bool(value)) => Unexpected::Bool(*value),
            Value::Scalar(Scalar::Int(value)) => Unexpected::Signed((*value).try_into().unwrap_or(i64::MAX)),
            Value::Scalar(Scalar::Float(value)) => Unexpected::Float(*value),
            Value::Scalar(Scalar::Text(text)) => Unexpected::Str(text),
            Value::List(_) => Unexpected::Seq,
            Value::Map(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Scalar(Scalar::Null) => visitor.visit_unit(),
            Value::Scalar(Scalar::Bool(value)) => visitor.visit_bool(*value),
            Value::Scalar(Scalar::Int(value)) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_u64(value),
                (_, Ok(value)) => visitor.visit_i64(value),
                _ => Err(de::Error::custom(format!("{value} is beyond all bounds"))),
            },
            Value::Scalar(Scalar::Float(value)) => visitor.visit_f64(*value),
            Value::Scalar(Scalar::Text(text)) => visitor.visit_borrowed_str(text),
            Value::List(_) => visitor.visit_seq(Elements { left: self.at.children().into_iter() }),
            Value::Map(_) => visitor.visit_map(Members::new(&self.at)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let Value::Map(_) = &self.node.value else {
            let fix = format!("it takes the keys {}", known.join(", "));
            let what = format!("found {}, but a map of settings belongs here", seen(self.found()));
            return Err(Wrong { what, fix });
        };
        let mut members = Members::new(&self.at);
        members.left.retain(|(key, at)| {
            let is_known = known.contains(key);
            if !is_known {
                let fix = match nearest(key, known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("known here: {}", known.join(", ")),
                };
                at.problem("unknown key", fix);
            }
            is_known
        });
        visitor.visit_map(members)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::List(_) => self.deserialize_any(visitor),
            _ => Err(Wrong {
                what: format!("found {}, but a list belongs here", seen(self.found())),
                fix: "write [a, b], or one \"- \" line for each".into(),
            }),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if name == FIELD {
            return visitor.visit_seq(Once { reader: (!self.node.is_null()).then_some(self) });
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Scalar(Scalar::Text(word)) => visitor.visit_enum(Word(word)),
            _ => Err(Wrong {
                what: format!("found {}, but a word belongs here", seen(self.found())),
                fix: format!("write one of {}", known.join(", ")),
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct map identifier ignored_any
    }
}

/// A variant's name.
struct Word<'t>(&'t str);

impl<'t> EnumAccess<'t> for Word<'t> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'t>>(self, seed: S) -> Result<(S::Value, Self), Wrong> {
        let name: StrDeserializer<'_, Wrong> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'t> VariantAccess<'t> for Word<'t> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'t>>(self, _: S) -> Result<S::Value, Wrong> {
        Err(de::Error::custom(format!("{} needs a value", shown(self.0))))
    }

    fn tuple_variant<V: Visitor<'t>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(de::Error::custom(format!("{} needs a list", shown(self.0))))
    }

    fn struct_variant<V: Visitor<'t>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Wrong> {
        Err(de::Error::custom(format!("{} needs a map", shown(self.0))))
    }
}

/// The value of a field: none if it is null. This is where errors become problems.
struct Once<'t> {
    reader: Option<Reader<'t>>,
}

impl<'t> SeqAccess<'t> for Once<'t> {
    type Error = Wrong;

    fn next_element_seed<S: DeserializeSeed<'t>>(&mut self, seed: S) -> Result<Option<S::Value>, Wrong> {
        let Some(reader) = self.reader.take() else { return Ok(None) };
        let at = reader.at.clone();
        match seed.deserialize(reader) {
            Ok(value) => Ok(Some(value)),
            Err(wrong) => {
                at.problem(&wrong.what, &wrong.fix);
                Err(wrong)
            }
        }
    }
}

/// The elements of a list.
struct Elements<'t> {
    left: std::vec::IntoIter<At<'t>>,
}

impl<'t> SeqAccess<'t> for Elements<'t> {
    type Error = Wrong;

    fn next_element_seed<S: DeserializeSeed<'t>>(&mut self, seed: S) -> Result<Option<S::Value>, Wrong> {
        let Some((at, node)) = self.left.next().and_then(|at| at.node().map(|node| (at, node))) else {
            return Ok(None);
        };
        seed.deserialize(Reader { node, at }).map(Some)
    }
}

/// The entries of a map, each key once.
struct Members<'t> {
    /// In the order of the file.
    left: Vec<(&'t str, At<'t>)>,
    next: usize,
}

impl<'t> Members<'t> {
    fn new(at: &At<'t>) -> Self {
        let left = at.children().into_iter().filter_map(|at| Some((at.last_key()?, at))).collect();
        Self { left, next: 0 }
    }
}

impl<'t> MapAccess<'t> for Members<'t> {
    type Error = Wrong;

    fn next_key_seed<S: DeserializeSeed<'t>>(&mut self, seed: S) -> Result<Option<S::Value>, Wrong> {
        let Some((key, _)) = self.left.get(self.next) else { return Ok(None) };
        let key: StrDeserializer<'_, Wrong> = (*key).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'t>>(&mut self, seed: S) -> Result<S::Value, Wrong> {
        let at = self.left[self.next].1.clone();
        self.next += 1;
        let node = at.node().ok_or_else(|| de::Error::custom("no value"))?;
        seed.deserialize(Reader { node, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        let known = &["heartbeat", "hold_headers", "window"];
        assert_eq!(nearest("hartbeat", known), Some("heartbeat"));
        assert_eq!(nearest("Window", known), Some("window"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"w".repeat(1000), known), None);
    }

    #[test]
    fn the_distance_counts_single_edits() {
        for (a, b, far) in [("", "abc", 3), ("kitten", "sitting", 3), ("idle", "idle", 0), ("ab", "ba", 2)] {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
    }
}
