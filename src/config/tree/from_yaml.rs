//! How the tree grows out of the parser's stream.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{Entry, Map, Node, Scalar, Value};

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        let place = spanned.referenced;
        Ok(Self { value: spanned.value, line: place.line(), column: place.column() })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// Entries of a map up to which its keys are looked through one by one: a file may have 100,000 small maps.
const FEW: usize = 16;

/// Whether a key stands among these. `seen` knows the keys of a map that is not small.
fn is_known(entries: &[Entry], seen: &mut HashSet<String>, key: &str) -> bool {
    if entries.len() < FEW {
        return entries.iter().any(|entry| entry.key == key);
    }
    if seen.is_empty() {
        seen.extend(entries.iter().map(|entry| entry.key.clone()));
    }
    !seen.insert(key.to_owned())
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Null))
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Int(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Int(value.into())))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Int(value)))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        let value = i128::try_from(value).map_err(|_| E::custom("a number beyond all bounds"))?;
        Ok(Value::Scalar(Scalar::Int(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Scalar(Scalar::Text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = seq.next_element()? {
            list.push(node);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut read = Map::default();
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<Spanned<Value>>()? {
            let place = key.referenced;
            let key = match key.value {
                Value::Scalar(Scalar::Text(key)) => key,
                Value::Scalar(Scalar::Int(key)) => key.to_string(),
                Value::Scalar(Scalar::Bool(key)) => key.to_string(),
                Value::Scalar(Scalar::Float(key)) => key.to_string(),
                _ => {
                    let line = place.line();
                    return Err(A::Error::custom(format!(
                        "line {line}: a key is a word, not a list, a map or nothing"
                    )));
                }
            };
            let target = if is_known(&read.entries, &mut seen, &key) {
                &mut read.duplicates
            } else {
                &mut read.entries
            };
            target.push(Entry { key, line: place.line(), column: place.column(), value: map.next_value()? });
        }
        Ok(Value::Map(read))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_in_small_maps_and_in_large_ones() {
        for size in [2, FEW - 1, FEW, FEW + 1, 5 * FEW] {
            for first in [0, 1, size - 1] {
                let keys = (0..size).chain([first, first]);
                let text: String = keys.map(|key| format!("k{key}: {key}\n")).collect();
                let Value::Map(map) = parse(&text).unwrap().value else { panic!("a map") };
                assert_eq!(map.entries.len(), size, "{text}");
                let again: Vec<_> = map.duplicates.iter().map(|entry| (&*entry.key, entry.line)).collect();
                let (key, lines) = (format!("k{first}"), [size as u64 + 1, size as u64 + 2]);
                assert_eq!(again, lines.map(|line| (&*key, line)), "{text}");
            }
        }
    }
}
