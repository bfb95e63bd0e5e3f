//! Reads the memory, sets the level and has the largest cut.
//!
//! In a thread of its own: under the very flood that it is there for, a task would stand in the queue of all the
//! others (2,000 connections with something to do are a second and more on two busy cores).

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::choose::{Holding, Kind};
use super::kept::Unread;
use super::leaving::Leaving;
use super::level::{Level, Reading};
use super::meter::{Look, Meter};
use super::young::Young;
use super::{Memory, purge};
use crate::metrics::Metrics;
use crate::told::Told;

/// Time between two looks where less than half of the memory is used.
const LOOK: Duration = Duration::from_millis(100);

/// The same beyond that: a flood of connections may take 100 MB a second.
const LOOK_CLOSELY: Duration = Duration::from_millis(20);

/// Percent used from which it is looked at closely.
const CLOSE: u64 = 50;

/// Least time between two rounds of cuts, and between two times that the allocator is to give back what it keeps:
/// whoever has been cut ends in a few milliseconds, and only then is there something to see.
const ROUND: Duration = Duration::from_millis(200);

/// Has the memory watched for as long as the process lives.
///
/// # Errors
/// No thread is to be had.
pub fn start(memory: Arc<Memory>, meter: Meter, metrics: Arc<Metrics>) -> io::Result<()> {
    purge::begin();
    let mut watcher = Watcher::new(memory, meter, metrics, Instant::now());
    let keep = move || {
        loop {
            thread::sleep(watcher.look(Instant::now()));
        }
    };
    thread::Builder::new().name("memory".to_owned()).spawn(keep)?;
    Ok(())
}

/// Who looks, and what he remembers from one look to the next.
struct Watcher {
    memory: Arc<Memory>,
    meter: Meter,
    metrics: Arc<Metrics>,
    teller: Teller,
    leaving: Leaving,
    young: Young,
    next_round: Instant,
}

impl Watcher {
    fn new(memory: Arc<Memory>, meter: Meter, metrics: Arc<Metrics>, now: Instant) -> Self {
        let (teller, leaving, young) = (Teller::default(), Leaving::default(), Young::default());
        Self { memory, meter, metrics, teller, leaving, young, next_round: now }
    }

    /// Looks once, and gives the time until the next look. Where nothing can be read the level stays as it is.
    fn look(&mut self, now: Instant) -> Duration {
        let Some(reading) = self.read() else { return LOOK };
        let reading = Reading { promised: self.memory.promised(&mut self.young, now), ..reading };
        let (before, level) = self.memory.note(reading);
        self.teller.level((before, level), reading, now);
        if level > Level::Calm && (now >= self.next_round || level > before) {
            purge::purge();
            // By what is left when those who have gone are really gone.
            if level == Level::Cut
                && let Some(reading) = self.read()
            {
                let cut = self.memory.cut(reading, &mut self.leaving, now);
                cut.iter().for_each(|holding| self.metrics.cut_for_memory(holding.kind));
                self.teller.cut(&cut, reading, now);
            }
            self.next_round = now + ROUND;
        }
        self.teller.late(level, reading, now);
        if reading.percent() >= CLOSE { LOOK_CLOSELY } else { LOOK }
    }

    /// What can be read, and a word when something cannot be read any more, or can be again.
    fn read(&mut self) -> Option<Reading> {
        let Look { reading, unread } = self.meter.look();
        if self.memory.note_sight(unread.is_none()) {
            tell_sight(reading.is_some(), unread);
        }
        reading
    }
}

/// What the log is told: a change of level and who is cut at once, but no more than a line a second of either.
#[derive(Default)]
struct Teller {
    levels: Told,
    cuts: Told,
    untold: Cuts,
}

/// Those who have been cut since the last line.
#[derive(Default)]
struct Cuts {
    uploads: usize,
    streams: usize,
    bytes: u64,
    largest: u64,
}

impl Teller {
    /// The level may have changed.
    fn level(&self, (before, level): (Level, Level), reading: Reading, now: Instant) {
        if level != before
            && let Some(count) = self.levels.note(now)
        {
            tell_level(level, reading, count - 1);
        }
    }

