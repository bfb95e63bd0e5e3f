//! The usage log: what stands in it of every kind of exchange, and what becomes of its file.

#[path = "../support/mod.rs"]
mod support;

mod adds_up;
mod running;

use std::path::PathBuf;

use serde_json::{Value, json};
use support::keys::key;
use support::wait::{SOON, wait_until};
use support::wire::{self, CHAT_PATH, FINISH, Request, event};
use support::{Call, Client, Gateway, Settings, Upstream, checks, one_engine};
use tempfile::TempDir;

/// A usage log in a directory of its own.
pub(crate) struct UsageFile {
    dir: TempDir,
}

impl UsageFile {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("usage.log")
    }

    /// Has a gateway write it.
    pub(crate) fn set(&self, settings: Settings) -> Settings {
        settings.set("log.usage", self.path().to_str().expect("UTF-8"))
    }

    /// The lines of one of its files.
    pub(crate) fn lines_of(path: &std::path::Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("a usage line is JSON")).collect()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        Self::lines_of(&self.path())
    }

    /// Waits for so many lines: they are written behind the answer.
    pub(crate) async fn wait_lines(&self, count: usize) -> Vec<Value> {
        wait_until(&format!("{count} usage lines"), SOON, || self.lines().len() >= count).await;
        self.lines()
    }
}

fn figures(line: &Value) -> (Option<u64>, Option<u64>, &str) {
    let tokens = |name: &str| line[name].as_u64();
    (tokens("prompt_tokens"), tokens("completion_tokens"), line["source"].as_str().expect("a source"))
}

async fn begin(gateway: &Gateway, engine: &mut Upstream, request: &Request) -> (Client, Call) {
    let client = gateway.send(request).await;
    (client, engine.call().await)
}

/// A stream with its usage, in one piece.
fn whole_answer() -> Vec<u8> {
    [wire::SSE_HEAD.as_bytes(), &wire::chunk(wire::whole_stream()), wire::LAST_CHUNK.as_bytes()].concat()
}

/// A body of 400 bytes, which are taken for 100 tokens, and at most 50 to generate.
fn body(streams: bool) -> Request {
    let body = format!("{{\"model\":\"m\",\"stream\":{streams},\"max_tokens\":50,\"messages\":[\"");
    let filling = "x".repeat(400 - body.len() - 3);
    Request::post(CHAT_PATH, format!("{body}{filling}\"]}}"))
}

