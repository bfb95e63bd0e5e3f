use crossterm::event::{KeyEvent, KeyEventState};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::*;

fn backend(name: &str, state: &str, level: &str) -> Value {
    let none = json!({ "p50": null, "p90": null, "p99": null });
    json!({
        "name": name, "address": "127.0.0.1:1", "level": level, "state": state, "health": "ejected: it was cut",
        "share": 1.0, "rests_seconds": null, "load": 5, "in_flight": 2, "max_inflight": 4, "drained": false,
        "engine": { "running": 3, "waiting": 1, "kv_usage": 0.5, "age_seconds": 42.7, "is_old": state == "out" },
        "tokens_per_second": 1234.0, "first_token": { "p50": 0.12, "p90": 0.3, "p99": 1.5 }, "gap": none,
    })
}

/// A gateway with so many backends, one of which is out.
fn view(backends: usize) -> View {
    let times = json!({ "p50": 0.18, "p90": 0.2, "p99": 0.9 });
    let mut all = vec![backend("gpu-0", "out", "warning")];
    all.extend((1..backends).map(|n| backend(&format!("gpu-{n}"), "serving", "ok")));
    let view = json!({
        "gateway": {
            "version": "0.1.0", "unix_ms": 60_000, "uptime_seconds": 7_500, "state": "serving", "generation": 3,
            "file": null, "acts": false, "connections": 1, "exchanges": 1, "held_bytes": 0,
            "last_reload": { "result": "applied", "cause": "start", "unix_seconds": 0, "problems": [] },
        },
        "problems": [{ "level": "warning", "what": "qwen/gpu-0", "why": "ejected: it was cut" }],
        "totals": {
            "window_seconds": 60.0, "streams": 37, "waiting": 0, "tokens_per_second": 1342.0,
            "requests_per_second": 11.0, "requests": 212, "failed": 7, "refused": 9, "cancels": 28,
            "tokens_saved": 2090, "first_token": times, "gap": times,
        },
        "history": {
            "tokens_per_second": [1.0, 2.0], "requests_per_second": [1.0, 1.0], "failed_per_second": [0.0, 0.0],
        },
        "clusters": [{
            "name": "qwen", "discover": null, "up": backends - 1, "of": backends, "in_flight": 8, "waiting": 0,
            "queue_max": 9, "tokens_per_second": 99.0, "first_token": times, "gap": times, "backends": all,
        }],
        "routes": [{
            "name": "chat", "streams": 37, "requests_per_second": 11.0, "requests": 212, "failed": 7,
            "first_token": times, "gap": times,
        }],
        "cancels": [],
        "failures": [{
            "unix_ms": 57_000, "times": 7, "side": "backend", "route": "chat", "cluster": "qwen",
            "backend": "gpu-0", "status": 200, "outcome": "upstream_error", "code": "upstream_disconnected",
            "why": "it was\u{1b}[2Jcut", "request_id": "r",
        }],
    });
    serde_json::from_value(view).unwrap()
}

fn screen(shown: &mut Shown, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(110, height)).unwrap();
    terminal.draw(|frame| draw(frame, shown)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned()).collect()
}

#[test]
fn what_is_wrong_stands_first() {
    let mut shown = Shown { view: Some(view(3)), ..Shown::default() };
    let rows = screen(&mut shown, 24);
    assert_eq!(rows[0], "streamgate  serving · up 2 h 5 min · generation 3 · 1 connection · 0.1.0");
    assert_eq!(rows[1], "1 problem  2 of 3 backends serving, 7 failed in the last 60 s");
    assert_eq!(rows[2], "  ▲ qwen/gpu-0  ejected: it was cut");
    assert!(rows.iter().any(|row| row.contains("Tokens/s   1342 ▅█")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains("7 of 212, 9 refused")), "{rows:#?}");
    let failure = "  3 s ago  ×7  qwen/gpu-0  200  upstream_disconnected  it was·[2Jcut";
    assert!(rows.iter().any(|row| row == failure), "a terminal is told nothing: {rows:#?}");
    let out = rows.iter().find(|row| row.contains("▲ gpu-0")).unwrap();
    assert!(out.contains("ejected  ████░░░░   2 / 4"), "{out}");
    assert!(out.contains("120 ms / 1.50 s") && out.ends_with("3 run · 1 wait · KV 50% · 42 s ago"), "{out}");
    let serving = rows.iter().find(|row| row.contains("● gpu-1")).unwrap();
    assert!(serving.ends_with("3 run · 1 wait · KV 50%"), "{serving}");
    assert_eq!(rows[23], "q ends");
}

#[test]
fn a_gateway_without_engines_says_so() {
    let mut bare = view(2);
    bare.problems.clear();
    bare.clusters.clear();
    bare.totals.failed = 0;
    let mut shown = Shown { view: Some(bare), ..Shown::default() };
    let want = "Fixed answers only  no engines are configured, nothing failed in the last 60 s";
    assert_eq!(screen(&mut shown, 24)[1], want);
}

#[test]
fn what_has_no_room_is_scrolled_to_and_not_beyond() {
    let mut shown = Shown { view: Some(view(64)), ..Shown::default() };
    let first = screen(&mut shown, 20);
    assert!(
        first[19].starts_with("q ends · ") && first[19].ends_with("lines more below (↓)"),
        "{}",
        first[19]
    );
    shown.top = usize::MAX;
    let last = screen(&mut shown, 20);
    assert!(last[18].contains("gpu-63") && last[19] == "q ends", "{last:#?}");
    // A screen that has grown shows all of it.
    assert!(screen(&mut shown, 200)[0].starts_with("streamgate"));
}

#[test]
fn old_figures_do_not_pass_for_new_ones() {
    let mut shown = Shown { trouble: Some("http://g:1: gone".into()), ..Shown::default() };
    assert_eq!(screen(&mut shown, 4)[3], "as it was; no word since: http://g:1: gone");
    shown.view = Some(view(2));
    let rows = screen(&mut shown, 30);
    assert!(rows[0].starts_with("streamgate") && rows[29].contains("no word since"), "{rows:#?}");
}

#[test]
fn keys_do_what_they_do_elsewhere() {
    let pressed = |code, modifiers, kind| {
        wish(&Event::Key(KeyEvent { code, modifiers, kind, state: KeyEventState::NONE }))
    };
    let plain = |code| pressed(code, KeyModifiers::NONE, KeyEventKind::Press);
    assert_eq!([KeyCode::Char('q'), KeyCode::Esc].map(plain), [Wish::Quit; 2]);
    assert_eq!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL, KeyEventKind::Press), Wish::Quit);
    assert_eq!(plain(KeyCode::Char('c')), Wish::Nothing);
    assert_eq!(pressed(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release), Wish::Nothing);
    assert_eq!([KeyCode::Down, KeyCode::Char('j')].map(plain), [Wish::Lines(1); 2]);
    assert_eq!([KeyCode::PageUp, KeyCode::End].map(plain), [Wish::Screens(-1), Wish::Screens(isize::MAX)]);
    assert_eq!(wish(&Event::Resize(1, 1)), Wish::Nothing);
}
