//! How quantities come out of the file, and what the schema says of them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Visitor};

use super::{Count, Duration, OrAuto, OrNever, Percent, Quantity, Rate, Size};
use crate::config::reader::FIX;

/// Reads a quantity, or the one word that may stand for it.
struct Reading<T> {
    word: Option<&'static str>,
    kind: PhantomData<T>,
}

impl<T> Reading<T> {
    fn or(word: Option<&'static str>) -> Self {
        Self { word, kind: PhantomData }
    }
}

impl<T: Quantity> Visitor<'_> for Reading<T> {
    /// `None` is the word.
    type Value = Option<T>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word {
            Some(word) => write!(to, "{} or {word}", T::KIND),
            None => to.write_str(T::KIND),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if self.word == Some(text) {
            return Ok(None);
        }
        let or_word = self.word.map(|word| format!(", or {word}")).unwrap_or_default();
        T::from_text(text)
            .map(Some)
            .map_err(|wrong| E::custom(format!("{}{FIX}{}{or_word}", wrong.what, wrong.fix)))
    }

    /// A value of the environment, where a number is written as a text can only be.
    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Self::Value, E> {
        match text.parse() {
            Ok(number) if text.bytes().all(|byte| byte.is_ascii_digit()) => self.visit_u64(number),
            _ => self.visit_str(&text),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Err(E::custom(format!("{number} has no unit{FIX}write for example {}", T::EXAMPLE)))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        T::from_number(number)
            .map(Some)
            .map_err(|wrong| E::custom(format!("{}{FIX}{}", wrong.what, wrong.fix)))
    }
}

/// Serde and schema for one kind of quantity.
macro_rules! quantity {
    ($($kind:ident),*) => {$(
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = deserializer.deserialize_any(Reading::<Self>::or(None))?;
                read.ok_or_else(|| serde::de::Error::custom("no word stands for it"))
            }
        }

        impl JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schema::<Self>(None)
            }
        }
    )*};
}

quantity!(Duration, Size, Rate, Percent, Count);

/// Serde and schema for a quantity or a word.
macro_rules! quantity_or {
    ($kind:ident, $variant:ident, $word:literal) => {
        impl<'de, T: Quantity> Deserialize<'de> for $kind<T> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = deserializer.deserialize_any(Reading::<T>::or(Some($word)))?;
                Ok(read.map_or(Self::$variant, Self::Set))
            }
        }

        impl<T: Quantity> JsonSchema for $kind<T> {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                format!("{} or {}", T::KIND, $word).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schema::<T>(Some($word))
            }
        }
    };
}

quantity_or!(OrNever, Never, "never");
quantity_or!(OrAuto, Auto, "auto");

fn schema<T: Quantity>(word: Option<&str>) -> Schema {
    let quantity = if T::from_number(1).is_ok() {
        schemars::json_schema!({ "type": "integer", "minimum": 0 })
    } else {
        schemars::json_schema!({ "type": "string", "pattern": T::PATTERN })
    };
    match word {
        None => quantity,
        Some(word) => schemars::json_schema!({ "anyOf": [{ "const": word }, quantity] }),
    }
}
