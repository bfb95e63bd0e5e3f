//! A view as lines of text: what is wrong first, then figures, failures, routes and clusters.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::figures::{NONE, bars, count, plural, rate, span as lasting, time};
use super::fleet;
use super::table::{self, Cell, Side, cell, span};
use crate::live::view::{Cluster, Failure, Level, Percentiles, View};

/// Colours that every terminal has, on whatever ground.
pub(super) const DIM: Style = Style::new().fg(Color::DarkGray);
pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Ways to fail that are shown; the page has them all.
const FAILURES: usize = 8;
/// Seconds of history that have room.
const HISTORY: usize = 20;

/// All lines.
pub(super) fn of(view: &View) -> Vec<Line<'static>> {
    let mut lines = vec![title(view), verdict(view)];
    lines.extend(view.problems.iter().map(|problem| {
        let (mark, style) = mark(problem.level);
        Line::from(vec![
            span(format!("  {mark} "), style),
            span(&problem.what, BOLD),
            span(format!("  {}", problem.why), PLAIN),
        ])
    }));
    lines.push(Line::default());
    lines.extend(figures(view));
    lines.push(Line::default());
    lines.extend(failures(view));
    lines.push(Line::default());
    lines.extend(routes(view));
    // Last, as there may be very many.
    for cluster in &view.clusters {
        lines.push(Line::default());
        lines.extend(fleet::cluster(cluster));
    }
    lines
}

/// The sign and the colour of a level.
pub(super) fn mark(level: Level) -> (char, Style) {
    match level {
        Level::Ok => ('●', Style::new().fg(Color::Green)),
        Level::Notice => ('○', DIM),
        Level::Warning => ('▲', Style::new().fg(Color::Yellow)),
        Level::Critical => ('■', Style::new().fg(Color::Red)),
    }
}

fn title(view: &View) -> Line<'static> {
    let gateway = &view.gateway;
    let facts = format!(
        "  {} · up {} · generation {} · {} · {}",
        gateway.state,
        lasting(gateway.uptime_seconds),
        gateway.generation,
        plural(gateway.connections, "connection"),
        gateway.version
    );
    Line::from(vec![span("streamgate", BOLD.fg(Color::Blue)), span(facts, DIM)])
}

fn verdict(view: &View) -> Line<'static> {
    let bad = view.problems.iter().filter(|problem| problem.level > Level::Notice);
    let (number, worst) = bad.fold((0, Level::Ok), |(number, worst), one| (number + 1, worst.max(one.level)));
    let head = match number {
        0 if view.clusters.is_empty() => "Fixed answers only".to_owned(),
        0 => "All well".to_owned(),
        _ => plural(number, "problem"),
    };
    let failed = match view.totals.failed {
        0 => "nothing failed".to_owned(),
        failed => format!("{failed} failed"),
    };
    let gist = format!("  {}, {failed} in the last {:.0} s", serving(view), view.totals.window_seconds);
    Line::from(vec![span(head, mark(worst).1.add_modifier(Modifier::BOLD)), span(gist, PLAIN)])
}

/// How many backends serve. A file without clusters is sound and has none: "0 of 0" would say nothing.
fn serving(view: &View) -> String {
    if view.clusters.is_empty() {
        return "no engines are configured".to_owned();
    }
    let sum = |figure: fn(&Cluster) -> usize| view.clusters.iter().map(figure).sum::<usize>();
    let (up, of) = (sum(|cluster| cluster.now.up), sum(|cluster| cluster.now.of));
    format!("{up} of {} serving", plural(of, "backend"))
}

