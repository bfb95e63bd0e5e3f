//! The defaults that the schema tells are those that hold.
//!
//! A file is read twice: once without the setting, once with its default written out. Nothing may differ. And
//! with something else written, something must, or the comparison would not see the setting at all.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use streamgate::config::{Config, Environment};

use super::settings::{Default, groups};

/// A file that has every group that needs more than itself.
fn whole() -> Value {
    json!({
        "server": {
            "listen": [
                { "address": "unix:/run/http.sock" },
                { "address": "127.0.0.1:8443", "tls": { "certificates": [{ "cert": "a.crt", "key": "a.key" }] } },
            ],
            "trusted_proxies": ["10.0.0.0/8"],
        },
        "clusters": { "c": {
            "profile": "vllm",
            "backends": [{ "name": "b", "url": "https://10.0.0.1" }],
            "discover": { "dns": "engines:8000" },
        }, "x": { "backends": [{ "name": "b", "url": "http://10.0.0.2" }] } },
        "routes": [
            { "match": { "path": "/x" }, "cluster": "c" },
            { "match": { "path": "/y" }, "respond": {} },
        ],
        "log": { "usage": "./usage.log" },
        "sim": [{ "listen": "127.0.0.1:9101" }],
    })
}

/// One of these is something else than a default, and as the setting takes it.
const OTHERS: &[&str] = &[
    "7s",
    "11m",
    "20KiB",
    "33MiB",
    "3GiB",
    "77B",
    "1",
    "2",
    "33",
    "400",
    "true",
    "false",
    "7/min",
    "33%",
    "debug",
    "json",
    "./file",
    "finish",
    "reject",
    "required",
    "random",
    "deepseek",
    "none",
    "[session]",
    "[x]",
    "\"0600\"",
    "[\"10.1.0.0/16\"]",
    "127.0.0.1:9191",
    "[\"header:x\"]",
    "[\"https://a.example\"]",
    "redis://store:6379",
    "/other",
    "{x-a: b}",
    "[reset_at=5]",
    "abort",
    "word",
];

/// Settings that take nothing else in the file above: of these only the default is held.
const ONLY_DEFAULT: &[&str] = &["clusters.*.cache_salt", "clusters.*.continue"];

/// The place of a setting in the file above, made where it is not there.
fn place<'v>(file: &'v mut Value, path: &str) -> &'v mut Value {
    let mut at = file;
    for step in path.split('.') {
        at = match step {
            "*" => &mut at["c"],
            list if list.ends_with("[]") => {
                let list = list.trim_end_matches("[]");
                let is_second = match list {
                    "listen" => path.contains("tls"),
                    "routes" => path.contains("respond"),
                    _ => false,
                };
                &mut at[list][usize::from(is_second)]
            }
            name => &mut at[name],
        };
    }
    at
}

/// The file with a setting as it is written here, or without it.
fn with(path: &str, value: Option<&str>) -> Result<Config, String> {
    let mut file = whole();
    if path.starts_with("keys[]") {
        file["keys"] = json!([{ "name": "k", "sha256": "88b0aa8cd0a9f9b6e1bdcf3d1ec4a0c21fd1dd4b7d6a6f8d7c1f0a51bb36ab01" }]);
    }
    let mark = json!("THE VALUE");
    *place(&mut file, path) = if value.is_some() { mark.clone() } else { Value::Null };
    let text = file.to_string().replace(&mark.to_string(), value.unwrap_or_default());
    let loaded = Config::parse(&text, &Environment::bare(4, 8 << 30));
    loaded.map(|loaded| loaded.config).map_err(|problems| problems.to_string())
}

#[test]
fn a_default_that_is_written_out_changes_nothing() {
    let (mut held, mut unseen) = (0, Vec::new());
    for setting in groups().into_iter().flat_map(|group| group.settings) {
        let Default::Written { value, .. } = &setting.about.default else { continue };
        let path = &*setting.path;
        let absent = with(path, None).unwrap_or_else(|problems| panic!("{path}: {problems}"));
        let written = with(path, Some(value)).unwrap_or_else(|problems| panic!("{path}: {problems}"));
        assert!(absent == written, "{path} is said to be {value} by default, and is not");
        let differs = |other: &&str| with(path, Some(other)).is_ok_and(|config| config != absent);
        if !OTHERS.iter().any(differs) {
            unseen.push(path.to_owned());
        }
        held += 1;
    }
    assert!(held > 90, "only {held} defaults were held");
    assert_eq!(unseen, ONLY_DEFAULT, "nothing else than the default could be written");
}

#[test]
fn what_is_said_to_be_required_is() {
    let mut held = BTreeSet::new();
    for setting in groups().into_iter().flat_map(|group| group.settings) {
        if let Default::Required(words) = &setting.about.default
            && !words.contains("unless")
        {
            let refused = with(&setting.path, None).is_err();
            assert!(refused, "{} is said to be required, and is not", setting.path);
            held.insert(setting.path);
        }
    }
    assert!(held.len() > 8, "only {held:?} were held");
}
