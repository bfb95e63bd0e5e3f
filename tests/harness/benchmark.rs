//! The gateway's benchmark where it is pure: which answers it takes for right, and what it makes of figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::judge::{Answer, Tokens, Wrong};
use super::sheet::{Entrant, Figure, Machine, Remark, Sheet, markdown, pictures};

/// An event as the engine writes it.
fn token(n: u32) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"tok{n} t=1000 \"}}}}]}}\n\n")
}

const DONE: &str = "data: [DONE]\n\n";

/// Reads the events as they would come in one piece at 1,250 us.
fn judged(mut tokens: Tokens, events: &str) -> Result<Tokens, Wrong> {
    tokens.buffer.extend_from_slice(events.as_bytes());
    tokens.take(1_250)?;
    tokens.complete().map(|()| tokens)
}

fn strict(events: &str) -> Result<Tokens, Wrong> {
    judged(Tokens::new(2, token(0).len()), events)
}

#[test]
fn a_whole_stream_is_right_and_its_stamps_are_read() {
    let tokens = strict(&[&token(0), ": still here\n\n", &token(1), DONE].concat()).expect("right");
    assert_eq!((tokens.seen(), tokens.latencies_us), (2, vec![250, 250]));
}

#[test]
fn every_wrong_stream_is_told_by_its_name() {
    let whole = [token(0), token(1), DONE.to_owned()];
    let lost = [&whole[1], DONE].concat();
    assert!(matches!(strict(&lost), Err(Wrong::Order { got: 1, wanted: 0 })));
    let twice = [&whole[0], &whole[0], DONE].concat();
    assert!(matches!(strict(&twice), Err(Wrong::Order { got: 0, wanted: 1 })));
    assert!(matches!(strict(&whole[..2].concat()), Err(Wrong::Incomplete { seen: 2, wanted: 2 })));
    assert!(matches!(strict(&[&whole[0], DONE].concat()), Err(Wrong::Incomplete { seen: 1, wanted: 2 })));
    let behind = whole.concat() + "data: {";
    assert!(matches!(strict(&behind), Err(Wrong::Incomplete { .. })));
    let failed = "data: {\"error\":{\"message\":\"no\"}}\n\n";
    assert!(matches!(strict(failed), Err(Wrong::ErrorEvent(_))));
    assert!(matches!(strict(&whole.concat().replace("delta", "d")), Err(Wrong::Size { .. })));
}

#[test]
fn of_events_that_are_written_anew_only_the_tokens_are_held() {
    let anew = [token(0), token(1), DONE.to_owned()].concat().replace("delta", "x\":1,\"delta");
    let tokens = judged(Tokens::rewritten(2), &anew).expect("right");
    assert_eq!(tokens.latencies_us, [250, 250]);
    let lost = [token(1), DONE.to_owned()].concat();
    assert!(matches!(judged(Tokens::rewritten(2), &lost), Err(Wrong::Order { .. })));
    assert!(matches!(judged(Tokens::rewritten(2), &token(0)), Err(Wrong::Incomplete { .. })));
}

#[test]
fn answers_are_unframed_wherever_they_are_cut() {
    let bytes =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0a\r\n0123456789\r\n0\r\n\r\n";
    for cut in 0..bytes.len() {
        let (mut answer, mut body) = (Answer::new(), Vec::new());
        for piece in [&bytes[..cut], &bytes[cut..]] {
            assert!(!answer.is_done());
            answer.push(piece, &mut body).expect("framed");
        }
        assert!(answer.is_done());
        assert_eq!(body, b"abc0123456789", "cut at {cut}");
    }
}

#[test]
fn wrong_answers_are_no_answers() {
    let read = |text: &str| {
        let mut answer = Answer::new();
        answer.push(text.as_bytes(), &mut Vec::new()).map(|()| answer.is_done())
    };
    assert!(matches!(read("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"), Err(Wrong::Status(503))));
    assert!(matches!(read("HTTP/1.1 200 OK\r\n\r\n"), Err(Wrong::Framing)));
    assert!(matches!(read("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab"), Err(Wrong::Framing)));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert!(matches!(read(&format!("{chunked}2\r\nabc")), Err(Wrong::Framing)));
    assert!(matches!(read(&format!("{chunked}2\r\nab")), Ok(false)));
}

fn entrant(name: &str, title: &str, not_run: Option<&str>) -> Entrant {
    let [name, title, version] = [name, title, "1.2"].map(str::to_owned);
    Entrant { name, title, version, one_of: 1, command: Vec::new(), not_run: not_run.map(str::to_owned) }
}

fn figure(scenario: &str, name: &str, unit: &str, values: &[(&str, f64)]) -> Figure {
    let values: BTreeMap<_, _> = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Figure::new(scenario, name, unit, values)
}