/// The figures of all together, in pairs of a name and a value.
fn figures(view: &View) -> Vec<Line<'static>> {
    let totals = &view.totals;
    let row = |pairs: Vec<(&str, Cell)>| {
        pairs.into_iter().flat_map(|(name, value)| [cell(name, DIM), value]).collect::<Vec<_>>()
    };
    let live = |value: Option<f64>, series: &[f64]| {
        vec![
            span(format!("{:>5} ", rate(value)), BOLD),
            span(bars(series, HISTORY), Style::new().fg(Color::Blue)),
        ]
    };
    let failed = if totals.failed == 0 { BOLD } else { mark(Level::Warning).1 };
    let waiting = if totals.waiting == 0 { BOLD } else { mark(Level::Warning).1 };
    let saved = format!("{} (≈ {} tokens saved)", totals.cancels, count(totals.tokens_saved as f64));
    let first = row(vec![
        ("Streams", cell(count(totals.streams as f64), BOLD)),
        ("Tokens/s", live(totals.tokens_per_second, &view.history.tokens_per_second)),
        ("First token", pair(&totals.first_token)),
        ("Left early", cell(saved, PLAIN)),
    ]);
    let second = row(vec![
        ("Waiting", cell(count(totals.waiting as f64), waiting)),
        ("Req/s", live(totals.requests_per_second, &view.history.requests_per_second)),
        ("Gap", pair(&totals.gap)),
        (
            "Failed",
            cell(format!("{} of {}, {} refused", totals.failed, totals.requests, totals.refused), failed),
        ),
    ]);
    table::lines(&[Side::Left; 8], vec![first, second])
}

/// Half, and 99 of 100.
pub(super) fn pair(times: &Percentiles) -> Cell {
    match times.p99 {
        None => cell(NONE, DIM),
        Some(_) => vec![span(time(times.p50), PLAIN), span(format!(" / {}", time(times.p99)), DIM)],
    }
}

pub(super) fn head(names: &[&str]) -> Vec<Cell> {
    names.iter().map(|name| cell(name, DIM)).collect()
}

fn failures(view: &View) -> Vec<Line<'static>> {
    let (theirs, ours): (Vec<&Failure>, Vec<_>) =
        view.failures.iter().partition(|failure| failure.side == "client");
    let mut lines = vec![Line::from(span("Recent failures", BOLD))];
    if ours.is_empty() {
        lines.push(Line::from(span("  none since the start", DIM)));
    }
    let rows = ours.iter().take(FAILURES).map(|failure| {
        let ago = view.gateway.unix_ms.saturating_sub(failure.unix_ms) / 1_000;
        let place = match (&failure.cluster, &failure.backend) {
            (Some(cluster), Some(backend)) => format!("{cluster}/{backend}"),
            (Some(cluster), None) => cluster.clone(),
            _ => "gateway".to_owned(),
        };
        vec![
            cell(format!("{} ago", lasting(ago)), DIM),
            cell(format!("×{}", failure.times), PLAIN),
            cell(place, BOLD),
            cell(failure.status.to_string(), DIM),
            cell(failure.code.as_ref().unwrap_or(&failure.outcome), DIM),
            cell(failure.why.as_deref().unwrap_or_default(), PLAIN),
        ]
    });
    use Side::{Left, Right};
    lines.extend(table::lines(&[Right, Right, Left, Left, Left, Left], rows.collect()));
    if !theirs.is_empty() {
        let times: u64 = theirs.iter().map(|failure| failure.times).sum();
        let text = format!("  {} ended by what clients did", plural(times as usize, "exchange"));
        lines.push(Line::from(span(text, DIM)));
    }
    lines
}

fn routes(view: &View) -> Vec<Line<'static>> {
    let mut rows = vec![head(&["Route", "Streams", "Req/s", "Failed", "First token", "Gap"])];
    rows.extend(view.routes.iter().map(|route| {
        vec![
            cell(&route.name, BOLD),
            cell(count(route.streams as f64), PLAIN),
            cell(rate(route.requests_per_second), PLAIN),
            cell(count(route.failed as f64), if route.failed > 0 { mark(Level::Warning).1 } else { PLAIN }),
            pair(&route.first_token),
            pair(&route.gap),
        ]
    }));
    use Side::{Left, Right};
    table::lines(&[Left, Right, Right, Right, Right, Right], rows)
}
