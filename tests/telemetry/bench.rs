//! `streamgate bench`: the load it makes, and what it reports of answers that are right.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::tls::Pair;
use crate::support::wait::{SOON, wait_until, wait_until_async, within};
use crate::support::{Engine, Gateway, Settings, as_is};

/// Time for a whole run on a busy machine.
const RUN: Duration = Duration::from_secs(60);

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) said: String,
    /// The figures, where there are any.
    pub(crate) json: Value,
}

/// Runs `bench` to its end. Some of the engines are in this process, so it must not block.
pub(crate) async fn bench(url: &str, args: &[&str]) -> Ran {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("run.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamgate"));
    command.args(["bench", url, "--json"]).arg(&file).args(args).stdin(Stdio::null()).kill_on_drop(true);
    let output = within("the run ends", RUN, command.output()).await.expect("run the binary");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let json = serde_json::from_str(&text).unwrap_or_default();
    Ran { code: output.status.code(), said: said.concat(), json }
}

/// A gateway that lists its model, in front of one engine.
pub(crate) async fn listed(engine: &Engine, adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, String) {
    let settings = Settings::new(&[engine.addr]).set("routes.0.models", json!(["m"]));
    let gateway = Gateway::start(adjust(settings)).await;
    let url = format!("http://{}/v1", gateway.addr);
    (gateway, url)
}

