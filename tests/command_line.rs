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
