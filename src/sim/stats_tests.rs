//! What the engine counts.

use super::*;

#[test]
fn a_request_is_settled_by_its_verdict() {
    let stats = Stats::default();
    stats.job("a").finished(Finish::Length);
    drop(stats.job("b"));
    let mut left = stats.job("c");
    assert_eq!(stats.json("e")["waiting"], 1);
    left.runs();
    left.step(2);
    left.aborted(99);
    left.step(3);
    assert_eq!(stats.json("e")["running"], 1);
    drop(left);
    let json = stats.json("e");
    for (field, count) in [("running", 0), ("completed", 1), ("failed", 1), ("aborted", 1)] {
        assert_eq!(json[field], count, "{field}");
    }
    assert_eq!((&json["tokens"], &json["tokens_after_close"]), (&json!(5), &json!(3)));
    assert_eq!(json["aborts"], json!([{"request_id": "c", "tokens": 2, "at_unix_us": 99}]));
}

#[test]
fn reset_keeps_what_is_running() {
    let stats = Stats::default();
    let mut running = stats.job("a");
    running.runs();
    stats.reset();
    let json = stats.json("e");
    assert_eq!((&json["running"], &json["peak_running"]), (&json!(1), &json!(1)));
    drop(running);
    assert_eq!(stats.json("e")["running"], 0);
}
