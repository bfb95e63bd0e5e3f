//! What the commands say beside the gateway's work: to editors, to pipes, and about a file that starts.

#![allow(clippy::unwrap_used, reason = "a test that cannot run the binary has failed")]

mod support;

use std::process::{Command, Stdio};

use support::gateway::{config_file, output};
use support::{Settings, score};

fn settings() -> Settings {
    Settings::new(&["127.0.0.1:1".parse().unwrap()])
}

/// `streamgate schema | head`: a reader that has seen enough is no failure.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let (_dir, file) = config_file(&settings().text(std::path::Path::new("/dev/null")));
    for arguments in [vec!["schema"], vec!["check", "-c", file.to_str().unwrap()]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamgate"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.args(&arguments).stdin(Stdio::null()).stdout(writer);
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn an_access_log_that_cannot_be_opened_is_told_as_it_is_written() {
    let (_dir, file) = config_file(&settings().text(std::path::Path::new("/nowhere/access.log")));
    let (code, said) = output(&["run", "-c", file.to_str().unwrap()], &[]);
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("the access log /nowhere/access.log cannot be opened: No such file"), "{said}");
}

/// Two kinds of lines in one file are of use to nobody: links are seen through before the start, and by it.
#[test]
fn one_file_for_two_logs_is_refused_under_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let (access, usage) = (dir.path().join("access.log"), dir.path().join("usage.log"));
    let (_dir, file) = config_file(&settings().set("log.usage", usage.to_str().unwrap()).text(&access));
    let refused = |command: &str| {
        let (code, said) = output(&[command, "-c", file.to_str().unwrap()], &[]);
        assert_eq!(code, Some(64), "{command}: {said}");
        let words = "usage.log is the file that log.access writes into, by another name";
        assert!(said.contains(":1: log.usage: ") && said.contains(words), "{command}: {said}");
    };
    std::os::unix::fs::symlink("access.log", &usage).unwrap();
    refused("check");
    assert!(!access.exists(), "nothing is made");
    refused("run");
    refused("check");
    std::fs::remove_file(&usage).unwrap();
    std::fs::hard_link(&access, &usage).unwrap();
    refused("check");
    refused("run");
    std::fs::remove_file(&usage).unwrap();
    assert_eq!(output(&["check", "-c", file.to_str().unwrap()], &[]).0, Some(0));
}

/// Where lines would go in the end is what counts: a link is worth what it leads to, a pipe as much as its reader, who is
/// not disturbed.
#[test]
fn check_looks_where_links_and_pipes_lead() {
    let dir = tempfile::tempdir().unwrap();
    let (link, pipe) = (dir.path().join("link.log"), dir.path().join("pipe"));
    let check = |log: &std::path::Path| {
        let (_dir, file) = config_file(&settings().text(log));
        output(&["check", "-c", file.to_str().unwrap()], &[])
    };
    std::os::unix::fs::symlink("/nowhere/access.log", &link).unwrap();
    let (code, said) = check(&link);
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("link.log cannot be opened: No such file"), "{said}");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (code, said) = check(&pipe);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning: ") && said.contains("log.access: "), "{said}");
    assert!(said.contains("pipe is a pipe (the start fails unless somebody reads it by then)"), "{said}");
}

/// As diff(1): 0 for the same, 1 and what differs, 2 for a file that cannot be used.
#[test]
fn diff_tells_what_a_reload_would_change() {
    let text = |settings: Settings| settings.text(std::path::Path::new("/dev/null"));
    let (_old_dir, old) = config_file(&text(settings()));
    let diff = |new: &str| {
        let (_dir, new) = config_file(new);
        output(&["diff", old.to_str().unwrap(), new.to_str().unwrap()], &[])
    };
    assert_eq!(diff(&text(settings())), (Some(0), String::new()));
    assert_eq!(diff(&text(settings().set("timeouts.idle", "4000ms"))), (Some(0), String::new()));
    let route = serde_json::json!({ "name": "new", "match": { "path": "/v1/new" }, "cluster": "c" });
    let backends = serde_json::json!([{ "name": "other", "url": "http://127.0.0.1:2" }]);
    let changed = settings()
        .set("clusters.c.backends", backends)
        .set("timeouts.idle", "5s")
        .set("server.threads", 3)
        .set("log.level", "warn")
        .route(route);
    let (code, said) = diff(&text(changed));
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        (code, lines),
        (
            Some(1),
            vec![
                "+ clusters.c.backends.other",
                "+ routes.new",
                "- clusters.c.backends.u1",
                "~ log.level",
                "~ server.threads (needs a restart)",
                "~ timeouts.idle",
            ]
        )
    );
    let (code, said) = diff("routes: [");
    assert_eq!(code, Some(2));
    assert!(said.contains("streamgate.yaml:"), "{said}");
    score::struck(1, "a file that differs");
    score::close("");
}

/// The words that complete a command line: what bash would offer for it, by the script that we print.
fn offered(line: &str) -> Vec<String> {
    let (code, script) = output(&["completions", "bash"], &[]);
    assert_eq!(code, Some(0), "{script}");
    let asked = format!(
        "{script}\nCOMP_WORDS=({line} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         _streamgate streamgate '' \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let answer = Command::new("bash").args(["--norc", "-c", &asked]).output().unwrap();
    String::from_utf8(answer.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Completions are made of the commands that there are.
#[test]
fn completions_offer_the_commands() {
    let commands = offered("streamgate");
    for command in ["run", "check", "top", "health", "completions"] {
        assert!(commands.iter().any(|offered| offered == command), "{commands:?}");
    }
    assert!(offered("streamgate top").contains(&"--token-env".to_owned()));
    for (shell, begin) in [("zsh", "#compdef streamgate"), ("fish", "#")] {
        let (code, script) = output(&["completions", shell], &[]);
        assert!(code == Some(0) && script.starts_with(begin) && script.contains("upgrade"), "{script}");
    }
    assert_eq!(output(&["completions", "cobol"], &[]).0, Some(64));
}

/// A page for each command, which the formatter has nothing to say against; what is not to be written is told.
#[test]
fn each_command_has_its_manual_page() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("share").join("man1");
    for _ in ["the folder is made", "it is there"] {
        let (code, said) = output(&["man", dir.to_str().unwrap()], &[]);
        assert_eq!((code, said.as_str()), (Some(0), ""));
    }
    let mut pages: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    for page in ["streamgate.1", "streamgate-run.1", "streamgate-key-new.1", "streamgate-sim.1"] {
        assert!(pages.contains(&page.to_owned()), "{pages:?}");
    }
    let main = std::fs::read_to_string(dir.join("streamgate.1")).unwrap();
    assert!(main.contains("Exit codes: 0 done; 64 bad usage"), "{main}");
    for page in &pages {
        let shown = Command::new("man").arg("--warnings").arg("-l").arg(dir.join(page)).output();
        let Ok(shown) = shown else { return support::not_run("each_command_has_its_manual_page", "no man") };
        let said = String::from_utf8_lossy(&shown.stderr);
        assert!(shown.status.success() && said.is_empty() && !shown.stdout.is_empty(), "{page}: {said}");
    }
    let in_the_way = dir.join("streamgate.1").join("man1");
    let (code, said) = output(&["man", in_the_way.to_str().unwrap()], &[]);
    assert_eq!((code, said.contains("Not a directory")), (Some(75), true), "{said}");
}
