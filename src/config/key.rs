//! API keys and what is limited, as the rest of the gateway reads them.

use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::Store;
use super::units::Rate;
use crate::keys::Digest;
use crate::route::glob;

/// Longest name of anything in bytes: names become metric labels and fields of the log.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// Whether a text can be the name of a key, a route or a model.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control)
}

/// One API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Whose it is; in logs it stands for the key.
    pub name: Arc<str>,
    /// All that is known of the key itself.
    pub digest: Digest,
    /// Globs on the client's model names that it may use; `None` = any model.
    pub models: Option<Vec<String>>,
    /// Its limits.
    pub limits: KeyLimits,
}

impl Key {
    /// Its lane in the queues, the same in every configuration that has it.
    pub fn lane(&self) -> u64 {
        XxHash3_64::oneshot(self.name.as_bytes())
    }

    /// Whether it may use `model`. A request that names none may be for any that its engine has: only a key
    /// that may use all of them passes.
    pub fn may_use(&self, model: Option<&str>) -> bool {
        let Some(models) = &self.models else { return true };
        models.iter().any(|pattern| match model {
            Some(model) => glob(pattern, model),
            None => pattern == "*",
        })
    }
}

/// The limits of one key. `None` = no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// Requests.
    pub requests: Option<Rate>,
    /// Tokens, of prompts and of answers.
    pub tokens: Option<Rate>,
    /// Requests at once, at least 1.
    pub concurrent: Option<usize>,
    /// Streams given up before their first token.
    pub early_cancels: Option<Rate>,
    /// Connections at once, at least 1.
    pub connections: Option<usize>,
}

/// Limits that are no key's. `None` = no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one client address.
    pub per_ip_requests: Option<Rate>,
    /// Where requests and tokens of keys are counted.
    pub store: Store,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(models: Option<&[&str]>) -> Key {
        Key {
            name: "k".into(),
            digest: Digest::of(b"k"),
            models: models.map(|models| models.iter().map(ToString::to_string).collect()),
            limits: KeyLimits::default(),
        }
    }

    #[test]
    fn a_key_may_use_what_its_globs_match() {
        let some = key(Some(&["qwen*", "deepseek-chat"]));
        for (model, may) in [
            ("qwen3-32b", true),
            ("deepseek-chat", true),
            ("deepseek", false),
            ("gpt-4o", false),
            ("", false),
        ] {
            assert_eq!(some.may_use(Some(model)), may, "{model}");
        }
        assert!(key(None).may_use(Some("any")) && key(Some(&["*"])).may_use(Some("any")));
    }

    #[test]
    fn without_a_model_only_a_key_for_all_of_them_passes() {
        assert!(!key(Some(&["qwen*"])).may_use(None));
        assert!(key(Some(&["qwen*", "*"])).may_use(None) && key(None).may_use(None));
    }
}
