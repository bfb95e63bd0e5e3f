//! Names in the pages that a newcomer starts with exist: settings, metrics, fields of the log, codes.
//!
//! A name is known if the schema has it, or if the pages that other tests hold against the binary list it.

use std::collections::BTreeSet;

use super::settings::{Kind, groups};
use super::text::{names, read};

const PAGES: [&str; 6] = [
    "docs/troubleshooting.md",
    "docs/troubleshooting.zh.md",
    "docs/quickstart-vllm.md",
    "docs/quickstart-deepseek.md",
    "docs/quickstart-both.md",
    "README.md",
];

/// Where names stand that are not settings.
const LISTS: [&str; 8] = [
    "docs/operations.md",
    "docs/access-log.md",
    "docs/dialects.md",
    "docs/reload.md",
    "docs/health.md",
    "docs/limits.md",
    "docs/edge.md",
    "docs/from-nginx.md",
];

/// Paths of settings, whole and without their beginnings: `clusters.*.health.active`, `health.active`, `active`.
fn settings() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for group in groups() {
        for setting in group.settings {
            if let Kind::Words(words) = &setting.kind {
                known.extend(words.iter().map(|(word, _)| word.clone()));
            }
            let mut rest = &*setting.path;
            known.insert(rest.to_owned());
            while let Some((_, behind)) = rest.split_once('.') {
                known.insert(behind.to_owned());
                rest = behind;
            }
        }
    }
    known
}

/// What begins what stands in backticks in the lists; metrics also with the prefix of all.
fn listed() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for page in LISTS {
        for name in names(&read(page)) {
            let name = name.split([' ', '{']).next().unwrap_or_default();
            known.insert(format!("streamgate_{name}"));
            known.insert(name.to_owned());
        }
    }
    known
}

/// A word of small letters with `_` or `.` in it: a name, and no command, path, header or number.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || "_.*[]".contains(c);
    text.chars().all(is_part)
        && text.contains(['_', '.'])
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && ![".yaml", ".md", ".log"].iter().any(|end| text.ends_with(end))
}

#[test]
fn names_in_the_first_pages_exist() {
    let known: BTreeSet<String> = settings().into_iter().chain(listed()).collect();
    let (mut held, mut unknown) = (0, Vec::new());
    for page in PAGES {
        // An engine's metrics are its own.
        for name in names(&read(page)).iter().filter(|name| !name.starts_with("vllm:")) {
            // `outcome=timeout` and `stream.heartbeat: 15s` name a field and its value.
            let (name, value) = name.split_once(['=', ':']).unwrap_or((name, ""));
            // A metric with its labels.
            let name = name.split('{').next().unwrap_or(name);
            for name in [name, value.trim()].into_iter().filter(|name| is_name(name)) {
                held += 1;
                if !known.contains(name) {
                    unknown.push(format!("{page}: {name}"));
                }
            }
        }
    }
    assert!(held > 80, "only {held} names were held");
    assert!(unknown.is_empty(), "{unknown:#?}");
}
