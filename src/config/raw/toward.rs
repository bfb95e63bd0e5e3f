//! What the backends of a cluster are sent beside the request, and over what: headers, credentials, TLS.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize as DeserializeTrait, Deserializer, MapAccess, Visitor};

use super::{Entries, Field, List};

/// Headers of the request to the backend.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Headers {
    /// Headers that are set, over what the client sent: name and value. Default `{}`.
    pub set: Field<Entries<Hidden>>,
    /// Names of headers that are taken out of what the client sent. Default `[]`.
    pub remove: List<String>,
}

/// A text that may be a secret.
// `Debug` does not show it.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("(hidden)")
    }
}

impl AsRef<str> for Hidden {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// TLS toward the backends.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterTls {
    /// Check the certificates of the backends. Default `true`.
    pub verify: Field<bool>,
    /// Authorities to trust instead of the system's: a file of certificates in PEM form, read again at each reload.
    /// Default: those that the system trusts.
    pub ca: Field<String>,
    /// Server name to ask for and to check. Default: the URL's host.
    pub sni: Field<String>,
}

/// A salt for the engine's prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheSalt {
    /// No salt.
    None,
    /// One for each API key.
    Key,
}

/// Credentials toward the backends.
#[derive(Debug)]
pub enum Auth {
    /// `pass` or `none`.
    Word(String),
    /// From elsewhere.
    Source(AuthSource),
}

/// Where a credential comes from: `{ bearer_env: NAME }`, `{ bearer_file: PATH }`,
/// `{ header: x-api-key, env: NAME }` or `{ header: x-api-key, file: PATH }`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSource {
    /// Environment variable with a bearer token. Default: none.
    pub bearer_env: Field<String>,
    /// File with a bearer token. Default: none.
    pub bearer_file: Field<String>,
    /// Header to set instead of Authorization, together with env or file. Default: none.
    pub header: Field<String>,
    /// Environment variable with that header's value. Default: none.
    pub env: Field<String>,
    /// File with that header's value. Default: none.
    pub file: Field<String>,
}

impl<'de> DeserializeTrait<'de> for Auth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrSource;

        impl<'de> Visitor<'de> for WordOrSource {
            type Value = Auth;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("pass, none or a map")
            }

            fn visit_str<E>(self, word: &str) -> Result<Auth, E> {
                Ok(Auth::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Auth, A::Error> {
                AuthSource::deserialize(MapAccessDeserializer::new(map)).map(Auth::Source)
            }
        }

        deserializer.deserialize_any(WordOrSource)
    }
}

impl JsonSchema for Auth {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Auth".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let source = generator.subschema_for::<AuthSource>();
        schemars::json_schema!({ "anyOf": [{ "enum": ["pass", "none"] }, source] })
    }
}
