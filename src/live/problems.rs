//! What is wrong, in words: what an operator on call reads first.
//!
//! Judged from the view alone, so that the page and the terminal say the same. Backends of a cluster that have the
//! same problem are one line, however many they are.

use super::view::{Backend, Cluster, Gateway, Level, Problem, Route, Totals};

/// Names that a line has room for.
const NAMES_MAX: usize = 4;
/// Fewer failures than this say nothing of a route.
const FAILED_LEAST: u64 = 3;
/// The part of a route's exchanges that may fail, from which on somebody should look, and from which on it is bad.
const FAILED_SHARES: [f64; 2] = [0.01, 0.2];
/// The part of a queue that is in use, from which on clients are about to be turned away.
const QUEUE_NEARLY_FULL: f64 = 0.9;

/// All that is wrong, worst first.
pub fn find(gateway: &Gateway, clusters: &[Cluster], routes: &[Route], totals: &Totals) -> Vec<Problem> {
    let mut found = of_gateway(gateway);
    for cluster in clusters {
        found.extend(of_cluster(cluster));
    }
    found.extend(routes.iter().filter_map(|route| of_route(route, totals)));
    found.sort_by_key(|problem| std::cmp::Reverse(problem.level));
    found
}

fn problem(level: Level, what: impl Into<String>, why: impl Into<String>) -> Problem {
    Problem { level, what: what.into(), why: why.into() }
}

fn of_gateway(gateway: &Gateway) -> Vec<Problem> {
    let mut found = Vec::new();
    match gateway.state.as_str() {
        "leaving" => found.push(problem(
            Level::Warning,
            "gateway",
            format!("on its way out: {} exchanges are still at work", gateway.exchanges),
        )),
        "checking" => found.push(problem(
            Level::Notice,
            "gateway",
            "not ready yet: some backends have not had their first check",
        )),
        _ => {}
    }
    if gateway.last_reload.result == "refused" {
        let first = gateway.last_reload.problems.first().map_or("no reason is known", String::as_str);
        let why =
            format!("the new file is refused, generation {} stays in force: {first}", gateway.generation);
        found.push(problem(Level::Warning, "configuration", why));
    }
    found
}

fn of_cluster(cluster: &Cluster) -> Vec<Problem> {
    let now = &cluster.now;
    let mut found = Vec::new();
    if now.up == 0 {
        let why = match now.of {
            0 => "it has no backends: no address of its name is known".to_owned(),
            of => format!("none of its {of} backends takes work"),
        };
        found.push(problem(Level::Critical, &now.name, why));
    }
    if now.waiting > 0 {
        let is_nearly_full = now.waiting as f64 >= QUEUE_NEARLY_FULL * now.queue_max as f64;
        let level = if is_nearly_full { Level::Critical } else { Level::Warning };
        let why = format!("{} of at most {} requests wait for a free slot", now.waiting, now.queue_max);
        found.push(problem(level, &now.name, why));
    }
    let mut kinds: Vec<(Level, String, Vec<&str>)> = Vec::new();
    for backend in &cluster.backends {
        let Some((level, why)) = of_backend(backend) else { continue };
        match kinds.iter_mut().find(|kind| (kind.0, kind.1.as_str()) == (level, why.as_str())) {
            Some(kind) => kind.2.push(&backend.now.name),
            None => kinds.push((level, why, vec![&backend.now.name])),
        }
    }
    found.extend(kinds.into_iter().map(|(level, why, names)| together(&now.name, level, &why, &names)));
    found
}

/// What is wrong with a backend, if anything is.
fn of_backend(backend: &Backend) -> Option<(Level, String)> {
    let now = &backend.now;
    let why = match now.state.as_str() {
        "serving" if now.rests_seconds.is_some() => "rests: it said 429 or 503".to_owned(),
        "serving" if now.level == Level::Ok => return None,
        "serving" | "out" => now.health.clone(),
        "draining" | "drained" => "drained by an operator".to_owned(),
        "drain_in_file" => "drained by the file".to_owned(),
        _ => "removed, and still at work".to_owned(),
    };
    Some((now.level, why))
}

fn together(cluster: &str, level: Level, why: &str, names: &[&str]) -> Problem {
    if let [one] = names {
        return problem(level, format!("{cluster}/{one}"), why);
    }
    let shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    problem(level, format!("{cluster}, {} backends", names.len()), format!("{why} ({shown}{more})"))
}

fn of_route(route: &Route, totals: &Totals) -> Option<Problem> {
    let share = route.failed as f64 / route.requests.max(1) as f64;
    let level = match share {
        _ if route.failed < FAILED_LEAST || share < FAILED_SHARES[0] => return None,
        share if share < FAILED_SHARES[1] => Level::Warning,
        _ => Level::Critical,
    };
    let why = format!(
        "{} of {} requests failed in the last {:.0} s ({:.0}%)",
        route.failed,
        route.requests,
        totals.window_seconds,
        share * 100.0
    );
    Some(problem(level, format!("route {}", route.name), why))
}

#[cfg(test)]
mod tests;
