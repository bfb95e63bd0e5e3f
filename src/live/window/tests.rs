use std::sync::Arc;
use std::time::Instant;

use super::super::sample::ClusterCounts;
use super::super::view::{Gateway, Level, Reload};
use super::*;
use crate::spread::Spread;

fn at(start: Instant, millis: u64) -> Instant {
    start + Duration::from_millis(millis)
}

fn times(bounds: &'static [f64], millis: &[u64]) -> Counts {
    let spread = Spread::new(bounds);
    millis.iter().for_each(|millis| spread.add(Duration::from_millis(*millis)));
    spread.read()
}

fn output(tokens: u64, first_token: &[u64], gaps: &[u64]) -> BackendCounts {
    BackendCounts { tokens, first_token: times(&WAITS, first_token), gaps: times(&GAPS, gaps) }
}

/// One cluster `c` with a backend `a`, whose tokens are these, and one route with these exchanges.
fn sample(moment: Instant, tokens: u64, requests: u64, failed: u64) -> Sample {
    let mut sample = Sample::zero(moment);
    let counts = ClusterCounts {
        output: output(tokens, &[], &[]),
        backends: [(Arc::from("a"), output(tokens, &[], &[]))].into(),
    };
    sample.clusters.insert("c".into(), counts);
    sample.routes.insert("r".into(), RouteCounts { requests, failed, ..RouteCounts::default() });
    sample
}

fn backend(name: &str) -> BackendNow {
    BackendNow {
        name: name.into(),
        address: "127.0.0.1:1".into(),
        level: Level::Ok,
        state: "serving".into(),
        health: "up".into(),
        share: 1.0,
        rests_seconds: None,
        load: 0,
        in_flight: 0,
        max_inflight: None,
        drained: false,
        engine: None,
    }
}

fn now() -> Now {
    let last_reload =
        Reload { result: "applied".into(), cause: "start".into(), unix_seconds: 0, problems: Vec::new() };
    let gateway = Gateway {
        version: "0".into(),
        unix_ms: 0,
        uptime_seconds: 0,
        state: "serving".into(),
        generation: 1,
        file: None,
        last_reload,
        acts: false,
        connections: 0,
        exchanges: 0,
        held_bytes: 0,
    };
    let cluster = ClusterNow {
        name: "c".into(),
        discover: None,
        up: 1,
        of: 1,
        in_flight: 0,
        waiting: 2,
        queue_max: 10,
    };
    Now {
        gateway,
        clusters: vec![(cluster, vec![backend("a"), backend("not sampled")])],
        routes: vec![("r".into(), 3)],
        failures: Vec::new(),
    }
}

#[test]
fn the_first_view_of_an_old_process_knows_no_rates() {
    let window = Window::new(sample(Instant::now(), 1_000, 10, 1));
    let view = window.view(now());
    assert_eq!((view.totals.window_seconds, view.totals.requests), (0.0, 0));
    assert_eq!(view.totals.tokens_per_second, None);
    assert_eq!(view.clusters[0].output, Output::default());
    assert!(view.history.tokens_per_second.is_empty());
    assert_eq!((view.totals.streams, view.totals.waiting), (3, 2), "what is known without a look back");
}

#[test]
fn a_young_process_is_looked_back_on_to_its_start() {
    let start = Instant::now();
    let mut window = Window::new(Sample::zero(start));
    window.add(sample(at(start, 2_000), 100, 8, 2));
    let view = window.view(now());
    assert_eq!((view.totals.window_seconds, view.totals.requests, view.totals.failed), (2.0, 8, 2));
    assert_eq!(view.totals.tokens_per_second, Some(50.0));
    assert_eq!(view.routes[0].requests_per_second, Some(4.0));
}

#[test]
fn rates_are_of_the_last_seconds_and_counts_of_the_whole_window() {
    let start = Instant::now();
    let mut window = Window::new(sample(start, 1_000, 100, 0));
    for second in 1..=10 {
        // Ten a second at first, then a hundred.
        let tokens = if second <= 5 { 10 * second } else { 50 + 100 * (second - 5) };
        window.add(sample(at(start, second * 1_000), 1_000 + tokens, 100 + 2 * second, second / 5));
    }
    let view = window.view(now());
    assert_eq!(view.totals.tokens_per_second, Some(100.0));
    assert_eq!(view.clusters[0].backends[0].output.tokens_per_second, Some(100.0));
    assert_eq!((view.totals.requests, view.totals.failed, view.totals.window_seconds), (20, 2, 10.0));
    assert_eq!(view.history.tokens_per_second, [[10.0; 5], [100.0; 5]].concat());
    assert_eq!(view.history.failed_per_second.iter().sum::<f64>(), 2.0);
    assert_eq!(view.clusters[0].backends[1].output, Output::default(), "nothing is known of it, not 0");
}

