//! From the located tree to the `raw` types, noting every problem on the way.
//!
//! A serde `Deserializer` over [`Node`]s. Serde gives up at the first error; here each
//! [`Field`](super::raw::Field) is a bulkhead: its error is noted where it happened and reading goes
//! on beside it. Unknown keys are noted and skipped, with the nearest known one as advice.

mod word;
mod wrong;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::place::{At, shown};
use super::raw::FIELD;
use super::tree::{Given, Node, Scalar, Value};
use word::Word;
pub(super) use wrong::FIX;
use wrong::{Wrong, nearest, seen, wanted};

/// Reads the tree as `T`. What is wrong goes to the report behind `at`.
pub(super) fn read<'t, T: de::Deserialize<'t> + Default>(at: &At<'t>) -> T {
    let Some(node) = at.node() else { return T::default() };
    T::deserialize(Reader { node, at: at.clone() }).unwrap_or_else(|wrong| {
        note(at, wrong);
        T::default()
    })
}

fn note(at: &At<'_>, wrong: Wrong) {
    match wrong.of_value {
        true => at.problem_as_is(wrong.what, wrong.fix),
        false => at.problem(wrong.what, wrong.fix),
    }
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
            Value::Scalar(Scalar::Given(given)) => Unexpected::Str(&given.written),
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
            Value::Scalar(Scalar::Given(given)) => {
                let kind = wanted(&(&visitor as &dyn Expected).to_string());
                visitor.visit_string(value(given)?).map_err(|_: Wrong| unfit(given, &kind))
            }
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
            return Err(Wrong { what, fix, of_value: false });
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
                of_value: false,
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
            Value::Scalar(Scalar::Given(given)) => {
                let word = value(given)?;
                match known.iter().find(|known| **known == word) {
                    Some(word) => visitor.visit_enum(Word(word)),
                    None => Err(unfit(given, &format!("one of {}", known.join(", ")))),
                }
            }
            _ => Err(Wrong {
                what: format!("found {}, but a word belongs here", seen(self.found())),
                fix: format!("write one of {}", known.join(", ")),
                of_value: false,
            }),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Some(given) = self.node.given() else { return self.deserialize_any(visitor) };
        match value(given)?.parse() {
            Ok(value) => visitor.visit_bool(value),
            Err(_) => Err(unfit(given, "true or false")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Some(given) = self.node.given() else { return self.deserialize_any(visitor) };
        match value(given)?.parse() {
            Ok(value) => visitor.visit_f64(value),
            Err(_) => Err(unfit(given, "a number")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct map identifier ignored_any
    }
}

/// What an expanded text came to. Why it came to nothing has been told already, at the same place.
fn value(given: &Given) -> Result<String, Wrong> {
    given.text.clone().map_err(|(what, fix)| Wrong { what, fix: fix.into(), of_value: true })
}

/// Says what a value should be, and not what it is.
fn unfit(given: &Given, kind: &str) -> Wrong {
    let what = format!("{}: its value is not {kind}", shown(&given.written));
    Wrong { what, fix: String::new(), of_value: true }
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
                note(&at, wrong.clone());
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
