//! Quantities with their unit: durations, sizes, rates, shares.
//!
//! A number alone is never taken for a quantity: `30` could be seconds or milliseconds, and nobody
//! would learn which until the night it matters. The error says what to write.

mod reading;

use std::fmt;
use std::time::Duration as StdDuration;

use super::place::shown;

/// A time span, at most [`Duration::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duration(pub StdDuration);

impl Duration {
    /// The longest span that can be written: 8760 hours, one year.
    pub const MAX: StdDuration = StdDuration::from_secs(8760 * 3600);
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// So many in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many, at least 1.
    pub count: u64,
    /// In how long: a second, a minute or an hour.
    pub per: StdDuration,
}

/// A share of the whole, from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

/// A plain number; the unit is the setting's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

/// A quantity, or the word `never`: no limit, or not at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OrNever<T> {
    /// The word.
    Never,
    /// The quantity.
    Set(T),
}

/// A quantity, or the word `auto`: what suits this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OrAuto<T> {
    /// The word.
    Auto,
    /// The quantity.
    Set(T),
}

/// Why a text is no quantity of the kind wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct UnitError {
    /// What was read.
    pub what: String,
    /// What to write instead.
    pub fix: String,
}

impl UnitError {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }

    fn not<T: Quantity>(text: &str) -> Self {
        Self::new(format!("{} is not {}", shown(text), T::KIND), format!("write for example {}", T::EXAMPLE))
    }
}

/// What can be read from a text with a unit.
pub trait Quantity: Sized {
    /// What it is, as in "is not a duration".
    const KIND: &'static str;
    /// One that is written well.
    const EXAMPLE: &'static str;
    /// A regular expression (ECMA 262) for editors.
    const PATTERN: &'static str;

    /// Reads a text.
    ///
    /// # Errors
    /// When the text is no such quantity.
    fn from_text(text: &str) -> Result<Self, UnitError>;

    /// Reads a bare number, which is an error for most.
    ///
    /// # Errors
    /// When a unit is needed.
    fn from_number(number: u64) -> Result<Self, UnitError> {
        Err(UnitError::new(format!("{number} has no unit"), format!("write for example {}", Self::EXAMPLE)))
    }
}

impl Quantity for Duration {
    const KIND: &'static str = "a duration";
    const EXAMPLE: &'static str = "250ms, 5s, 10m or 1h";
    const PATTERN: &'static str = "^[0-9]+(ms|s|m|h)$";

    fn from_text(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text).ok_or_else(|| UnitError::not::<Self>(text))?;
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "" => return Self::from_number(number),
            _ => return Err(UnitError::not::<Self>(text)),
        };
        let span = number.checked_mul(unit_ms).map(StdDuration::from_millis);
        match span.filter(|&span| span <= Self::MAX) {
            Some(span) => Ok(Self(span)),
            None => {
                Err(UnitError::new(format!("{} is longer than a year", shown(text)), "write 8760h or less"))
            }
        }
    }

    fn from_number(number: u64) -> Result<Self, UnitError> {
        Err(UnitError::new(format!("{number} has no unit"), format!("write {number}s or {number}ms")))
    }
}

impl fmt::Display for Duration {
    /// In the largest unit that takes no fraction.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        let (size, unit) = [(3_600_000, "h"), (60_000, "m"), (1000, "s")]
            .into_iter()
            .find(|(size, _)| ms > 0 && ms.is_multiple_of(*size))
            .unwrap_or((1, "ms"));
        write!(to, "{}{unit}", ms / size)
    }
}

impl Quantity for Size {
    const KIND: &'static str = "a size";
    const EXAMPLE: &'static str = "512B, 64KiB, 32MiB or 2GiB";
    const PATTERN: &'static str = "^[0-9]+(B|KiB|MiB|GiB)$";

