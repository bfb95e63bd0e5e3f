//! What is told of a run while it goes on: a line that is written over on a terminal, a line now and then elsewhere.

use std::convert::Infallible;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossterm::cursor::MoveToColumn;
use crossterm::queue;
use crossterm::style::Print;
use crossterm::terminal::{Clear, ClearType, size};
use tokio::time::{MissedTickBehavior, interval};

use super::args::Bound;
use super::tally::Tally;
use crate::top::figures::count;

/// How often it is told on a terminal, and elsewhere.
const LIVE: Duration = Duration::from_millis(100);
const LOGGED: Duration = Duration::from_secs(5);
/// Cells of the bar.
const BAR: usize = 24;
/// Columns of a terminal that does not say how many it has.
const COLUMNS: u16 = 80;

/// Tells of a run on standard error until it is dropped.
pub(super) struct Progress {
    live: bool,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy)]
struct Now {
    bound: Bound,
    elapsed: Duration,
    begun: u64,
    ended: u64,
    wrong: u64,
    tokens: u64,
    /// Tokens a second, of late.
    rate: f64,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { live: stderr().is_terminal() }
    }

    /// Tells again and again.
    pub(super) async fn run(&self, tally: &Tally, bound: Bound) -> Infallible {
        let (began, mut turns) = (Instant::now(), interval(if self.live { LIVE } else { LOGGED }));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        turns.tick().await;
        let (mut then, mut before) = (began, 0);
        let mut rate = 0.0;
        loop {
            turns.tick().await;
            let (now, tokens) = (Instant::now(), tally.tokens.load(Relaxed));
            // A second of smoothing: tokens come in steps.
            let span = now - then;
            if span >= Duration::from_secs(1) || !self.live {
                rate = tokens.saturating_sub(before) as f64 / span.as_secs_f64();
                (then, before) = (now, tokens);
            }
            let counts = tally.state().counts;
            let (begun, ended) = (tally.begun.load(Relaxed), counts.ended());
            self.tell(&Now { bound, elapsed: now - began, begun, ended, wrong: counts.wrong, tokens, rate });
        }
    }

    /// A standard error that cannot be written is no reason to stop measuring.
    fn tell(&self, now: &Now) {
        let mut out = stderr().lock();
        let told = if self.live {
            let columns = size().map_or(0, |(columns, _)| columns);
            let columns = if columns == 0 { COLUMNS } else { columns };
            let line: String = live(now).chars().take(usize::from(columns).saturating_sub(1)).collect();
            queue!(out, MoveToColumn(0), Print(line), Clear(ClearType::UntilNewLine))
        } else {
            writeln!(out, "{}", words(now))
        };
        drop(told.and_then(|()| out.flush()));
    }
}

/// The line goes as the run ends.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.live {
            let mut out = stderr().lock();
            drop(queue!(out, MoveToColumn(0), Clear(ClearType::UntilNewLine)).and_then(|()| out.flush()));
        }
    }
}

/// `[=======>                ]  31 of 100 ...`.
fn live(now: &Now) -> String {
    let full = (share(now) * BAR as f64) as usize;
    let tip = if full < BAR { ">" } else { "" };
    format!("[{:<BAR$}] {}", format!("{}{tip}", "=".repeat(full)), words(now))
}

/// How much of it is done, from 0 to 1.
fn share(now: &Now) -> f64 {
    match now.bound {
        Bound::Requests(all) => (now.ended as f64 / all as f64).min(1.0),
        Bound::Time(all) => (now.elapsed.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0),
    }
}

fn words(now: &Now) -> String {
    let of = match now.bound {
        Bound::Requests(all) => format!(" of {all}"),
        Bound::Time(_) => String::new(),
    };
    let seconds = match now.bound {
        Bound::Requests(_) => format!("{} s", now.elapsed.as_secs()),
        Bound::Time(all) => format!("{} of {} s", now.elapsed.as_secs(), all.as_secs_f64().ceil()),
    };
    let (open, tokens, rate) =
        (now.begun.saturating_sub(now.ended), count(now.tokens as f64), count(now.rate));
    let (ended, wrong) = (now.ended, now.wrong);
    format!("{seconds}: {ended}{of} ended, {open} open, {wrong} wrong; {tokens} tokens, {rate} a second")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(bound: Bound) -> Now {
        let elapsed = Duration::from_millis(12_300);
        Now { bound, elapsed, begun: 35, ended: 25, wrong: 1, tokens: 12_345, rate: 900.4 }
    }

    #[test]
    fn a_run_is_told_by_requests_or_by_time() {
        assert_eq!(
            words(&now(Bound::Requests(100))),
            "12 s: 25 of 100 ended, 10 open, 1 wrong; 12.3k tokens, 900 a second"
        );
        let timed = live(&now(Bound::Time(Duration::from_secs(20))));
        assert_eq!(
            timed,
            "[==============>         ] 12 of 20 s: 25 ended, 10 open, 1 wrong; 12.3k tokens, 900 a second"
        );
    }

    #[test]
    fn the_bar_is_full_at_the_end_and_no_further() {
        let bar = |bound| live(&now(bound)).chars().take(BAR + 2).collect::<String>();
        let full = format!("[{}]", "=".repeat(BAR));
        assert_eq!(bar(Bound::Requests(25)), full);
        assert_eq!(bar(Bound::Requests(20)), full);
        assert_eq!(bar(Bound::Time(Duration::ZERO)), full);
        assert_eq!(bar(Bound::Requests(1_000)), format!("[>{}]", " ".repeat(BAR - 1)));
    }
}
