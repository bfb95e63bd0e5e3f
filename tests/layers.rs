//! The layers of the house: the core imports nothing from the shell.

#![allow(clippy::unwrap_used, reason = "a test that cannot read the sources has failed")]

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that are pure: no Pingora, no tokio, no clock, no log, no files.
const CORE: [&str; 26] = [
    "admission",
    "cluster",
    "cors",
    "deadline",
    "failure",
    "forwarded",
    "guard",
    "header_rules",
    "hooks",
    "keys",
    "ledger",
    "live",
    "openai",
    "outcome",
    "recent",
    "rejection",
    "request_id",
    "retry",
    "route",
    "secret",
    "session_map",
    "snapshot",
    "spread",
    "sse",
    "told",
    "usage",
];

/// All the others: the shell, and the configuration, which reads a file.
const SHELL: [&str; 30] = [
    "access_log",
    "admin",
    "bench",
    "cli",
    "config",
    "discovery",
    "drain",
    "edge",
    "embed",
    "handover",
    "lib",
    "log_file",
    "main",
    "memory",
    "metrics",
    "outlet",
    "prober",
    "proxy",
    "reload",
    "reset",
    "server",
    "signals",
    "sim",
    "store",
    "supervisor",
    "tls",
    "top",
    "trace",
    "upstream",
    "usage_log",
];

/// What the core may not name, beside the shell. Of `config` it may name the types.
const FORBIDDEN: [&str; 7] =
    ["pingora", "tokio", "log::", "Instant::now", "SystemTime::now", "std::fs", "std::env"];

fn files(under: &Path) -> Vec<PathBuf> {
    if under.is_file() {
        return vec![under.to_owned()];
    }
    let entries = fs::read_dir(under).unwrap().map(|entry| entry.unwrap().path());
    entries
        // Tests of a module in files of their own are no part of it.
        .filter(|path| path.file_stem().is_none_or(|name| name != "tests"))
        .flat_map(|path| files(&path))
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .collect()
}

fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths
}

/// The source before its tests, without comments.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).unwrap();
    let body = text.split("#[cfg(test)]").next().unwrap_or("").to_owned();
    let lines = body
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.split("//").next().unwrap_or("").to_owned()));
    lines.collect()
}

#[test]
fn the_core_imports_nothing_from_the_shell() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let shell = SHELL.iter().filter(|module| **module != "config").map(|module| format!("crate::{module}"));
    let forbidden: Vec<String> = FORBIDDEN.iter().map(ToString::to_string).chain(shell).collect();
    let mut read = 0;
    let mut found = Vec::new();
    for module in CORE {
        let single = src.join(format!("{module}.rs"));
        let root = if single.is_file() { single } else { src.join(module) };
        for path in files(&root) {
            read += 1;
            for (number, line) in code(&path) {
                if let Some(word) = forbidden.iter().find(|word| line.contains(&**word)) {
                    found.push(format!("{}:{number}: {word}", path.display()));
                }
            }
        }
    }
    assert!(read >= CORE.len(), "only {read} files were read");
    assert!(found.is_empty(), "the core reaches up:\n{}", found.join("\n"));
}

#[test]
fn every_module_is_of_the_core_or_of_the_shell() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = fs::read_dir(src).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    });
    let mut found: Vec<String> = names.collect();
    let mut placed: Vec<String> = CORE.iter().chain(&SHELL).map(ToString::to_string).collect();
    found.sort();
    placed.sort();
    assert_eq!(found, placed);
}

#[test]
fn only_the_proxy_implements_proxy_http() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let owners: Vec<PathBuf> = files(&src)
        .into_iter()
        .filter(|path| fs::read_to_string(path).unwrap().contains("impl ProxyHttp for"))
        .collect();
    // The second is the first with a shelter around each phase.
    assert_eq!(sorted(owners), ["mod.rs", "shelter.rs"].map(|file| src.join("proxy").join(file)));
}

#[test]
fn status_codes_of_rejections_live_in_one_place() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let owners: Vec<PathBuf> =
        files(&src).into_iter().filter(|path| fs::read_to_string(path).unwrap().contains("=> 504")).collect();
    assert_eq!(owners, [src.join("rejection/words.rs")]);
}
