use super::super::view::{BackendNow, ClusterNow, Output, Percentiles, Reload};
use super::*;

fn gateway(state: &str, reload: &str) -> Gateway {
    let problems = vec!["c.yaml:3: routes[0]: a first".to_owned(), "and a second".to_owned()];
    Gateway {
        version: "0".into(),
        unix_ms: 0,
        uptime_seconds: 0,
        state: state.into(),
        generation: 7,
        file: None,
        last_reload: Reload { result: reload.into(), cause: "a signal".into(), unix_seconds: 0, problems },
        acts: false,
        connections: 0,
        exchanges: 4,
        held_bytes: 0,
    }
}

fn backend(name: &str, level: Level, state: &str, health: &str) -> Backend {
    let now = BackendNow {
        name: name.into(),
        address: "127.0.0.1:1".into(),
        level,
        state: state.into(),
        health: health.into(),
        share: 1.0,
        rests_seconds: None,
        load: 0,
        in_flight: 0,
        max_inflight: None,
        drained: false,
        engine: None,
    };
    Backend { now, output: Output::default() }
}

fn well(name: &str) -> Backend {
    backend(name, Level::Ok, "serving", "up")
}

fn out(name: &str) -> Backend {
    backend(name, Level::Warning, "out", "ejected: the backend could not be reached")
}

fn cluster(waiting: usize, backends: Vec<Backend>) -> Cluster {
    let up = backends.iter().filter(|backend| backend.now.state == "serving").count();
    let now = ClusterNow {
        name: "c".into(),
        discover: None,
        up,
        of: backends.len(),
        in_flight: 0,
        waiting,
        queue_max: 10,
    };
    Cluster { now, output: Output::default(), backends }
}

fn route(requests: u64, failed: u64) -> Route {
    Route {
        name: "r".into(),
        streams: 0,
        requests_per_second: None,
        requests,
        failed,
        first_token: Percentiles::default(),
        gap: Percentiles::default(),
    }
}

fn found(gateway: &Gateway, clusters: &[Cluster], routes: &[Route]) -> Vec<(Level, String, String)> {
    let totals = Totals {
        window_seconds: 60.0,
        streams: 0,
        waiting: 0,
        tokens_per_second: None,
        requests_per_second: None,
        requests: 0,
        failed: 0,
        refused: 0,
        cancels: 0,
        tokens_saved: 0,
        first_token: Percentiles::default(),
        gap: Percentiles::default(),
    };
    let found = find(gateway, clusters, routes, &totals);
    found.into_iter().map(|problem| (problem.level, problem.what, problem.why)).collect()
}

fn one(level: Level, what: &str, why: &str) -> Vec<(Level, String, String)> {
    vec![(level, what.into(), why.into())]
}

fn of_clusters(clusters: &[Cluster]) -> Vec<(Level, String, String)> {
    found(&gateway("serving", "applied"), clusters, &[])
}

#[test]
fn nothing_is_wrong_with_what_is_well() {
    let clusters = [cluster(0, vec![well("a"), well("b")])];
    assert_eq!(found(&gateway("serving", "unchanged"), &clusters, &[route(1_000, 2), route(4, 0)]), []);
}

#[test]
fn a_backend_is_told_with_what_is_wrong_with_it() {
    let why = "ejected: the backend could not be reached";
    assert_eq!(of_clusters(&[cluster(0, vec![well("a"), out("b")])]), one(Level::Warning, "c/b", why));
    let drained = backend("b", Level::Notice, "draining", "up");
    let want = one(Level::Notice, "c/b", "drained by an operator");
    assert_eq!(of_clusters(&[cluster(0, vec![well("a"), drained])]), want);
    let mut rests = backend("b", Level::Notice, "serving", "up");
    rests.now.rests_seconds = Some(3.0);
    let want = one(Level::Notice, "c/b", "rests: it said 429 or 503");
    assert_eq!(of_clusters(&[cluster(0, vec![well("a"), rests])]), want);
}

#[test]
fn many_with_the_same_problem_are_one_line() {
    let mut backends: Vec<_> = (1..=30).map(|n| out(&format!("g{n}"))).collect();
    backends.push(well("a"));
    let why = "ejected: the backend could not be reached (g1, g2, g3, g4 and 26 more)";
    assert_eq!(of_clusters(&[cluster(0, backends)]), one(Level::Warning, "c, 30 backends", why));
}

#[test]
fn a_cluster_without_backends_comes_first() {
    let all = of_clusters(&[cluster(0, vec![well("a")]), cluster(0, vec![out("a"), out("b")])]);
    assert_eq!(all[0], (Level::Critical, "c".into(), "none of its 2 backends takes work".into()));
    assert_eq!((all.len(), all[1].0), (2, Level::Warning));
    let why = "it has no backends: no address of its name is known";
    assert_eq!(of_clusters(&[cluster(0, Vec::new())]), one(Level::Critical, "c", why));
}

#[test]
fn a_queue_is_worse_when_it_is_nearly_full() {
    let why = |waiting| format!("{waiting} of at most 10 requests wait for a free slot");
    assert_eq!(of_clusters(&[cluster(8, vec![well("a")])]), one(Level::Warning, "c", &why(8)));
    assert_eq!(of_clusters(&[cluster(9, vec![well("a")])]), one(Level::Critical, "c", &why(9)));
}

#[test]
fn a_route_that_fails_is_told_by_its_share() {
    let level = |requests, failed| {
        let found = found(&gateway("serving", "applied"), &[], &[route(requests, failed)]);
        found.first().map(|problem| problem.0)
    };
    assert_eq!(level(2, 2), None, "too few to say");
    assert_eq!(level(1_000, 9), None, "too small a part");
    assert_eq!(level(1_000, 10), Some(Level::Warning));
    assert_eq!(level(10, 3), Some(Level::Critical));
    let why = "3 of 10 requests failed in the last 60 s (30%)";
    let all = found(&gateway("serving", "applied"), &[], &[route(10, 3)]);
    assert_eq!(all, one(Level::Critical, "route r", why));
}

#[test]
fn the_gateway_says_that_it_leaves_and_what_file_it_refused() {
    let all = found(&gateway("leaving", "refused"), &[], &[]);
    assert_eq!(all[0].2, "on its way out: 4 exchanges are still at work");
    let why = "the new file is refused, generation 7 stays in force: c.yaml:3: routes[0]: a first";
    assert_eq!(all[1], (Level::Warning, "configuration".into(), why.into()));
    assert_eq!(found(&gateway("checking", "applied"), &[], &[])[0].0, Level::Notice);
}