#[tokio::test]
async fn all_kinds_of_requests_are_made_and_found_right() {
    let engine = Engine::start().await;
    let (gateway, url) = listed(&engine, as_is).await;
    let ran = bench(&url, &["-n", "100", "--unary", "20", "--slow", "10@20000"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    let requests = json!({ "begun": 100, "streams": 80, "slow": 10, "unary": 20, "cancelled": 0, "wrong": 0,
                           "unfinished": 0, "left_out": 0 });
    assert_eq!(ran.json["requests"], requests);
    // Twelve tokens each, of which slow readers' times do not count; a gap lies between two of them.
    let count = |name: &str| ran.json["microseconds"][name]["count"].clone();
    let counts = ["first_event", "gap", "added", "stream", "unary"].map(count);
    assert_eq!(counts, [json!(70), json!(70 * 11), json!(70 * 12), json!(70), json!(20)]);
    assert_eq!((&ran.json["tokens"], &ran.json["model"]), (&json!(1200), &json!("m")));
    assert!(ran.said.contains("100 requests in") && ran.said.contains("0 wrong"), "{}", ran.said);
    assert!(ran.said.contains("added per event"), "{}", ran.said);
    assert!(!ran.said.contains('\x1b'), "no colours, no line written over: {:?}", ran.said);
    // The gateway has seen the same, and the question for models.
    let lines = gateway.all_access(101).await;
    assert_eq!(lines.iter().filter(|line| line["outcome"] == "completed").count(), 101, "{lines:?}");
}

#[tokio::test]
async fn cancels_are_seen_by_the_engine() {
    let engine = Engine::with(&["--name", "e"]).await;
    let (_gateway, url) = listed(&engine, as_is).await;
    let from = format!("http://{}", engine.addr);
    // Long enough that no stream ends before its client has left.
    let long =
        ["--header", "x-sim-tokens: 4000", "--header", "x-sim-inter-token: 5ms", "--max-tokens", "4000"];
    let ran =
        bench(&url, &[&long[..], &["-n", "12", "--cancel", "100%@3", "--engine", &from]].concat()).await;
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert_eq!(ran.json["requests"]["cancelled"], 12);
    assert_eq!(ran.json["microseconds"]["cancel"]["count"], 12, "{}", ran.said);
    engine.wait_count("aborted", 12).await;
    assert!(ran.said.contains("cancel, until the engine knows"), "{}", ran.said);
}

/// A connection each, or one for all that come one behind another.
#[tokio::test]
async fn connections_are_used_again_only_where_that_is_asked_for() {
    for (more, connections) in [(&[][..], 7), (&["--keepalive"][..], 2)] {
        let engine = Engine::start().await;
        let url = format!("http://{}/v1/completions", engine.addr);
        let ran = bench(&url, &[&["--model", "m", "-n", "6", "-c", "1"], more].concat()).await;
        assert_eq!(ran.code, Some(0), "{}", ran.said);
        // The first one only asks whether anybody is there.
        assert_eq!(engine.connections().await, connections, "{more:?}");
    }
}

#[tokio::test]
async fn http2_is_spoken_on_one_connection_or_many() {
    let engine = Engine::start().await;
    let (gateway, url) = listed(&engine, |settings| settings.set("server.listen.0.h2c", true)).await;
    for more in [&["--h2"][..], &["--h2", "--keepalive"]] {
        let ran = bench(&url, &[&["-n", "20", "--unary", "20", "--slow", "10@20000"], more].concat()).await;
        let ended = ["streams", "unary"].map(|how| ran.json["requests"][how].as_u64().unwrap_or(0));
        assert_eq!((ran.code, ended[0] + ended[1]), (Some(0), 20), "{}", ran.said);
    }
    gateway.all_access(42).await;
    // An engine of HTTP/1.1 proves that it is another protocol.
    let ran = bench(&format!("http://{}/v1", engine.addr), &["--h2"]).await;
    assert_eq!(ran.code, Some(75), "{}", ran.said);
    assert!(ran.said.contains("is HTTP/2 spoken there, in the clear?"), "{}", ran.said);
}

#[tokio::test]
async fn certificates_are_checked() {
    let (engine, folder) = (Engine::start().await, tempfile::tempdir().expect("temporary directory"));
    let pair = Pair::make(folder.path(), &["localhost"]);
    let tls = json!({ "certificates": [pair.named()] });
    let (gateway, _) = listed(&engine, |settings| settings.set("server.listen.0.tls", tls)).await;
    let url = format!("https://localhost:{}/v1", gateway.addr.port());
    let ca = pair.cert.to_str().expect("UTF-8");
    for more in
        [&["--ca", ca][..], &["--insecure"], &["--ca", ca, "--h2"], &["--insecure", "--h2", "--keepalive"]]
    {
        let ran = bench(&url, &[&["-n", "4"], more].concat()).await;
        assert_eq!(
            (ran.code, &ran.json["requests"]["streams"]),
            (Some(0), &json!(4)),
            "{more:?}: {}",
            ran.said
        );
    }
    // A question for models, a look whether anybody is there, and four streams: on one connection or on four.
    let labels = [("result", "ok"), ("protocol", "h2")];
    gateway.wait_metric("tls_handshakes_total", &labels, 6.0 + 3.0).await;
    let ran = bench(&url, &["-n", "4"]).await;
    assert_eq!(ran.code, Some(75), "{}", ran.said);
    assert!(ran.said.contains("no authority that is trusted here has signed it"), "{}", ran.said);
}

#[tokio::test]
async fn reloads_are_made_under_load_and_checked() {
    let engine = Engine::start().await;
    let (gateway, url) = listed(&engine, as_is).await;
    let place = format!("http://{}/reload", gateway.admin);
    let often = ["-d", "1s", "--reload-url", &place, "--reload-every", "20ms"];
    let ran = bench(&url, &often).await;
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    let reloads = &ran.json["reloads"];
    assert!(reloads["asked"].as_u64() > Some(0) && reloads["failed"] == 0, "{}", ran.said);
    assert_eq!(reloads["results"]["unchanged"], reloads["asked"], "{}", ran.said);
    gateway.rewrite_text("routes: [");
    let ran = bench(&url, &often).await;
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    assert!(ran.said.contains("status 422") && ran.said.contains("0 wrong"), "{}", ran.said);
}

/// Arrivals do not wait for answers; beyond the bound they are left out and told.
#[tokio::test]
async fn a_rate_is_kept_whatever_the_target_does() {
    let engine = Engine::with(&["--fault", "stall_before_head"]).await;
    let url = format!("http://{}/v1", engine.addr);
    let rate = ["--model", "m", "--rate", "100", "-n", "20", "-c", "5", "--timeout", "2s"];
    let ran = bench(&url, &rate).await;
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    let requests = &ran.json["requests"];
    assert_eq!((&requests["begun"], &requests["left_out"]), (&json!(5), &json!(15)), "{}", ran.said);
    assert_eq!(ran.json["errors"], json!({ "silence": 5 }));
}

/// A run that goes on until it is told to end.
fn running(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamgate"));
    command.arg("bench").args(args).stdin(Stdio::null()).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run the binary")
}

/// Sends it what Ctrl-C sends; gives what it reports.
async fn interrupted(child: Child) -> String {
    let pid = child.id().expect("it runs").to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().await.expect("run kill");
    assert!(sent.success());
    let output = within("it ends", SOON, child.wait_with_output()).await.expect("wait");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    said
}

#[tokio::test]
async fn an_interrupt_ends_the_run_with_its_report() {
    let engine = Engine::start().await;
    let child = running(&[&format!("http://{}/v1", engine.addr), "--duration", "1h", "-c", "1"]);
    // One behind another: the third begins when two have been read.
    wait_until_async("answers have come", SOON, || async { engine.count("requests").await > 2 }).await;
    let said = interrupted(child).await;
    assert!(said.contains(", interrupted: ") && said.contains("time to first event"), "{said}");
}

/// While a slow reader has hardly begun, a fast one has read the same answer; what the slow one does not read stays
/// with the engine.
#[tokio::test]
async fn a_slow_reader_holds_the_engine_up() {
    let engine = Engine::start().await;
    let url = format!("http://{}/v1", engine.addr);
    let sized = ["x-sim-tokens: 1000", "x-sim-event-bytes: 32KiB", "x-sim-inter-token: 0ms"];
    let sized = sized.map(|header| ["--header", header]).concat();
    let asked = [&[url.as_str(), "--max-tokens", "1000", "-n", "1"], &sized[..]].concat();
    let slow = running(&[&asked[..], &["--slow", "100@2000"]].concat());
    wait_until_async("it has begun", SOON, || async { engine.count("tokens").await > 0 }).await;
    let ran = bench(&url, &asked[1..]).await;
    assert_eq!((ran.code, &ran.json["tokens"]), (Some(0), &json!(1000)), "{}", ran.said);
    assert_eq!((engine.count("completed").await, engine.count("running").await), (1, 1));
    assert!(engine.count("tokens").await < 2_000);
    let said = interrupted(slow).await;
    assert!(said.contains("1 request in") && said.contains("1 not ended, 0 wrong"), "{said}");
    engine.wait_count("aborted", 1).await;
}

/// A terminal has a line that is written over, and a clean one at the end.
#[tokio::test]
async fn a_terminal_shows_how_far_it_is() {
    let engine = Engine::start().await;
    let folder = tempfile::tempdir().expect("temporary directory");
    let typed = folder.path().join("typed");
    let run =
        format!("exec {} bench http://{}/v1 --duration 1s", env!("CARGO_BIN_EXE_streamgate"), engine.addr);
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-f", "-c", &run]).arg(&typed).env("TERM", "xterm-256color");
    script.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = script.spawn().expect("run script(1)");
    let ended = within("it ends", RUN, child.wait()).await.expect("wait");
    assert!(ended.success());
    let shown = || std::fs::read_to_string(&typed).unwrap_or_default();
    wait_until("the report is on the screen", SOON, || shown().contains("0 wrong\r\n")).await;
    let shown = shown();
    let (live, report) = shown.split_once("m on http://").expect("a report");
    assert!(live.contains("of 1 s: ") && live.contains(" tokens, ") && live.contains("==>"), "{live:?}");
    assert!(live.ends_with("\x1b[1G\x1b[K"), "{live:?}");
    assert!(!report.contains('\x1b'), "{report:?}");
}
