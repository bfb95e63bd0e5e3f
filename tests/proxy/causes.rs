//! What the log says of attempts that failed: the cause, and no line a request in an outage.

use crate::support;
use crate::support::sockets::{Blackhole, Refusing};
use crate::support::wait::{SOON, wait_until};
use crate::support::wire::Request;
use crate::support::{Gateway, Settings, checks, one_engine};
use serde_json::json;

/// Lines of the log that speak of this backend's failures.
fn told<'l>(log: &'l str, words: &str) -> Vec<&'l str> {
    log.lines().filter(|line| line.contains(words)).collect()
}

#[tokio::test]
async fn a_refused_connect_is_told_with_its_cause() {
    let refusing = Refusing::start();
    let gateway = Gateway::start(Settings::new(&[refusing.addr()])).await;
    checks::rejected(&gateway.ask(&Request::chat()).await, 502, "upstream_error");
    let addr = refusing.addr();
    gateway
        .wait_log(&format!("on u1 ({addr}): the backend could not be reached: connection refused\""))
        .await;
}

#[tokio::test]
async fn a_swallowed_connect_is_told_with_the_time_it_was_given() {
    let blackhole = Blackhole::start().await;
    let gateway = Gateway::start(Settings::new(&[blackhole.addr()]).set("timeouts.connect", "300ms")).await;
    checks::rejected(&gateway.ask(&Request::chat()).await, 504, "connect_timeout");
    gateway.wait_log("connecting to the backend timed out: no connection in 300ms").await;
}

#[tokio::test]
async fn an_answer_that_never_began_is_told_as_that() {
    let (gateway, mut upstream) = one_engine(support::as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    upstream.call().await.close();
    let answer = client.answer().await;
    checks::rejected(&answer, 502, "upstream_disconnected");
    assert_eq!(answer.json()["error"]["message"], "the backend closed the connection before it answered");
    gateway.wait_log("the backend closed the connection before it answered").await;

    let (gateway, mut upstream) = one_engine(support::as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    upstream.call().await.reset();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    gateway.wait_log("before it answered: connection reset by peer").await;
}

#[tokio::test]
async fn half_a_head_is_an_answer_that_was_not_complete() {
    let (gateway, mut upstream) = one_engine(support::as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 200 OK\r\ncontent-").await;
    call.close();
    checks::rejected(&client.answer().await, 502, "upstream_disconnected");
    gateway.wait_log("the backend closed the connection before its answer was complete").await;
}

#[tokio::test]
async fn a_silent_engine_is_told_with_the_setting_that_ended_it() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.first_event", "300ms")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let _silent = upstream.call().await;
    checks::rejected(&client.answer().await, 504, "first_event_timeout");
    gateway.wait_log("the backend sent no event in time: timeouts.first_event is 300ms").await;
}

/// One line a second and backend, which says how many it stands for; at `debug` each failure has its own.
#[tokio::test]
async fn an_outage_is_not_a_line_a_request() {
    const REQUESTS: usize = 40;
    for level in ["info", "debug"] {
        let refusing = Refusing::start();
        let settings = Settings::new(&[refusing.addr()]).set("log.level", json!(level));
        let gateway = Gateway::start(settings).await;
        let begin = std::time::Instant::now();
        for _ in 0..REQUESTS {
            assert_eq!(gateway.ask(&Request::chat()).await.status(), 502);
        }
        gateway.all_access(REQUESTS).await;
        let seconds = usize::try_from(begin.elapsed().as_secs()).unwrap();
        let log = gateway.log();
        let lines = told(&log, "could not be reached: ").len();
        if level == "info" {
            assert!((1..=seconds + 1).contains(&lines), "{lines} lines in {seconds}s: {log}");
        } else {
            let all = || told(&gateway.log(), "could not be reached: ").len() == REQUESTS;
            wait_until("each has its line", SOON, all).await;
        }
    }
}

/// What fails in another way within the same second has its line too; what had none is told by its number, and why.
#[tokio::test]
async fn each_kind_of_failure_is_told_and_none_is_lost() {
    let (gateway, mut upstream) = one_engine(support::as_is).await;
    const KINDS: [&str; 2] =
        ["closed the connection before it answered", "answered with something that is not HTTP"];
    for round in 0..6 {
        let mut client = gateway.send(&Request::chat()).await;
        let mut call = upstream.call().await;
        if round % 2 == 1 {
            call.send("hello\r\n\r\n").await;
        }
        call.close();
        assert_eq!(client.answer().await.status(), 502);
    }
    let lines =
        |kind: &str| gateway.log().lines().filter(|line| line.contains(kind)).map(str::to_owned).collect();
    // Each of its own counts for one, and says for how many more it stands.
    let told = |kind: &str| {
        let lines: Vec<String> = lines(kind);
        let more = |line: &String| {
            let (before, _) = line.split_once(" failure")?;
            before.rsplit([' ', '(']).next()?.parse::<usize>().ok()
        };
        let each = |line: &String| usize::from(line.contains("request ")) + more(line).unwrap_or(0);
        lines.iter().map(each).sum::<usize>()
    };
    for kind in KINDS {
        wait_until(&format!("all are told: {kind}"), SOON, || told(kind) == 3).await;
        assert!(lines(kind)[0].contains("request "), "the first at once: {:?}", lines(kind));
    }
}

/// The last attempt's failure is told after the first one's, which says that another node is tried.
#[tokio::test]
async fn both_attempts_are_told() {
    let (one, two) = (Refusing::start(), Refusing::start());
    let gateway = Gateway::start(Settings::new(&[one.addr(), two.addr()])).await;
    checks::rejected(&gateway.ask(&Request::chat()).await, 502, "upstream_error");
    gateway.only_access().await;
    gateway.wait_log("connection refused; trying another node").await;
    gateway.wait_log("connection refused\"").await;
    let log = gateway.log();
    assert_eq!(told(&log, "connection refused").len(), 2, "{log}");
    assert!(!log.contains("ReadError"), "{log}");
}
