//! The `keys` and `limits` parts.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use super::names::{self, Unique};
use super::{fleet, store, value};
use crate::config::environment::Environment;
use crate::config::place::At;
use crate::config::raw::{self, Field, List};
use crate::config::units::{Count, OrNever, Rate};
use crate::config::{Key, KeyLimits, Limits};
use crate::keys::Digest;

const DIGEST: &str = "write the quoted SHA-256 of the whole key, as `streamgate key new` prints it";

/// Keys that whoever tries keys tries first.
const WORDS: [&[u8]; 8] =
    [b"test", b"key", b"secret", b"password", b"admin", b"changeme", b"sk-1234", b"EMPTY"];
/// Their digests: a file may have 100,000 keys to be held against them.
static GUESSES: LazyLock<HashSet<Digest>> =
    LazyLock::new(|| WORDS.iter().map(|word| Digest::of(word)).collect());
/// The digest of no key at all.
static NOTHING: LazyLock<Digest> = LazyLock::new(|| Digest::of(b""));

/// Whether the file has keys, be they right or wrong.
pub(super) fn any(file: &raw::File) -> bool {
    !file.keys.is_absent() && file.keys.get().is_none_or(|keys| !keys.is_empty())
}

/// Every key in the order of the file.
pub(super) fn keys(file: &raw::File, at: &At<'_>) -> Vec<Arc<Key>> {
    let Some(list) = file.keys.get() else { return Vec::new() };
    let mut unique = Unique::new("key");
    let mut digests = HashMap::with_capacity(list.len());
    let places = at.children();
    let readable =
        list.iter().zip(&places).enumerate().filter_map(|(i, (raw, at))| Some((i, raw.get()?, at)));
    readable.filter_map(|(i, raw, at)| key(raw, at, i, &mut unique, &mut digests)).map(Arc::new).collect()
}

fn key<'t>(
    raw: &raw::Key,
    at: &At<'t>,
    index: usize,
    unique: &mut Unique<'t>,
    digests: &mut HashMap<Digest, usize>,
) -> Option<Key> {
    let name = value::required(&raw.name, "name", at, "write name: team-a; logs call the key by it");
    if let Some(name) = name {
        names::text(name, &at.key("name"));
        unique.check(name, &at.key("name"), "give each its own name");
    }
    let digest = digest(raw, at);
    if let Some(first) = digest.and_then(|digest| digests.insert(digest, index)) {
        at.key("sha256")
            .problem(format!("the digest of a key already: keys[{first}]"), "make each a key of its own");
    }
    let models = models(&raw.models, &at.key("models"));
    let limits = limits_of(raw.limits.get(), &at.key("limits"));
    Some(Key { name: Arc::from(name?.as_str()), digest: digest?, models, limits })
}

/// What is written is never repeated: it may be the key itself.
fn digest(raw: &raw::Key, at: &At<'_>) -> Option<Digest> {
    let text = value::required(&raw.sha256, "sha256", at, DIGEST)?;
    let at = at.key("sha256");
    let digest =
        Digest::from_hex(text).map_err(|bad| at.problem_as_is(format!("no digest: {bad}"), DIGEST)).ok()?;
    if digest == *NOTHING {
        at.problem("the digest of nothing at all: no key can have it", DIGEST);
    }
    if GUESSES.contains(&digest) {
        at.warning("the digest of a word that everybody tries", "make a key with `streamgate key new`");
    }
    Some(digest)
}

/// `None` = any model.
fn models(list: &List<String>, at: &At<'_>) -> Option<Vec<String>> {
    let list = list.get()?;
    if list.is_empty() {
        at.problem("lets the key use no model", "leave it out for every model, or take the key away");
    }
    let readable = list.iter().enumerate().filter_map(|(i, pattern)| Some((at.index(i), pattern.get()?)));
    Some(
        readable
            .map(|(at, pattern)| {
                names::glob(pattern, &at);
                pattern.clone()
            })
            .collect(),
    )
}

fn limits_of(raw: Option<&raw::KeyLimits>, at: &At<'_>) -> KeyLimits {
    let Some(raw) = raw else { return KeyLimits::default() };
    KeyLimits {
        requests: rate(&raw.requests),
        tokens: rate(&raw.tokens),
        concurrent: count(&raw.concurrent, &at.key("concurrent")),
        early_cancels: rate(&raw.early_cancels),
        connections: count(&raw.connections, &at.key("connections")),
    }
}

/// Limits that are no key's.
pub(super) fn limits(raw: Option<&raw::Limits>, at: &At<'_>, environment: &Environment) -> Limits {
    let store = raw.map(|raw| store::store(raw, at, environment)).unwrap_or_default();
    let per_ip = raw.and_then(|raw| raw.per_ip.get());
    Limits { per_ip_requests: per_ip.and_then(|per_ip| rate(&per_ip.requests)), store }
}

fn rate(field: &Field<OrNever<Rate>>) -> Option<Rate> {
    match field.get()? {
        OrNever::Never => None,
        OrNever::Set(rate) => Some(*rate),
    }
}

fn count(field: &Field<OrNever<Count>>, at: &At<'_>) -> Option<usize> {
    match field.get()? {
        OrNever::Never => None,
        OrNever::Set(count) => usize::try_from(value::within(count.0, at, 1..=fleet::COUNT_MAX)).ok(),
    }
}
