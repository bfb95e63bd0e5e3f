//! API keys of the cases: what the file says of them, and requests that present them.

use serde_json::{Value, json};

use super::settings::Settings;
use super::wire::Request;

/// SHA-256 in hex, by another implementation than the gateway's.
pub(crate) fn digest(key: &str) -> String {
    openssl::sha::sha256(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the file says of a key that may use every model.
pub(crate) fn key(name: &str, key: &str) -> Value {
    json!({ "name": name, "sha256": digest(key) })
}

impl Settings {
    /// Lets these keys in and no others, by name and key.
    pub(crate) fn keys(self, keys: &[(&str, &str)]) -> Self {
        let keys: Vec<Value> = keys.iter().map(|(name, text)| key(name, text)).collect();
        self.set("keys", keys)
    }
}

impl Request {
    /// Presents this key and no other.
    pub(crate) fn with_key(self, key: &str) -> Self {
        self.without_key().header(&format!("Authorization: Bearer {key}"))
    }

    /// Presents none.
    pub(crate) fn without_key(self) -> Self {
        self.without("authorization").without("x-api-key")
    }
}
