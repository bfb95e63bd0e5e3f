//! `docker/Dockerfile`, without an engine to build it: its COPY steps are replayed into an empty folder, which must hold
//! all that the build reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{read, shipped, sound};

/// The instructions of a stage, with lines that go on put together. The stages are 0, the build, and 1, the image.
fn instructions(stage: usize) -> Vec<String> {
    let text = read("docker/Dockerfile").replace("\\\n", " ");
    let stages: Vec<&str> = text.split("\nFROM ").skip(1).collect();
    assert_eq!(stages.len(), 2);
    let lines = stages[stage].lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// What is copied from the repository: each source with its target.
fn copies(stage: usize) -> Vec<(PathBuf, String)> {
    let mut copies = Vec::new();
    for instruction in instructions(stage) {
        let Some(rest) = instruction.strip_prefix("COPY ") else { continue };
        let mut words: Vec<&str> = rest.split_whitespace().collect();
        if words[0].starts_with("--from=") {
            continue;
        }
        let target = words.pop().expect("a target");
        for source in words {
            let into = target.ends_with('/').then(|| Path::new(source).file_name().unwrap());
            let target = into.map_or_else(|| target.into(), |name| Path::new(target).join(name));
            copies.push((source.into(), target.to_str().unwrap().to_owned()));
        }
    }
    assert!(!copies.is_empty());
    copies
}

/// Copies a file or a folder, and says how many files it was.
fn copy(from: &Path, to: &Path) -> usize {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return 1;
    }
    let entries = fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    let names = entries.map(|entry| entry.unwrap().file_name());
    names.map(|name| copy(&from.join(&name), &to.join(&name))).sum()
}

/// Files that sources read into the binary, each with the source that names it. What only tests read does not count.
fn included(folder: &Path, found: &mut Vec<(PathBuf, PathBuf)>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            included(&path, found);
            continue;
        }
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if is_test || path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for start in ["include_str!(\"", "include_bytes!(\""] {
            for rest in code.split(start).skip(1) {
                let named = path.parent().unwrap().join(rest.split('"').next().unwrap());
                found.push((path.clone(), named));
            }
        }
    }
}

#[test]
fn the_build_is_given_all_that_it_reads() {
    let dir = tempfile::tempdir().unwrap();
    let files: usize = copies(0)
        .iter()
        .map(|(source, target)| copy(&shipped(source.to_str().unwrap()), &dir.path().join(target)))
        .sum();
    assert!(files > 200, "only {files} files");
    // The manifest names targets: those that are not there are an error.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--locked", "--no-deps", "--format-version=1"]);
    let output = cargo.current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = Vec::new();
    included(&dir.path().join("src"), &mut found);
    assert!(found.len() >= 6, "only {} files are read in", found.len());
    for (source, named) in found {
        assert!(named.exists(), "{} reads {}", source.display(), named.display());
    }
    let ignored = read(".dockerignore");
    for (source, _) in [copies(0), copies(1)].concat() {
        assert!(!ignored.lines().any(|line| source.starts_with(line)), "{} is ignored", source.display());
    }
}

/// What the image starts by itself is sound, is not root, and is asked where it can be reached.
#[test]
fn the_image_runs_what_it_holds() {
    let all = instructions(1);
    let value = |name: &str| {
        let found = all.iter().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name}")).trim().to_owned()
    };
    let (_, target) = copies(1).into_iter().find(|(source, _)| source.ends_with("streamgate.yaml")).unwrap();
    let config = sound(&read("docker/streamgate.yaml"));
    let arguments: Vec<String> = serde_json::from_str(&value("CMD")).unwrap();
    assert_eq!(arguments, ["run", "-c", &target]);
    let entry: Vec<String> = serde_json::from_str(&value("ENTRYPOINT")).unwrap();
    let health = value("HEALTHCHECK");
    let asked: Vec<String> = serde_json::from_str(health.split("CMD").nth(1).unwrap()).unwrap();
    assert_eq!((asked[0].as_str(), asked[1].as_str(), asked.len()), (entry[0].as_str(), "health", 2));
    assert_eq!(config.server.admin.listen.to_string(), "127.0.0.1:9090", "where `health` asks by itself");
    assert!(config.server.listen[0].address.to_string().ends_with(&format!(":{}", value("EXPOSE"))));
    let user: u32 = value("USER").split(':').next().unwrap().parse().unwrap();
    assert_ne!(user, 0);
    let built = instructions(0).into_iter().find(|line| line.starts_with("RUN cargo build")).unwrap();
    assert!(built.contains("--release --locked"), "{built}");
    assert!(
        all.iter()
            .any(|line| line == &format!("COPY --from=build /src/target/release/streamgate {}", entry[0]))
    );
}
