//! A setting as read: absent, wrong, or set.
//!
//! A [`Field`] swallows the error of its value after the reader has noted it, so that one wrong
//! setting does not hide the next. A plain `Option` could not tell *absent* from *wrong*, and a
//! wrong one would be told twice, the second time as "missing".

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// The name under which a field asks the reader to note its errors.
pub(in crate::config) const FIELD: &str = "streamgate field";

/// A setting that may be absent, and whose error stays its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Field<T> {
    /// Not written, or null.
    #[default]
    Absent,
    /// Written, but not as it can be read; the problem is noted.
    Wrong,
    /// As written.
    Set(T),
}

impl<T> Field<T> {
    /// The value, if it could be read.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// Whether nothing is written.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T: Default + Clone> Field<T> {
    /// The value, or the empty one.
    pub fn or_empty(&self) -> T {
        self.get().cloned().unwrap_or_default()
    }
}

/// A list of settings, each with an error of its own.
pub type List<T> = Field<Vec<Field<T>>>;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneValue<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneValue<T> {
            type Value = Field<T>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a setting")
            }

            /// The reader hands over the value as a list of at most one element, and has noted the error if
            /// it gives one.
            fn visit_seq<A: SeqAccess<'de>>(self, mut one: A) -> Result<Self::Value, A::Error> {
                Ok(match one.next_element() {
                    Ok(Some(value)) => Field::Set(value),
                    Ok(None) => Field::Absent,
                    Err(_) => Field::Wrong,
                })
            }
        }

        deserializer.deserialize_newtype_struct(FIELD, OneValue(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Option::<T>::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// A map with names of the user's choice, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entries<T>(pub Vec<(String, Field<T>)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Entries<T>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("MapOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        std::collections::BTreeMap::<String, T>::json_schema(generator)
    }
}

/// One text, or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub enum OneOrMany {
    /// Written without brackets.
    One(String),
    /// Written as a list.
    Many(Vec<Field<String>>),
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = OneOrMany;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a text or a list of texts")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMany, A::Error> {
                let mut many = Vec::new();
                while let Some(one) = seq.next_element()? {
                    many.push(one);
                }
                if many.is_empty() {
                    Err(A::Error::custom("the list is empty"))
                } else {
                    Ok(OneOrMany::Many(many))
                }
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for OneOrMany {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }]
        })
    }
}
