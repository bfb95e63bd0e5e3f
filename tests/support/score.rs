//! What a row has to show for itself: faults that struck, tokens that are proven, and what happened when.
//!
//! The hard idea: nobody has to carry it through a test. A test has a thread of its own, so what the harness does for
//! it (an engine killed, a client that leaves) is tallied there, and [`Row::settled`](super::Row::settled) puts it
//! together with what the engines counted. Where `STREAMGATE_SCORE` names a file, a line of JSON is added to it.

use std::cell::RefCell;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};

/// What a client was told, to be held against what its engine says that it sent.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    /// The request.
    pub(crate) request_id: String,
    /// Tokens that came, each at its place.
    pub(crate) tokens: u64,
    /// The hash over them, as the client computes it.
    pub(crate) hash: String,
    /// It came with an end marker, or is a whole answer.
    pub(crate) whole: bool,
}

/// The account of one row.
#[derive(Debug)]
pub(crate) struct Tally {
    began: Instant,
    /// Faults that the harness itself has made: each is a deed, not a plan.
    pub(crate) deeds: u64,
    /// What clients were told.
    pub(crate) proofs: Vec<Proof>,
    /// Engines that run, where they can be asked.
    pub(crate) engines: Vec<SocketAddr>,
    /// An engine has gone, and its account with it.
    pub(crate) lost: bool,
    /// The row before this one has been written; its gateway is still to go.
    is_written: bool,
    notes: Vec<Value>,
}

impl Tally {
    fn new() -> Self {
        let (proofs, engines, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { began: Instant::now(), deeds: 0, proofs, engines, lost: false, is_written: false, notes }
    }
}

/// What happened that a reader of the row's timeline is told at most.
const NOTES_MAX: usize = 200;

thread_local! {
    static TALLY: RefCell<Tally> = RefCell::new(Tally::new());
}

/// Changes the account of this test's row.
pub(crate) fn tally<T>(change: impl FnOnce(&mut Tally) -> T) -> T {
    TALLY.with_borrow_mut(change)
}

/// A line of the row's timeline.
pub(crate) fn note(text: impl Into<String>) {
    tally(|tally| {
        let ms = tally.began.elapsed().as_secs_f64() * 1e3;
        if tally.notes.len() < NOTES_MAX {
            tally.notes.push(json!([(ms * 10.0).round() / 10.0, text.into()]));
        }
    });
}

/// The test has done so many times what its row is about, and has seen that it struck.
pub(crate) fn struck(times: usize, what: &str) {
    note(format!("{times} times: {what}"));
    tally(|tally| tally.deeds += times as u64);
}

/// The row that a test is about, by its name: `cut::b4_a_reset` is B4, `n4_n5_an_engine` N4.
pub(crate) fn row_of(test: &str) -> Option<String> {
    let name = test.rsplit("::").next()?;
    let id = name.split('_').next()?;
    let (kind, number) = id.split_at_checked(1)?;
    let digits = number.trim_end_matches('b');
    let is_id = "bcghnrs".contains(kind) && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_id.then(|| kind.to_uppercase() + number)
}

/// The name of this test.
pub(crate) fn test() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// What a row adds to the score.
#[derive(Debug, Default)]
pub(crate) struct Score {
    /// It has gone through all that holds after every row.
    pub(crate) settled: bool,
    /// Exchanges that were part of it.
    pub(crate) exchanges: usize,
    /// Faults by the engines' own count, and requests that had to be refused.
    pub(crate) faults: u64,
    /// Tokens on which both ends agree.
    pub(crate) tokens: u64,
    /// Resident memory more than at the start, in KiB.
    pub(crate) grown_kb: u64,
}

/// Requests that had to be refused, by the gateway's own lines: each is a fault of its client's.
pub(crate) fn refused(lines: &[Value]) -> u64 {
    let is_it = |line: &&Value| {
        line["phase"] == "upload" || ["rejected", "limited"].iter().any(|outcome| line["outcome"] == *outcome)
    };
    lines.iter().filter(is_it).count() as u64
}

/// A gateway with this access log goes. Where no [`Row`](super::Row) has told of it, its harness does.
pub(crate) fn close(access: &str) {
    // It may be cut where the gateway was killed, and need not be JSON.
    let lines: Vec<Value> = access.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let faults = refused(&lines);
    let is_written = tally(|tally| std::mem::take(&mut tally.is_written));
    if !is_written && faults + tally(|tally| tally.deeds) > 0 {
        write(&Score { exchanges: lines.len(), faults, ..Score::default() });
        tally(|tally| tally.is_written = false);
    }
}

/// Closes the account of a row and writes its line.
pub(crate) fn write(score: &Score) {
    let fresh = Tally { is_written: true, ..Tally::new() };
    let Tally { began, deeds, notes, .. } = tally(|tally| std::mem::replace(tally, fresh));
    let Some(file) = std::env::var_os("STREAMGATE_SCORE") else { return };
    let line = json!({
        "test": test(), "row": row_of(&test()), "settled": score.settled, "exchanges": score.exchanges,
        "faults": score.faults + deeds, "tokens": score.tokens, "grown_kb": score.grown_kb,
        "seconds": (began.elapsed().as_secs_f64() * 1e3).round() / 1e3, "timeline": notes,
    });
    let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
    // One write, so that the lines of tests that end together do not mix.
    file.expect("the file of the score").write_all(format!("{line}\n").as_bytes()).expect("write");
}
