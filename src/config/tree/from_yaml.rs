//! How the tree grows out of any text, by serde's way: slower than `straight`, and it knows every error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::{Entries, Entry, Node, Scalar, Value};

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
        let mut entries = Entries::default();
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
            entries.push(Entry { key, line: place.line(), column: place.column(), value: map.next_value()? });
        }
        Ok(Value::Map(entries.map))
    }
}
