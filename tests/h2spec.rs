//! The conformance suite h2spec against the gateway, where the machine has it.

mod support;

use std::process::{Command, Stdio};

use support::protocol::{Protocol, speak};
use support::{as_is, not_run, one_engine};

/// Every case of the suite, plain and over the path that the gateway answers by itself. The suite ends with
/// an error when a case fails.
#[tokio::test]
async fn h2spec_passes() {
    if Command::new("h2spec").arg("--version").stdout(Stdio::null()).status().is_err() {
        return not_run("h2spec_passes", "there is no h2spec on this machine");
    }
    speak(Protocol::H2c);
    let (gateway, _upstream) = one_engine(as_is).await;
    let port = gateway.addr.port().to_string();
    let suite = tokio::task::spawn_blocking(move || {
        let mut suite = Command::new("h2spec");
        suite.args(["--host", "127.0.0.1", "--port", &port, "--path", "/v1/models", "--timeout", "5"]);
        suite.stdin(Stdio::null()).output().expect("run h2spec")
    });
    let output = suite.await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("tests, "), "the suite says how much it ran: {told}");
}
