//! What the commands say beside the gateway's work: to editors, to pipes, and about a file that starts.

#![allow(clippy::unwrap_used, reason = "a test that cannot run the binary has failed")]

mod support;

use std::process::{Command, Stdio};

use support::gateway::{config_file, output};
use support::{Gateway, Settings};

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

#[tokio::test]
async fn the_start_names_what_is_accepted_and_does_nothing() {
    let gateway = Gateway::start(settings().set("timeouts.queue", "5s")).await;
    gateway.wait_log("accepted, but not active yet in this version: timeouts.queue (line 1)").await;
}
