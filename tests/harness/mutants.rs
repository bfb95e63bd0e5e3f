//! Each seeded bug of `tests/mutants` still applies, and names rows that there are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::not_run;

fn patches() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants");
    let mut patches: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the seeded bugs")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    patches.sort();
    patches
}

#[test]
fn each_seeded_bug_names_its_rows() {
    let rows = include_str!("../chaos.rows");
    assert!(patches().len() >= 20);
    for patch in patches() {
        let text = std::fs::read_to_string(&patch).expect("a patch");
        let told = text.lines().next().and_then(|line| line.strip_prefix("rows: "));
        let (named, what) = told.and_then(|told| told.split_once(". ")).expect("rows, and what it is");
        assert!(!what.is_empty() && !named.is_empty(), "{}", patch.display());
        for row in named.split(' ') {
            let exists = rows.lines().any(|line| line.split_whitespace().next() == Some(row));
            assert!(exists, "{}: no row {row}", patch.display());
        }
    }
}

#[test]
fn each_seeded_bug_still_applies() {
    let root = env!("CARGO_MANIFEST_DIR");
    let is_tree = Command::new("git").args(["-C", root, "rev-parse", "--is-inside-work-tree"]).output();
    if !is_tree.is_ok_and(|told| told.status.success()) {
        return not_run("each_seeded_bug_still_applies", "no git, or no tree of git's");
    }
    for patch in patches() {
        let told = Command::new("git").args(["-C", root, "apply", "--check"]).arg(&patch).output();
        let told = told.expect("git runs");
        let why = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(told.status.success(), "{}: {why}", patch.display());
    }
}
