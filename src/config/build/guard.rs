//! The `guard` of a route.

use std::ops::RangeInclusive;

use super::cluster::Resolved;
use super::value;
use crate::config::Profile;
use crate::config::place::{At, shown};
use crate::config::raw::{self, Field};
use crate::config::units::Count;
use crate::guard::{DENIED_MAX, Field as Denied, Guard, Limits, SALT_FIELD};
use crate::openai::{Pointer, Wanted};

/// Bounds of a limit that must leave something, and of one that may leave nothing.
const SOME: RangeInclusive<u64> = 1..=u32::MAX as u64;
const ANY: RangeInclusive<u64> = 0..=u32::MAX as u64;

/// Longest name of a denied field, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Whether a cluster salts its prompts by key.
pub(super) fn salts(raw: &raw::Cluster, at: &At<'_>, profile: Profile, has_keys: bool) -> bool {
    let salts = raw.cache_salt.get() == Some(&raw::CacheSalt::Key);
    if salts && profile != Profile::Vllm {
        at.problem("only vLLM knows salts", "leave it out, or write profile: vllm");
    } else if salts && !has_keys {
        at.problem("a salt for each key, and the file has no keys", "leave it out, or add keys");
    }
    salts
}

/// Looks for salts that clients bring, where a cluster salts.
pub(super) fn want_salts(clusters: &[Resolved], wanted: &mut Wanted) {
    if clusters.iter().any(|resolved| resolved.cluster.salts) {
        wanted.salt = Pointer::parse(&format!("/{SALT_FIELD}")).map(|pointer| wanted.pointers.add(pointer));
    }
}

/// The guard of a route, where one is written that limits anything.
pub(super) fn guard(raw: &raw::Route, at: &At<'_>, wanted: &mut Wanted) -> Option<Guard> {
    let (raw, respond) = (raw.guard.get()?, raw.respond.get());
    let at = at.key("guard");
    let limit = |field: &Field<Count>, key: &'static str, bounds: RangeInclusive<u64>| {
        field.get().map(|count| value::within(count.0, &at.key(key), bounds))
    };
    let limits = Limits {
        max_tokens: limit(&raw.max_tokens, "max_tokens", SOME),
        n: limit(&raw.n, "n", SOME),
        best_of: limit(&raw.best_of, "best_of", SOME),
        prompts: limit(&raw.prompts, "prompts", SOME),
        logprobs: limit(&raw.logprobs, "logprobs", ANY),
        tools: limit(&raw.tools, "tools", ANY),
        schema_depth: limit(&raw.schema_depth, "schema_depth", SOME),
    };
    let guard = Guard::new(&limits, &denied(raw, &at.key("denied")), wanted);
    if guard.is_some() && respond.is_some() {
        at.problem("a fixed answer reads no body", "leave it out");
    }
    guard
}

fn denied(raw: &raw::Guard, at: &At<'_>) -> Vec<Denied> {
    let Some(list) = raw.denied.get() else { return Vec::new() };
    if list.len() > DENIED_MAX {
        at.problem(format!("{} fields", list.len()), format!("at most {DENIED_MAX} are looked for"));
        return Vec::new();
    }
    let mut fields = Vec::new();
    for (text, at) in list.iter().enumerate().filter_map(|(i, text)| Some((text.get()?, at.index(i)))) {
        match field(text) {
            Ok(field) if fields.contains(&field) => {
                at.problem(format!("{} stands before already", shown(text)), "name each field once");
            }
            Ok(field) => fields.push(field),
            Err((what, fix)) => at.problem(format!("{} {what}", shown(text)), fix),
        }
    }
    fields
}

/// A name, or a pointer if it begins with a slash.
fn field(text: &str) -> Result<Denied, (&'static str, &'static str)> {
    if text.starts_with('/') {
        let pointer = Pointer::parse(text).ok_or((
            "is no JSON pointer",
            "write \"~1\" for \"/\" and \"~0\" for \"~\", in at most 16 names and 256 bytes",
        ))?;
        return Ok(Denied::Pointer(text.to_owned(), pointer));
    }
    let is_name = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
    if is_name {
        Ok(Denied::Name(text.to_owned()))
    } else {
        Err((
            "names no field",
            "write a name, as in chat_template, or a JSON pointer, as in /metadata/internal",
        ))
    }
}