#[tokio::test]
async fn every_exchange_that_an_engine_worked_on_has_a_line_and_no_other() {
    let file = UsageFile::new();
    let keys = json!([key("team-a", "k1")]);
    let adjust = |settings: Settings| file.set(settings).set("keys", keys).set("timeouts.first_event", "1s");
    let (gateway, mut engine) = one_engine(adjust).await;

    let (mut client, call) = begin(&gateway, &mut engine, &Request::chat()).await;
    call.answer(whole_answer()).await;
    client.answer().await;
    let lines = file.wait_lines(1).await;
    assert_eq!(figures(&lines[0]), (Some(7), Some(3), "reported"));
    for (name, value) in [
        ("key", json!("team-a")),
        ("route", json!("chat")),
        ("cluster", json!("c")),
        ("backend", json!("u1")),
        ("model", json!("m")),
        ("path", json!(CHAT_PATH)),
        ("streaming", json!(true)),
        ("outcome", json!("completed")),
        ("status", json!(200)),
        ("generation", json!(1)),
    ] {
        assert_eq!(lines[0][name], value, "{name}");
    }

    // A whole answer tells its figures; one that its client does not wait for is estimated.
    let (mut client, call) = begin(&gateway, &mut engine, &Request::unary()).await;
    call.answer(wire::json_answer(wire::ANSWER)).await;
    client.answer().await;
    let told = figures(&file.wait_lines(2).await[1]).2.to_owned();
    assert_eq!(told, "reported");
    let (client, mut call) = begin(&gateway, &mut engine, &body(false)).await;
    client.close();
    call.gone().await;
    let lines = file.wait_lines(3).await;
    assert_eq!(figures(&lines[2]), (Some(100), Some(50), "estimated"), "all that was asked for");
    assert_eq!((&lines[2]["outcome"], &lines[2]["status"]), (&json!("client_closed"), &json!(0)));

    // Left during the prefill, then after two tokens.
    let (client, mut call) = begin(&gateway, &mut engine, &body(true)).await;
    client.close();
    call.gone().await;
    assert_eq!(figures(&file.wait_lines(4).await[3]), (Some(100), Some(0), "estimated"));
    let (mut client, mut call) = begin(&gateway, &mut engine, &body(true)).await;
    call.open().await;
    let two = event("a") + &event("b");
    call.chunk(&two).await;
    client.until_body_holds(two.as_bytes()).await;
    client.close();
    call.gone().await;
    assert_eq!(figures(&file.wait_lines(5).await[4]), (Some(100), Some(2), "estimated"));

    // Silent until its time is over: what the client is told is ours, and nothing has been generated that it could see.
    let (mut client, silent) = begin(&gateway, &mut engine, &body(true)).await;
    assert_eq!(client.answer().await.status(), 504);
    assert_eq!(figures(&file.wait_lines(6).await[5]), (Some(100), Some(0), "estimated"));
    drop(silent);

    // An answer that is no stream, cut by the engine: it worked, and nobody knows how long.
    let (mut client, mut call) = begin(&gateway, &mut engine, &body(false)).await;
    call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"a\":")
        .await;
    call.reset();
    assert_eq!(client.answer().await.end, support::End::Broken);
    assert_eq!(figures(&file.wait_lines(7).await[6]), (Some(100), Some(50), "estimated"));

    // Cut by the engine after a token.
    let (mut client, mut call) = begin(&gateway, &mut engine, &body(true)).await;
    call.open().await;
    call.chunk(event("a")).await;
    client.until_body_holds(event("a").as_bytes()).await;
    call.reset();
    client.end().await;
    let lines = file.wait_lines(8).await;
    assert_eq!(figures(&lines[7]), (Some(100), Some(1), "estimated"));
    assert_eq!(lines[7]["outcome"], "upstream_error");

    // Refused by the engine, by us, and never sent: nothing was used.
    let (mut client, call) = begin(&gateway, &mut engine, &Request::chat()).await;
    call.answer(wire::answer("400 Bad Request", &[], "{}")).await;
    client.answer().await;
    assert_eq!(gateway.ask(&Request::bare("POST", CHAT_PATH).with_key("k2")).await.status(), 401);
    assert_eq!(gateway.ask(&Request::bare("GET", "/nowhere").with_key("k1")).await.status(), 404);
    gateway.all_access(11).await;
    assert_eq!(file.lines().len(), 8);
    assert_eq!(gateway.metric("usage_log_dropped_lines", &[]).await, 0.0);
    checks::at_rest(&gateway).await;
}

/// Rotated by size, opened anew by SIGUSR1, complete after SIGTERM.
#[tokio::test]
async fn the_file_is_bounded_and_loses_no_line() {
    let file = UsageFile::new();
    let adjust = |settings: Settings| {
        file.set(settings).set("log.usage_rotate", json!({ "size": "64KiB", "keep": 30 }))
    };
    let (mut gateway, mut engine) = one_engine(adjust).await;
    const COUNT: usize = 400;
    let mut client = gateway.client().await;
    for _ in 0..COUNT {
        client.send(Request::unary().bytes()).await;
        engine.call().await.answer(wire::json_answer(wire::ANSWER)).await;
        client.answer().await;
    }
    wait_until("one file is full", SOON, || numbered(&file, 1).exists()).await;
    std::fs::rename(file.path(), file.dir.path().join("away")).expect("rename");
    gateway.signal("USR1");
    gateway.wait_log("opened anew").await;
    client.send(Request::unary().bytes()).await;
    engine.call().await.answer(wire::json_answer(wire::ANSWER)).await;
    client.answer().await;
    gateway.terminate();
    gateway.exit(SOON).await;
    let mut ids = Vec::new();
    let mut files = 0;
    let all = (1..=30).map(|n| numbered(&file, n)).filter(|path| path.exists());
    for path in all.chain([file.dir.path().join("away"), file.path()]) {
        let size = std::fs::metadata(&path).expect("a file").len();
        assert!(size <= 64 * 1024, "{size} bytes in {}", path.display());
        files += 1;
        ids.extend(UsageFile::lines_of(&path).into_iter().map(|line| line["request_id"].to_string()));
    }
    ids.sort_unstable();
    ids.dedup();
    assert!(files >= 4, "{files} files");
    assert_eq!(ids.len(), COUNT + 1);
}

fn numbered(file: &UsageFile, number: usize) -> PathBuf {
    file.dir.path().join(format!("usage.log.{number}"))
}