    fn from_text(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text).ok_or_else(|| UnitError::not::<Self>(text))?;
        let shift = match unit {
            "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            "" => return Self::from_number(number),
            // nginx writes 50m, most others 50MB.
            other => match other.to_ascii_lowercase().as_str() {
                "k" | "kb" | "kib" => return Err(decimal(text, number, "KiB")),
                "m" | "mb" | "mib" => return Err(decimal(text, number, "MiB")),
                "g" | "gb" | "gib" => return Err(decimal(text, number, "GiB")),
                _ => return Err(UnitError::not::<Self>(text)),
            },
        };
        match number.checked_mul(1 << shift) {
            Some(bytes) => Ok(Self(bytes)),
            None => Err(UnitError::new(format!("{} is beyond all memory", shown(text)), "write less")),
        }
    }

    fn from_number(number: u64) -> Result<Self, UnitError> {
        Err(UnitError::new(format!("{number} has no unit"), format!("write {number}B, or use KiB, MiB, GiB")))
    }
}

impl fmt::Display for Size {
    /// In the largest unit that takes no fraction.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, unit) = [(30, "GiB"), (20, "MiB"), (10, "KiB")]
            .into_iter()
            .find(|(shift, _)| self.0 > 0 && self.0.is_multiple_of(1 << shift))
            .unwrap_or((0, "B"));
        write!(to, "{}{unit}", self.0 >> shift)
    }
}

fn decimal(text: &str, number: u64, unit: &str) -> UnitError {
    UnitError::new(format!("{}: sizes count by 1024", shown(text)), format!("write {number}{unit}"))
}

impl Quantity for Rate {
    const KIND: &'static str = "a rate";
    const EXAMPLE: &'static str = "10/s, 600/min or 5000/h";
    const PATTERN: &'static str = "^[0-9]+/(s|min|h)$";

    fn from_text(text: &str) -> Result<Self, UnitError> {
        let (count, unit) = split(text).ok_or_else(|| UnitError::not::<Self>(text))?;
        let per_seconds = match unit {
            "/s" => 1,
            "/min" => 60,
            "/h" => 3600,
            "" => return Self::from_number(count),
            _ => return Err(UnitError::not::<Self>(text)),
        };
        if count == 0 {
            return Err(UnitError::new(format!("{} lets nothing through", shown(text)), "write 1 or more"));
        }
        Ok(Self { count, per: StdDuration::from_secs(per_seconds) })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            1 => "s",
            60 => "min",
            _ => "h",
        };
        write!(to, "{}/{unit}", self.count)
    }
}

impl Quantity for Percent {
    const KIND: &'static str = "a percentage";
    const EXAMPLE: &'static str = "20%";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)?%$";

    fn from_text(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError::not::<Self>(text);
        let number = text.strip_suffix('%').ok_or_else(wrong)?;
        // Digits and one point only: `f64` would also take "inf" and "1e1".
        if !number.starts_with(|c: char| c.is_ascii_digit())
            || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        {
            return Err(wrong());
        }
        let share: f64 = number.parse().map_err(|_| wrong())?;
        if share > 100.0 {
            return Err(UnitError::new(
                format!("{} is more than everything", shown(text)),
                "write 100% or less",
            ));
        }
        Ok(Self(share))
    }

    fn from_number(number: u64) -> Result<Self, UnitError> {
        Err(UnitError::new(format!("{number} has no unit"), format!("write {number}%")))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}%", self.0)
    }
}

impl Quantity for Count {
    const KIND: &'static str = "a whole number";
    const EXAMPLE: &'static str = "4";
    const PATTERN: &'static str = "^$";

    fn from_text(text: &str) -> Result<Self, UnitError> {
        Err(UnitError::not::<Self>(text))
    }

    fn from_number(number: u64) -> Result<Self, UnitError> {
        Ok(Self(number))
    }
}

/// `"250ms"` is `(250, "ms")`; `None` without leading digits, with a sign, or past `u64`.
fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests;
