//! The level: risen at once, fallen only when there is air below it.
//!
//! Memory that is freed goes back to the system later (the allocator keeps it for a while), and comes back when the
//! same clients come back. Without a gap between the marks up and down each of the two would make the level flap.

/// Shares of the memory, in percent, at which the level rises.
const MARKS: [(u64, Level); 3] = [(95, Level::Cut), (90, Level::Refuse), (80, Level::Short)];

/// Percent below its mark at which a level is left.
const AIR: u64 = 5;

/// What is done about the memory. Each level does what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Level {
    /// Nothing.
    #[default]
    Calm,
    /// Who only waits, or lets us wait, has less time, and an answer that waits less room.
    Short,
    /// Nothing new is let in.
    Refuse,
    /// The largest are ended.
    Cut,
}

impl Level {
    /// By its number.
    pub(super) fn of(number: u8) -> Self {
        [Self::Calm, Self::Short, Self::Refuse]
            .into_iter()
            .find(|level| *level as u8 == number)
            .unwrap_or(Self::Cut)
    }

    /// The level behind this one, by what was read.
    #[must_use]
    pub fn next(self, reading: Reading) -> Self {
        let with = |used| self.clamp(reading.level(used, 0), reading.level(used, AIR));
        // For what is only promised nobody is cut.
        let soon = with(reading.used.saturating_add(reading.promised)).min(Self::Refuse);
        with(reading.used).max(soon)
    }

    /// In words, for the log.
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Calm => "all is as usual",
            Self::Short => "timeouts of clients and windows of answers are short",
            Self::Refuse => "new requests are refused",
            Self::Cut => "the largest uploads and stalled streams are cut",
        }
    }
}

/// Memory that is used, and as much of it as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Bytes used.
    pub used: u64,
    /// Bytes that those who have just begun will take yet.
    pub promised: u64,
    /// Bytes at which the process is killed.
    pub limit: u64,
}

impl Reading {
    /// The highest level whose mark is reached by `used`, each mark being `air` percent lower than it is.
    fn level(self, used: u64, air: u64) -> Level {
        let reached = |mark: u64| used >= self.share(mark - air);
        MARKS
            .iter()
            .find(|(mark, _)| self.limit > 0 && reached(*mark))
            .map_or(Level::Calm, |(_, level)| *level)
    }

    /// So many percent of the limit, in bytes.
    fn share(self, percent: u64) -> u64 {
        u64::try_from(u128::from(self.limit) * u128::from(percent) / 100).unwrap_or(u64::MAX)
    }

    /// Percent used.
    pub fn percent(self) -> u64 {
        if self.limit == 0 {
            0
        } else {
            u64::try_from(u128::from(self.used) * 100 / u128::from(self.limit)).unwrap_or(u64::MAX)
        }
    }

    /// Bytes that must come back before new requests are let in again.
    pub(super) fn excess(self) -> u64 {
        self.used.saturating_sub(self.share(90))
    }

    /// The one that is nearer to its limit.
    pub(super) fn tighter(self, other: Self) -> Self {
        let share = |reading: Self, limit: u64| u128::from(reading.used) * u128::from(limit.max(1));
        if share(self, other.limit) >= share(other, self.limit) { self } else { other }
    }
}