/// Two logs that have become one file are told when they are opened anew, as at the start; and no more when they are two
/// again.
#[tokio::test]
async fn logs_that_have_become_one_are_told_at_sigusr1() {
    const TOLD: &str = "usage.log is the file that log.access writes into, by another name";
    let file = UsageFile::new();
    let (gateway, _engine) = one_engine(|settings| file.set(settings)).await;
    let access = gateway.file().with_file_name("access.log");
    let (one_by_link, one_by_hard_link, two) = (
        || std::os::unix::fs::symlink(&access, file.path()),
        || std::fs::hard_link(&access, file.path()),
        || Ok(()),
    );
    let ways: [(&dyn Fn() -> std::io::Result<()>, usize); 3] =
        [(&two, 0), (&one_by_link, 1), (&one_by_hard_link, 2)];
    for (time, (become_one, told)) in (1..).zip(ways) {
        std::fs::remove_file(file.path()).expect("a usage log");
        become_one().expect("a link");
        gateway.signal("USR1");
        let log = || gateway.log();
        wait_until("it is heard", SOON, || log().matches("opened anew").count() == time).await;
        wait_until("it is told", SOON, || log().matches(TOLD).count() >= told).await;
        assert_eq!(log().matches(TOLD).count(), told);
        if told == 0 {
            std::fs::write(file.path(), "").expect("write");
        }
    }
}

/// What cannot be opened anew is told, and the file that has been open goes on.
#[tokio::test]
async fn a_folder_in_the_place_of_the_file_loses_no_line() {
    let file = UsageFile::new();
    let (gateway, mut engine) = one_engine(|settings| file.set(settings)).await;
    let away = file.dir.path().join("away");
    for lines in [1, 2] {
        let (mut client, call) = begin(&gateway, &mut engine, &Request::chat()).await;
        call.answer(whole_answer()).await;
        assert_eq!(client.answer().await.status(), 200);
        if lines == 1 {
            file.wait_lines(1).await;
            std::fs::rename(file.path(), &away).expect("rename");
            std::fs::create_dir(file.path()).expect("a folder");
            gateway.signal("USR1");
            gateway.wait_log("SIGUSR1").await;
        }
    }
    wait_until("the second line", SOON, || UsageFile::lines_of(&away).len() == 2).await;
    let told = "cannot be opened anew: Is a directory (os error 21); its lines go on into the file that has been open";
    gateway.wait_log(told).await;
}

/// Lines that a full disk does not take are counted, and streams go on.
#[tokio::test]
async fn a_full_disk_loses_lines_and_nothing_else() {
    let adjust = |settings: Settings| settings.set("log.usage", "/dev/full");
    let (gateway, mut engine) = one_engine(adjust).await;
    for _ in 0..3 {
        let (mut client, call) = begin(&gateway, &mut engine, &Request::chat()).await;
        call.answer(whole_answer()).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    gateway.wait_metric("usage_log_dropped_lines", &[], 3.0).await;
    gateway.wait_log("usage-log: lines are lost").await;
}

/// Of what went well a share is logged, of what failed everything; usage and metrics know of all.
#[tokio::test]
async fn successes_are_sampled_and_failures_never() {
    let file = UsageFile::new();
    let adjust = |settings: Settings| file.set(settings).set("log.access_sample", "0%");
    let (gateway, mut engine) = one_engine(adjust).await;
    let (mut client, call) = begin(&gateway, &mut engine, &Request::chat()).await;
    call.answer(whole_answer()).await;
    client.answer().await;
    let (mut client, call) = begin(&gateway, &mut engine, &Request::chat()).await;
    call.answer(wire::answer("400 Bad Request", &[], "{}")).await;
    client.answer().await;
    let (client, mut call) = begin(&gateway, &mut engine, &Request::chat()).await;
    client.close();
    call.gone().await;
    let lines = gateway.all_access(2).await;
    assert_eq!((&lines[0]["status"], &lines[1]["outcome"]), (&json!(400), &json!("client_closed")));
    assert_eq!(file.wait_lines(2).await.len(), 2);
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 2.0).await;
}

/// A stream whose first token is late is told of, with where the time went; one in time is not.
#[tokio::test]
async fn slow_streams_are_told() {
    let adjust = |settings: Settings| settings.set("log.slow", "100ms");
    let (gateway, mut engine) = one_engine(adjust).await;
    let (mut client, mut call) = begin(&gateway, &mut engine, &Request::chat()).await;
    call.open().await;
    support::wait::silence(support::wait::ms(150)).await;
    call.chunk([event("late").as_str(), FINISH, wire::DONE].concat()).await;
    call.finish().await;
    client.answer().await;
    gateway.wait_log("its first token came after").await;
    let line = gateway.only_access().await;
    let id = line["request_id"].as_str().expect("an id");
    let log = gateway.log();
    let told = log.lines().find(|line| line.contains("slow: ")).expect("the line");
    assert!(told.contains(id) && told.contains("c/u1") && told.contains("log.slow is 100ms"), "{told}");
}
