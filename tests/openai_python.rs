//! The official openai Python package through the gateway, with a simulated engine behind it.
//!
//! The package is installed into a virtual environment below `target/`. Where that is not possible
//! (no python3, no network) the test notes that it was not run, which `scripts/test.sh` counts.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use streamgate::sim;
use support::{Gateway, Settings};

/// Makes the virtual environment, or says why it cannot be made.
fn environment() -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openai-venv");
    let python = dir.join("bin/python");
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/requirements.txt");
    let requirements = requirements.to_str().ok_or("the path is not UTF-8")?;
    let make = run(Command::new("python3").args(["-m", "venv"]).arg(&dir));
    make.and_then(|()| {
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--requirement", requirements]))
    })?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_package_sees_answers_cancels_and_errors() {
    let python = match tokio::task::spawn_blocking(environment).await.unwrap() {
        Ok(python) => python,
        Err(why) => {
            return support::not_run("the_openai_package_sees_answers_cancels_and_errors", &why);
        }
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    let first_event = std::time::Duration::from_millis(20);
    let settings = sim::Settings { listen, first_event, ..sim::Settings::default() };
    let engine = sim::Engine::bind(settings).await.unwrap();
    let engine_addr = engine.local_addr().unwrap();
    tokio::spawn(engine.run(std::future::pending()));
    let gateway = Gateway::start(
        Settings::new(&[engine_addr])
            .set("routes.0.models", json!(["sim-model"]))
            .set("routes.0.match.model", "sim*")
            .set("timeouts.idle", "1s"),
    )
    .await;
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/openai_cases.py");
    let (url, engine_url) = (format!("http://{}", gateway.addr), format!("http://{engine_addr}"));
    let output = tokio::task::spawn_blocking(move || {
        Command::new(python).arg(cases).args([url, engine_url]).stdin(Stdio::null()).output().unwrap()
    })
    .await
    .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(report.matches("ok: ").count(), 11, "{report}");
}
