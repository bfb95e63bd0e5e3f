//! A word that names a variant, as serde wants it: an enum whose variants hold nothing.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, EnumAccess, IntoDeserializer, VariantAccess, Visitor};

use super::wrong::Wrong;
use crate::config::place::shown;

/// A variant's name.
pub(super) struct Word<'t>(pub(super) &'t str);

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
