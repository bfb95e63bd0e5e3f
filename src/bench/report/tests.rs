use serde_json::{Value, json};

use super::*;

fn report() -> Report {
    let spread = |count, p50| Some(Spread { count, p50, p90: 2 * p50, p99: 3 * p50, max: 4 * p50 });
    let ended = Counts { streams: 7, slow: 1, unary: 1, cancelled: 1, wrong: 1 };
    Report {
        target: "http://h/v1/chat/completions".into(),
        model: "m".into(),
        seconds: 2.0,
        interrupted: false,
        requests: Requests { begun: 10, ended, unfinished: 0, left_out: 0 },
        tokens: 640,
        tokens_per_second: 320.0,
        requests_per_second: 5.0,
        microseconds: Times {
            first_event: spread(9, 200_000),
            gap: spread(571, 20_000),
            stream: spread(6, 600_000),
            unary: None,
            added: spread(580, 300),
            cancel: None,
        },
        errors: BTreeMap::from([("order".into(), 1)]),
        wrong: vec![Told {
            request_id: "bench-1-3".into(),
            kind: "order".into(),
            what: "token 5 came where 4 was due".into(),
        }],
        reloads: Some(reloads::Counts {
            asked: 2,
            results: [("unchanged".into(), 2)].into(),
            ..Default::default()
        }),
    }
}

#[test]
fn people_are_told_in_a_table() {
    let table = "\
m on http://h/v1/chat/completions

                                  count        p50        p90        p99        max
time to first event                   9   200.0 ms   400.0 ms   600.0 ms   800.0 ms
gap between events                  571    20.0 ms    40.0 ms    60.0 ms    80.0 ms
added per event                     580    0.30 ms    0.60 ms    0.90 ms    1.20 ms
whole stream                          6   600.0 ms     1.20 s     1.80 s     2.40 s

10 requests in 2.0 s: 7 whole streams, 1 of them read slowly, 1 whole answer, 1 cancelled, 1 wrong
640 tokens, 320 a second; 5 requests a second
2 reloads: 2 unchanged
wrong: 1 x order
  bench-1-3: token 5 came where 4 was due";
    assert_eq!(report().text(), table);
}

#[test]
fn a_run_that_was_ended_early_says_so() {
    let mut report = report();
    report.interrupted = true;
    report.requests =
        Requests { begun: 3, ended: Counts { streams: 1, ..Counts::default() }, unfinished: 2, left_out: 4 };
    let line = "3 requests in 2.0 s, interrupted: 1 whole stream, 2 not ended, 4 arrivals left out, too many were open, 0 wrong";
    assert!(report.text().contains(line), "{}", report.text());
}

#[test]
fn programs_are_told_the_same() {
    let value: Value = serde_json::to_value(report()).unwrap();
    assert_eq!(
        value["requests"],
        json!({ "begun": 10, "streams": 7, "slow": 1, "unary": 1, "cancelled": 1, "wrong": 1,
                "unfinished": 0, "left_out": 0 })
    );
    assert_eq!(
        value["microseconds"]["added"],
        json!({ "count": 580, "p50": 300, "p90": 600, "p99": 900, "max": 1200 })
    );
    assert_eq!((&value["microseconds"]["cancel"], &value["errors"]), (&Value::Null, &json!({ "order": 1 })));
    assert_eq!(value["wrong"][0]["request_id"], "bench-1-3");
}

#[test]
fn a_failed_reload_is_as_wrong_as_an_answer() {
    let mut right = report();
    right.requests.ended.wrong = 0;
    assert!(report().is_wrong() && !right.is_wrong());
    right.reloads =
        Some(reloads::Counts { asked: 1, failed: 1, told: vec!["status 422".into()], ..Default::default() });
    assert!(right.is_wrong());
    assert!(right.text().contains("1 reload: 1 failed\n  status 422"), "{}", right.text());
}
