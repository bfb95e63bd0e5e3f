//! Backend faults within an answer, rows B4 to B6: what came is delivered, the cut is told, and the
//! connection serves nobody else.

use crate::support::checks;
use crate::support::told::whole_json;
use crate::support::wire::Request;
use crate::support::{End, Row, Told, as_is};
use serde_json::json;

const EXCHANGES: usize = 30;

/// One of three engines cuts each stream after five tokens.
async fn cut_streams(fault: &str) {
    let row = Row::ill(3, fault, as_is).await;
    let told = row.streams(EXCHANGES).await;
    let cut = told.iter().filter(|told| **told != Told::whole()).count();
    for told in told.iter().filter(|told| **told != Told::whole()) {
        assert_eq!(*told, Told::cut(5, "upstream_disconnected"), "{fault}");
    }
    assert!(cut > 0, "{fault} struck nobody");
    assert_eq!(row.engines[0].count("failed").await, cut as u64, "only its own streams");
    row.lines(EXCHANGES).await;
    let fields = json!({
        "backend": "u1", "status": 200, "attempts": 1, "phase": "stream", "error": "upstream_disconnected",
        "streaming": true,
    });
    row.told("upstream_error", cut, fields).await;
    row.told("completed", EXCHANGES - cut, json!({ "attempts": 1 })).await;
    row.never_moved().await;
    row.settled(EXCHANGES).await;
}

/// B4: a reset in the middle of a stream is told to those on that node, and to nobody else.
#[tokio::test]
async fn b4_a_reset_within_a_stream_is_told() {
    cut_streams("reset_at=5").await;
}

/// B5: a FIN between two chunks, and within one.
#[tokio::test]
async fn b5_a_fin_within_a_stream_is_told() {
    cut_streams("fin_at=5").await;
    cut_streams("truncated_chunk_at=5").await;
}

/// B5: an answer that is no stream and stays short of its Content-Length is incomplete for the client.
#[tokio::test]
async fn b5_a_short_answer_stays_short() {
    for fault in ["fin_at=100", "reset_at=100"] {
        let row = Row::ill(1, fault, as_is).await;
        for _ in 0..5 {
            let mut client = row.gateway.send(&Request::unary()).await;
            assert_eq!(client.head().await.status(), 200, "{fault}");
            assert_eq!(client.end().await, End::Broken, "{fault}: incomplete must not look complete");
            assert_eq!(client.body().len(), 100, "{fault}: what came is delivered, and no more");
        }
        assert_eq!(row.engines[0].count("failed").await, 5, "{fault}");
        let fields =
            json!({ "status": 200, "attempts": 1, "phase": "unary", "error": "upstream_disconnected" });
        row.told("upstream_error", 5, fields).await;
        row.never_moved().await;
        row.settled(5).await;
    }
}

/// B5: where another engine could answer, a part that has gone out is still the only answer.
#[tokio::test]
async fn b5_a_part_that_has_gone_out_is_never_followed_by_another_answer() {
    for fault in ["fin_at=100", "reset_at=100"] {
        let row = Row::ill(2, fault, as_is).await;
        let answers = row.ask(EXCHANGES, &Request::unary()).await;
        let (cut, whole): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.end == End::Broken);
        assert!(!cut.is_empty() && cut.iter().all(|answer| answer.body.len() == 100), "{fault}");
        whole.into_iter().for_each(whole_json);
        assert_eq!(row.engines[0].count("failed").await, cut.len() as u64, "{fault}");
        row.told("upstream_error", cut.len(), json!({ "status": 200, "attempts": 1, "backend": "u1" })).await;
        row.never_moved().await;
        row.settled(EXCHANGES).await;
    }
}

/// B6: an unasked second answer behind the first, or a body longer than its Content-Length. The answer
/// is what its length says; the rest is nobody's.
#[tokio::test]
async fn b6_bytes_behind_an_answer_pollute_nobody() {
    for fault in ["extra_bytes", "short_content_length"] {
        let row = Row::ill(1, fault, as_is).await;
        let mut client = row.gateway.client().await;
        for round in 0..10 {
            // The ill answer and a healthy one in turn, so that one could read the other's bytes.
            row.engines[0].faults(if round % 2 == 0 { fault } else { "" }).await;
            client.send(Request::unary().bytes()).await;
            let answer = client.answer().await;
            if round % 2 == 0 && fault == "short_content_length" {
                assert_eq!(answer.end, End::Clean);
                assert!(answer.text().starts_with("{\"choices\""), "{}", answer.text());
            } else {
                whole_json(&answer);
            }
        }
        checks::at_rest(&row.gateway).await;
        let connections = row.engines[0].connections().await;
        assert!(connections >= 6, "{fault}: {connections} connections, so an ill one was used again");
        row.told("completed", 10, json!({ "status": 200, "attempts": 1 })).await;
        row.never_moved().await;
        row.settled(10).await;
    }
}

crate::over_h2! {
    b4_a_reset_within_a_stream_is_told,
    b5_a_fin_within_a_stream_is_told,
    b5_a_short_answer_stays_short,
    b5_a_part_that_has_gone_out_is_never_followed_by_another_answer,
    b6_bytes_behind_an_answer_pollute_nobody,
}