/// A run of three, of whom one could not run.
fn sheet() -> Sheet {
    let [cpu, kernel, load_before, load_after] = ["A & B", "6.1", "0.2", "0.5"].map(str::to_owned);
    let latency = |share: &str, values: &[(&str, f64)]| {
        figure("streams", &format!("added latency per event, {share}"), "us", values)
    };
    let remark = ["slow", "nginx", "late"].map(str::to_owned);
    let [scenario, name, text] = remark;
    Sheet {
        quick: false,
        command: vec!["--contenders".to_owned()],
        machine: Machine { cpu, cores: 2, kernel, load_before, load_after },
        entrants: vec![
            entrant("direct", "direct", None),
            entrant("nginx", "nginx", None),
            entrant("envoy", "Envoy", Some("no wheel")),
            entrant("streamgate", "streamgate", None),
        ],
        figures: vec![
            latency("p50", &[("nginx", 20.0), ("streamgate", 150.0)]),
            latency("p99", &[("nginx", 2000.0), ("streamgate", -3.0)]),
            figure("streams", "memory per stream", "KiB", &[("nginx", 25.0), ("streamgate", 50.0)]),
            figure("cancel", "streaming: tokens wasted", "%", &[("nginx", 0.0), ("streamgate", 0.0)]),
        ],
        remarks: vec![Remark { scenario, name, text }],
    }
}

#[test]
fn the_table_has_who_ran_and_says_who_did_not() {
    let wanted = "
A & B, 2 cores, Linux 6.1; load average 0.2 before, 0.5 after

| scenario | figure | unit | direct | nginx | streamgate | streamgate / nginx |
|---|---|---|---:|---:|---:|---:|
| streams | added latency per event, p50 | us |  | 20.0 | 150 | 7.50 |
| streams | added latency per event, p99 | us |  | 2000 | -3.00 | -0.00 |
| streams | memory per stream | KiB |  | 25.0 | 50.0 | 2.00 |
| cancel | streaming: tokens wasted | % |  | 0 | 0 |  |

| who | version |
|---|---|
| direct | 1.2 |
| nginx | 1.2 |
| Envoy | not run: no wheel |
| streamgate | 1.2 |

- slow, nginx: late
";
    assert_eq!(markdown(&sheet()), wanted);
}

#[test]
fn a_run_is_the_same_after_a_way_through_its_file() {
    let text = serde_json::to_string(&sheet()).expect("JSON");
    assert_eq!(serde_json::from_str::<Sheet>(&text).expect("a sheet"), sheet());
}

#[test]
fn who_had_less_load_is_told_apart() {
    let mut sheet = sheet();
    sheet.entrants[1].one_of = 20;
    assert!(markdown(&sheet).contains("| unit | direct | nginx (1/20) | streamgate |"));
    for (file, svg) in pictures(&sheet) {
        assert!(
            svg.contains(">nginx (1/20)<") && svg.contains("(1/n): with that part of the clients"),
            "{file}"
        );
    }
}

/// The lengths of the bars, in pixels.
fn lengths(svg: &str) -> Vec<f64> {
    let width = |rect: &str| rect.split_once("width=\"")?.1.split('"').next()?.parse().ok();
    svg.split("<rect ").skip(1).filter_map(width).collect()
}

#[test]
fn bars_are_as_long_as_their_figures() {
    let pictures: BTreeMap<_, _> = pictures(&sheet()).into_iter().collect();
    // Nobody measured the others.
    assert_eq!(pictures.keys().copied().collect::<Vec<_>>(), ["latency.svg", "memory.svg", "waste.svg"]);
    let memory = lengths(&pictures["memory.svg"]);
    assert_eq!(memory, [270.0, 540.0], "linear: half is half");
    // From 10 to 2,000: 20 is log 2 of log 200, and what is below nothing has the shortest bar.
    let share = |value: f64| (540.0 * (value / 10.0).log10() / 200_f64.log10() * 10.0).round() / 10.0;
    assert_eq!(lengths(&pictures["latency.svg"]), [share(20.0), 540.0, share(150.0), 1.0]);
    assert_eq!(lengths(&pictures["waste.svg"]), [1.0, 1.0]);
}

#[test]
fn pictures_name_all_who_ran_and_are_whole() {
    for (file, svg) in pictures(&sheet()) {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{file}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count(), "{file}");
        for (title, is_there) in [("nginx", true), ("streamgate", true), ("Envoy", false), ("direct", false)]
        {
            assert_eq!(svg.contains(&format!(">{title}<")), is_there, "{file}, {title}");
        }
    }
}

/// The words in capitals between two `@` in a text.
fn places(text: &str) -> BTreeSet<String> {
    let is_place =
        |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase());
    text.split('@').skip(1).filter(is_place).map(str::to_owned).collect()
}

#[test]
fn what_the_files_of_contenders_ask_for_is_put_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = places(include_str!("../../benches/gateway/contender.rs"));
    // A remark's word for all of them.
    known.insert("WORDS".to_owned());
    let mut asked = BTreeSet::new();
    for entry in std::fs::read_dir(root.join("bench")).expect("bench/") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("text");
        asked.extend(places(&text));
    }
    assert!(asked.len() > 7, "only {asked:?} are asked for");
    assert_eq!(asked.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
}
