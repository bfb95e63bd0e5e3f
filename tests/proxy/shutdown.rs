//! The process: how SIGTERM ends it, what becomes of running streams, and its exit codes.

use std::net::TcpListener;

use crate::support::gateway::{config_file, exit_code};
use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::{ANSWER, DONE, Request, event, json_answer};
use crate::support::{Call, Client, End, Gateway, Settings, as_is, checks, one_engine, score, streaming};
use tokio::net::TcpStream;

/// Waits until the readiness probe says so.
async fn ready_is(gateway: &Gateway, status: u16) {
    wait_until_async("readiness", SOON, || async { gateway.admin_get("/readyz").await.status() == status })
        .await;
}

/// Ends a stream properly at both ends.
async fn ends_whole(mut client: Client, mut call: Call) {
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("1"), DONE].concat().as_bytes());
}

#[tokio::test]
async fn a_started_gateway_is_alive_and_ready() {
    let (gateway, _upstream) = one_engine(as_is).await;
    assert_eq!(gateway.admin_get("/livez").await.status(), 200);
    assert_eq!(gateway.admin_get("/readyz").await.status(), 200);
    assert_eq!(gateway.admin_get("/metrics").await.status(), 200);
    assert_eq!(gateway.admin_get("/nowhere").await.status(), 404);
}

/// H23: running streams may end inside the drain, new work is refused, the rest is told, exit 0.
#[tokio::test]
async fn sigterm_drains_and_tells_the_rest() {
    let drain = |settings: Settings| settings.set("server.shutdown.drain", "4s").set("timeouts.idle", "25s");
    let (mut gateway, mut upstream) = one_engine(drain).await;
    let mut idle = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(idle.answer().await.status(), 200);
    let (first, first_call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let (second, second_call) = streaming(&gateway, &mut upstream, &["1"]).await;
    let (mut endless, mut endless_call) = streaming(&gateway, &mut upstream, &["1"]).await;

    gateway.terminate();
    ready_is(&gateway, 503).await;
    idle.closed().await;
    assert_eq!(idle.raw(), b"", "an idle connection is closed, not answered");
    // Idle connections and listeners are told in one moment, and close in any order.
    let refused = || async { TcpStream::connect(gateway.addr).await.is_err() };
    wait_until_async("new connections are refused in the drain", SOON, refused).await;

    ends_whole(first, first_call).await;
    ends_whole(second, second_call).await;
    checks::broken(&mut endless, &event("1"), "shutting_down").await;
    endless_call.gone().await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    let outcomes: Vec<_> = gateway.access_lines().into_iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["completed", "completed", "completed", "shutdown"]);
}

/// H23: the drain ends with the last exchange, not with its time.
#[tokio::test]
async fn the_drain_ends_with_the_last_stream() {
    let drain = |settings: Settings| settings.set("server.shutdown.drain", "10m");
    let (mut gateway, mut upstream) = one_engine(drain).await;
    let (client, call) = streaming(&gateway, &mut upstream, &["1"]).await;
    gateway.terminate();
    ready_is(&gateway, 503).await;
    ends_whole(client, call).await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
}

/// With nothing to wait for, SIGTERM is quick.
#[tokio::test]
async fn an_idle_gateway_exits_at_once() {
    let (mut gateway, _upstream) = one_engine(|settings| settings.set("server.shutdown.drain", "10m")).await;
    gateway.terminate();
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
}

