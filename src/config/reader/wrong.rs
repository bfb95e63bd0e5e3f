//! What serde's errors say to the one who wrote the file.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::config::place::shown;

/// Parts the two halves of a message that passes through [`de::Error::custom`].
pub(in crate::config) const FIX: char = '\u{1f}';

/// Why a value cannot be read as what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) fix: String,
    /// It speaks of an environment variable's value and does not repeat it.
    pub(super) of_value: bool,
}

impl fmt::Display for Wrong {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.what)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        let (what, fix) = message.split_once(FIX).unwrap_or((&message, ""));
        Self { what: what.into(), fix: fix.into(), of_value: false }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let wanted = wanted(&expected.to_string());
        let fix = match found {
            Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_)
                if wanted == "a text" =>
            {
                "put it in quotes".into()
            }
            Unexpected::Str(text) if text.parse::<f64>().is_ok() && wanted.contains("number") => {
                format!("write {text} without quotes")
            }
            _ => String::new(),
        };
        Self { what: format!("found {}, but {wanted} belongs here", seen(found)), fix, of_value: false }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let wanted = wanted(&expected.to_string());
        let what = format!("{} is out of range for {wanted}", seen(found));
        Self { what, fix: String::new(), of_value: false }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let fix = match nearest(variant, expected) {
            Some(near) => format!("did you mean {near}? One of {}", expected.join(", ")),
            None => format!("write one of {}", expected.join(", ")),
        };
        Self { what: format!("{} is not known here", shown(variant)), fix, of_value: false }
    }

    /// Of a map that stands where a word may stand too; the keys of others are looked at before.
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let (what, fix) = match nearest(field, expected) {
            // Who writes this has the token itself behind it.
            _ if field == "bearer" => (
                "bearer: a secret does not belong into this file".into(),
                "write bearer_env: NAME of a variable, or bearer_file: PATH of a file".into(),
            ),
            Some(near) => (format!("{}: unknown key", shown(field)), format!("did you mean {near}?")),
            None => {
                (format!("{}: unknown key", shown(field)), format!("known here: {}", expected.join(", ")))
            }
        };
        Self { what, fix, of_value: false }
    }
}

/// Serde's name of a type in words.
pub(super) fn wanted(expected: &str) -> String {
    match expected {
        "a string" => "a text".into(),
        "a boolean" => "true or false".into(),
        "f64" | "f32" => "a number".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number".into(),
        other => other.into(),
    }
}

pub(super) fn seen(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => shown(text),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => format!("the number {value}"),
        Unexpected::Signed(value) => format!("the number {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Unit => "nothing".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a map".into(),
        other => other.to_string(),
    }
}

/// The known word nearest to `word`, if it is near enough to be meant.
pub(super) fn nearest(word: &str, known: &'static [&'static str]) -> Option<&'static str> {
    if word.len() > NEAR_BYTES_MAX {
        return None;
    }
    let bound = 1 + word.len() / 3;
    let distances = known.iter().map(|&near| (distance(&word.to_lowercase(), near), near));
    distances.min().filter(|&(far, _)| far <= bound).map(|(_, near)| near)
}

/// No setting's name is longer; it bounds the work on a hostile key.
const NEAR_BYTES_MAX: usize = 40;

/// Levenshtein's distance: insertions, deletions and exchanges that make `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.bytes().enumerate() {
            let exchange = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = exchange.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        let known = &["heartbeat", "hold_headers", "window"];
        assert_eq!(nearest("hartbeat", known), Some("heartbeat"));
        assert_eq!(nearest("Window", known), Some("window"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"w".repeat(1000), known), None);
    }

    #[test]
    fn the_distance_counts_single_edits() {
        for (a, b, far) in [("", "abc", 3), ("kitten", "sitting", 3), ("idle", "idle", 0), ("ab", "ba", 2)] {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
    }
}