    /// These have been cut.
    fn cut(&mut self, cut: &[Holding], reading: Reading, now: Instant) {
        let count = |kind| cut.iter().filter(|holding| holding.kind == kind).count();
        self.untold.uploads += count(Kind::Upload);
        self.untold.streams += count(Kind::Stream);
        self.untold.bytes += cut.iter().map(|holding| holding.bytes).sum::<u64>();
        self.untold.largest = cut.iter().map(|holding| holding.bytes).fold(self.untold.largest, u64::max);
        if !cut.is_empty() && self.cuts.note(now).is_some() {
            std::mem::take(&mut self.untold).tell(reading);
        }
    }

    /// Tells what came too soon behind another line, once it is time: the last word is always told.
    fn late(&mut self, level: Level, reading: Reading, now: Instant) {
        if let Some(count) = self.levels.late(now) {
            tell_level(level, reading, count - 1);
        }
        if self.cuts.late(now).is_some() {
            std::mem::take(&mut self.untold).tell(reading);
        }
    }
}

/// In words: `206 MiB of 256 MiB (80 %) are used, 12 MiB more are expected`.
fn told(reading: Reading) -> String {
    let Reading { used, promised, limit } = reading;
    let more = match promised >> 20 {
        0 => String::new(),
        more => format!(", {more} MiB more are expected"),
    };
    format!("{} MiB of {} MiB ({} %) are used{more}", used >> 20, limit >> 20, reading.percent())
}

fn tell_level(level: Level, reading: Reading, before: u64) {
    let kind = if level == Level::Calm { log::Level::Info } else { log::Level::Warn };
    let others = if before == 0 { String::new() } else { format!(" (and {before} changes before)") };
    log::log!(kind, "memory: {}: {}{others}", told(reading), level.told());
}

fn tell_sight(in_part: bool, unread: Option<Unread>) {
    match unread {
        None => log::info!("memory: all that is in use can be read again"),
        Some(unread) if in_part => {
            log::warn!("memory: a part of what is in use cannot be read, the rest is watched; {unread}");
        }
        Some(unread) => {
            log::warn!(
                "memory: what is in use cannot be read, so nothing is done when it runs out; {unread}"
            );
        }
    }
}

impl Cuts {
    fn tell(self, reading: Reading) {
        let Self { uploads, streams, bytes, largest } = self;
        log::warn!(
            "memory: {}: {uploads} uploads and {streams} stalled streams were cut, which held {} KiB, the largest {} KiB",
            told(reading),
            bytes >> 10,
            largest >> 10,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::machine;
    use crate::outlet::Losses;

    #[test]
    fn a_reading_that_fails_is_tried_again_and_the_guard_goes_on() {
        let full = "RssAnon:\t 92 kB\n";
        let root = machine(&[("proc/self/status", full)]);
        let limit = 100 * 1024;
        let (memory, now) = (Arc::new(Memory::new(limit)), Instant::now());
        let metrics = Metrics::new(Losses::default()).unwrap();
        let meter = Meter::new(root.path(), limit, &[]);
        let mut watcher = Watcher::new(Arc::clone(&memory), meter, metrics, now);
        let mut look = |text: &str| {
            fs::write(root.path().join("proc/self/status"), text).unwrap();
            let next = watcher.look(now);
            (memory.level(), memory.is_seen(), next)
        };
        assert_eq!(look(full), (Level::Refuse, true, LOOK_CLOSELY));
        assert_eq!(look(""), (Level::Refuse, false, LOOK), "it stays as it was");
        assert_eq!(look(""), (Level::Refuse, false, LOOK));
        assert_eq!(look("RssAnon:\t 10 kB\n"), (Level::Calm, true, LOOK));
        assert_eq!(look(full), (Level::Refuse, true, LOOK_CLOSELY));
    }

    #[test]
    fn that_it_fails_is_told_once_and_that_it_is_over_too() {
        let memory = Memory::new(1);
        let changes = [true, false, false, true, true, false].map(|seen| memory.note_sight(seen));
        assert_eq!(changes, [false, true, false, true, false, true]);
    }
}
