//! A cluster and its backends as lines of text.

use ratatui::style::{Color, Style};
use ratatui::text::Line;

use super::figures::{NONE, rate, span as lasting};
use super::lines::{BOLD, DIM, PLAIN, head, mark, pair};
use super::table::{self, Cell, Side, cell, span};
use crate::live::view::{Backend, Cluster, Engine, Level};

/// Cells of a bar of load.
const METER: usize = 8;

/// The lines of a cluster.
pub(super) fn cluster(cluster: &Cluster) -> Vec<Line<'static>> {
    let now = &cluster.now;
    let level = match now.up {
        0 => Level::Critical,
        up if up < now.of => Level::Warning,
        _ => Level::Ok,
    };
    let mut facts =
        format!("  {} in flight · {} tokens/s", now.in_flight, rate(cluster.output.tokens_per_second));
    if now.waiting > 0 {
        facts += &format!(" · {} waiting", now.waiting);
    }
    let serving = span(format!("  {} of {} serving", now.up, now.of), mark(level).1);
    let mut lines = vec![Line::from(vec![span(&now.name, BOLD), serving, span(facts, DIM)])];
    use Side::{Left, Right};
    let widest = cluster.backends.iter().map(|backend| backend.now.in_flight).max().unwrap_or(0).max(1);
    let mut rows =
        vec![head(&["Backend", "State", "In flight", "", "Tokens/s", "First token", "Gap", "Engine"])];
    rows.extend(cluster.backends.iter().map(|each| backend(each, widest)));
    lines.extend(table::lines(&[Left, Left, Left, Right, Right, Right, Right, Left], rows));
    let hidden = now.of.saturating_sub(cluster.backends.len());
    if hidden > 0 {
        lines.push(Line::from(span(format!("  {hidden} more that serve are not shown"), DIM)));
    }
    lines
}

fn backend(backend: &Backend, widest: usize) -> Vec<Cell> {
    let now = &backend.now;
    let (sign, style) = mark(now.level);
    let part = now.in_flight as f64 / now.max_inflight.unwrap_or(widest).max(1) as f64;
    let full = ((part * METER as f64).ceil() as usize).min(METER);
    let meter =
        vec![span("█".repeat(full), Style::new().fg(Color::Blue)), span("░".repeat(METER - full), DIM)];
    let most = now.max_inflight.map(|most| format!(" / {most}")).unwrap_or_default();
    vec![
        vec![span(format!("{sign} "), style), span(&now.name, BOLD)],
        cell(state(backend), if now.level == Level::Ok { PLAIN } else { style }),
        meter,
        cell(format!("{}{most}", now.in_flight), PLAIN),
        cell(rate(backend.output.tokens_per_second), PLAIN),
        pair(&backend.output.first_token),
        pair(&backend.output.gap),
        now.engine.as_ref().map_or_else(|| cell(NONE, DIM), engine),
    ]
}

/// What an engine says of itself; dim and with its age where that is old.
fn engine(engine: &Engine) -> Cell {
    let kv = engine.kv_usage.map(|kv| format!(" · KV {:.0}%", kv * 100.0)).unwrap_or_default();
    let figures = format!("{} run · {} wait{kv}", engine.running, engine.waiting);
    if engine.is_old {
        cell(format!("{figures} · {} ago", lasting(engine.age_seconds as u64)), DIM)
    } else {
        cell(figures, PLAIN)
    }
}

/// What it is good for, in a few words; the whole of what is wrong stands above.
fn state(backend: &Backend) -> String {
    let now = &backend.now;
    let health = || now.health.split(':').next().unwrap_or_default().to_owned();
    match now.state.as_str() {
        "out" => health(),
        "drain_in_file" => "drained by the file".to_owned(),
        "serving" => match now.rests_seconds {
            Some(rests) => format!("rests for {rests:.0} s"),
            None if now.level != Level::Ok => health(),
            None if now.share < 1.0 => format!("back, at {:.0}%", now.share * 100.0),
            None => "serving".to_owned(),
        },
        other => other.to_owned(),
    }
}
