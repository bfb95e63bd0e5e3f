//! What comes with the binary: each file is held against the others, against the configuration and against what the
//! binary does. Where the tools of a format are there (systemd, kubectl) they have their say as well.

#![allow(clippy::unwrap_used, reason = "a test whose files are not as they must be has failed")]

#[path = "../config/machine.rs"]
mod machine;
#[path = "../support/mod.rs"]
mod support;

mod compose;
mod debian;
mod image;
mod kubernetes;
mod monitoring;

use std::path::{Path, PathBuf};

use serde_json::Value;
use streamgate::config::{self, Config};

/// A file of the repository.
fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(shipped(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A configuration that a gateway starts on. Its token is one of the test's machine.
fn sound(text: &str) -> Config {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("streamgate.yaml");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if let Some((before, _)) = line.split_once("token_file:") {
            *line = format!("{before}token_file: /run/token");
        }
    }
    std::fs::write(&file, lines.join("\n")).unwrap();
    config::load(&file, &machine::ENVIRONMENT).unwrap_or_else(|error| panic!("{error}")).config
}

/// The longest that a gateway may take to end.
fn end_of(config: &Config) -> std::time::Duration {
    config.server.shutdown.lame_duck + config.server.shutdown.drain
}