#[test]
fn what_is_older_than_the_window_is_forgotten() {
    let start = Instant::now();
    let mut window = Window::new(Sample::zero(start));
    (1..=200).for_each(|second| window.add(sample(at(start, second * 1_000), second * 7, second, 0)));
    let view = window.view(now());
    assert_eq!((view.totals.window_seconds, view.totals.requests), (60.0, 60));
    assert_eq!((window.samples.len(), view.history.tokens_per_second.len()), (61, 60));
    // Nobody has watched for an hour: what was before says nothing of now.
    window.add(sample(at(start, 3_800_000), 9_999, 9_999, 0));
    assert_eq!((window.samples.len(), window.view(now()).totals.tokens_per_second), (1, None));
}

#[test]
fn percentiles_are_of_the_window_and_merge_over_routes() {
    let start = Instant::now();
    let with = |moment, slow: &[u64], fast: &[u64]| {
        let mut sample = Sample::zero(moment);
        for (name, millis) in [("slow", slow), ("r", fast)] {
            let counts = RouteCounts { first_token: times(&WAITS, millis), ..RouteCounts::default() };
            sample.routes.insert(name.into(), counts);
        }
        sample
    };
    // What was before the window is slow and must not count.
    let mut window = Window::new(with(start, &[200_000; 50], &[200_000; 50]));
    let slow = [vec![200_000; 50], vec![900; 10]].concat();
    let fast = [vec![200_000; 50], vec![8; 90]].concat();
    window.add(with(at(start, 1_000), &slow, &fast));
    let view = window.view(now());
    // 90 in (0.005, 0.01] and 10 in (0.5, 1.0].
    let close =
        |got: Option<f64>, want: f64| assert!((got.unwrap() - want).abs() < 1e-6, "{got:?} is not {want}");
    close(view.totals.first_token.p50, 0.005 + 0.005 * 50.0 / 90.0);
    close(view.totals.first_token.p90, 0.01);
    close(view.totals.first_token.p99, 0.95);
    close(view.routes[0].first_token.p99, 0.005 + 0.005 * 0.99);
    assert_eq!(view.totals.gap, Percentiles::default());
}

#[test]
fn clients_that_left_are_counted_by_phase() {
    let start = Instant::now();
    let mut window = Window::new(Sample { cancels: [0, 0, 0, 0, 5, 0], ..Sample::zero(start) });
    let mut last = Sample { cancels: [0, 1, 0, 0, 9, 0], ..Sample::zero(at(start, 1_000)) };
    last.routes.insert("r".into(), RouteCounts { saved: 70, ..RouteCounts::default() });
    window.add(last);
    let view = window.view(now());
    let counts: Vec<_> = view.cancels.iter().map(|left| (left.phase.as_str(), left.count)).collect();
    assert_eq!(counts, [("queue", 1), ("stream", 4)]);
    assert_eq!((view.totals.cancels, view.totals.tokens_saved), (5, 70));
}

/// A new process counts from zero, and so may a route that a reload has brought back.
#[test]
fn counts_that_go_back_are_no_rate() {
    let start = Instant::now();
    let mut window = Window::new(sample(start, 1_000, 100, 3));
    window.add(sample(at(start, 1_000), 10, 1, 0));
    let view = window.view(now());
    assert_eq!((view.totals.tokens_per_second, view.totals.requests), (Some(0.0), 0));
}

/// The page and the terminal read what is written.
#[test]
fn a_view_is_read_back_as_it_was_written() {
    let start = Instant::now();
    let mut window = Window::new(Sample::zero(start));
    window.add(sample(at(start, 3_000), 100, 8, 2));
    let view = window.view(now());
    let text = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<View>(&text).unwrap(), view);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["clusters"][0]["backends"][0]["name"], "a", "{text}");
    assert_eq!(value["clusters"][0]["tokens_per_second"], 33.33);
}