/// H23: a second SIGTERM does not wait for anybody.
#[tokio::test]
async fn a_second_sigterm_stops_at_once() {
    let drain = |settings: Settings| settings.set("server.shutdown.drain", "10m");
    let (mut gateway, mut upstream) = one_engine(drain).await;
    let (mut client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    gateway.terminate();
    ready_is(&gateway, 503).await;
    gateway.terminate();
    gateway.exit(SOON).await;
    call.gone().await;
    client.end().await;
    assert!(!String::from_utf8_lossy(client.body()).contains("[DONE]"));
}

/// The lame duck: not ready any more, but still serving; a waiting call is finished as well.
#[tokio::test]
async fn the_lame_duck_still_serves() {
    let duck = |settings: Settings| settings.set("server.shutdown.lame_duck", "10m");
    let (mut gateway, mut upstream) = one_engine(duck).await;
    gateway.terminate();
    ready_is(&gateway, 503).await;
    assert_eq!(gateway.admin_get("/livez").await.status(), 200);
    let (client, call) = streaming(&gateway, &mut upstream, &["1"]).await;
    ends_whole(client, call).await;
    gateway.terminate();
    gateway.exit(SOON).await;
}

/// Who presses Ctrl-C is told how long it takes, and how not to wait; nothing else in the log needs a reason.
#[tokio::test]
async fn the_first_signal_says_how_long_it_takes() {
    let duck = |settings: Settings| settings.set("server.shutdown.lame_duck", "10m");
    let (mut gateway, _upstream) = one_engine(duck).await;
    gateway.signal("INT");
    gateway.wait_log("clients are served for another 600s (server.shutdown.lame_duck)").await;
    gateway.wait_log("may take 8s (server.shutdown.drain) to end; a second signal ends it at once").await;
    gateway.signal("INT");
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    assert!(!gateway.log().contains("ERROR"), "{}", gateway.log());

    let (mut gateway, _upstream) = one_engine(as_is).await;
    gateway.signal("INT");
    gateway.exit(SOON).await;
    let log = gateway.log();
    assert!(!log.contains("lame_duck") && !log.contains("ERROR"), "{log}");
}

/// A stream that has not begun is refused with a real status when the drain is over.
#[tokio::test]
async fn a_waiting_exchange_is_told_by_status() {
    let drain = |settings: Settings| {
        settings.set("server.shutdown.drain", "500ms").set("timeouts.first_event", "25s")
    };
    let (mut gateway, mut upstream) = one_engine(drain).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    gateway.terminate();
    checks::rejected(&client.answer().await, 503, "shutting_down");
    call.gone().await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    assert_eq!(gateway.only_access().await["outcome"], "shutdown");
}

/// A client that leaves during the drain still frees its engine.
#[tokio::test]
async fn leaving_during_the_drain_stops_the_engine() {
    let (mut gateway, mut upstream) =
        one_engine(|settings| settings.set("server.shutdown.drain", "10m")).await;
    let (client, mut call) = streaming(&gateway, &mut upstream, &["1"]).await;
    gateway.terminate();
    ready_is(&gateway, 503).await;
    client.close();
    call.gone().await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    assert_eq!(gateway.only_access().await["outcome"], "client_closed");
}

#[test]
fn bad_usage_is_64() {
    assert_eq!(exit_code(&["no-such-command"]), Some(64));
    assert_eq!(exit_code(&["run"]), Some(64));
    assert_eq!(exit_code(&["run", "-c"]), Some(64));
    assert_eq!(exit_code(&["run", "--no-such-option"]), Some(64));
}

#[test]
fn help_and_version_are_0() {
    assert_eq!(exit_code(&["--help"]), Some(0));
    assert_eq!(exit_code(&["--version"]), Some(0));
}

#[test]
fn a_bad_file_is_64() {
    for text in ["", "server: [", "no_such_key: 1\n", "routes: []\n"] {
        let (_dir, file) = config_file(text);
        let file = file.to_str().unwrap();
        assert_eq!(exit_code(&["run", "-c", file]), Some(64), "{text:?}");
        assert_eq!(exit_code(&["check", "-c", file]), Some(64), "{text:?}");
        score::struck(2, "a bad file");
    }
    score::close("");
}

#[test]
fn an_unreadable_file_is_75() {
    let (dir, _file) = config_file("");
    let missing = dir.path().join("missing.yaml");
    assert_eq!(exit_code(&["run", "-c", missing.to_str().unwrap()]), Some(75));
}

#[test]
fn a_good_file_is_0_to_check() {
    let settings = Settings::new(&["127.0.0.1:1".parse().unwrap()]);
    let (dir, file) = config_file(&settings.text(std::path::Path::new("/dev/null")));
    assert_eq!(exit_code(&["check", "-c", file.to_str().unwrap()]), Some(0));
    drop(dir);
}

/// A taken port is found out at the start, and nothing is left running without a listener.
#[test]
fn a_taken_port_is_75() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let engine = "127.0.0.1:1".parse().unwrap();
    for place in ["server.listen.0.address", "server.admin.listen"] {
        let settings = Settings::new(&[engine]).set(place, addr.as_str());
        let (_dir, file) = config_file(&settings.text(std::path::Path::new("/dev/null")));
        assert_eq!(exit_code(&["run", "-c", file.to_str().unwrap()]), Some(75), "{place}");
    }
}

/// An upload that is still going on when the drain is over is told so, and has its line.
#[tokio::test]
async fn an_upload_is_told_when_the_drain_is_over() {
    let (mut gateway, upstream) =
        one_engine(|settings: Settings| settings.set("server.shutdown.drain", "500ms")).await;
    let mut client = gateway.client().await;
    let request = Request::post("/v1/chat/completions", "x".repeat(100_000));
    client.send(request.head()).await;
    client.send("x".repeat(50_000)).await;
    gateway.wait_metric_where("a body is held", "held_bytes", &[("kind", "body")], |held| held > 0.0).await;
    gateway.terminate();
    checks::rejected(&client.answer().await, 503, "shutting_down");
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    let lines = gateway.access_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["outcome"], &lines[0]["phase"]), (&"shutdown".into(), &"upload".into()));
    assert_eq!(upstream.connections(), 0);
}

/// Nobody is left out of the log by a second signal either.
#[tokio::test]
async fn a_second_signal_still_writes_the_lines() {
    let (mut gateway, mut upstream) =
        one_engine(|settings: Settings| settings.set("server.shutdown.drain", "10m")).await;
    let (_client, _call) = streaming(&gateway, &mut upstream, &["1"]).await;
    gateway.terminate();
    ready_is(&gateway, 503).await;
    gateway.terminate();
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    let lines = gateway.access_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["outcome"], "shutdown");
}

crate::over_h2! {
    a_started_gateway_is_alive_and_ready,
    sigterm_drains_and_tells_the_rest,
    the_drain_ends_with_the_last_stream,
    an_idle_gateway_exits_at_once,
    a_second_sigterm_stops_at_once,
    the_lame_duck_still_serves,
    a_waiting_exchange_is_told_by_status,
    leaving_during_the_drain_stops_the_engine,
    an_upload_is_told_when_the_drain_is_over,
    a_second_signal_still_writes_the_lines,
}
