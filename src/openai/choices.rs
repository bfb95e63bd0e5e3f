//! Which choices of an answer have begun, and which have ended: there are several where a request has `n`, or several
//! prompts.
//!
//! The one hard idea: most events are never parsed, and one of them may be the first of its choice. So the first index
//! in each is read where it stands, and only a number that has not been met before is a reason to parse: whether it is a
//! choice's or that of a tool call, the parsed event tells.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Choices that are told apart, by their index. Those beyond are as if they were not there.
const MOST: u64 = u128::BITS as u64;

static INDEX: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"index\""));

/// Choices by their index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Choices {
    begun: u128,
    ended: u128,
}

impl Choices {
    /// Notes a choice, and whether it has said why it stopped.
    pub(super) fn note(&mut self, index: u64, has_ended: bool) {
        let bit = bit(index);
        self.begun |= bit;
        self.ended |= if has_ended { bit } else { 0 };
    }

    /// Takes over what an event says.
    pub(super) fn take(&mut self, said: Self) {
        self.begun |= said.begun;
        self.ended |= said.ended;
    }

    /// Whether each that has begun has ended.
    pub(super) fn have_ended(&self) -> bool {
        self.begun & !self.ended == 0
    }
}

/// Numbers that have been met in events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Met(u128);

impl Met {
    /// Whether the first index of this event has not been met before.
    pub(super) fn is_new(&mut self, data: &[u8]) -> bool {
        let Some(bit) = first(data).map(bit) else { return false };
        let is_new = bit & !self.0 != 0;
        self.0 |= bit;
        is_new
    }
}

/// The first index in an event. A quote inside a JSON string is always escaped, so it is none of a text.
fn first(data: &[u8]) -> Option<u64> {
    let at = INDEX.find(data)? + INDEX.needle().len();
    let value = data[at..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = value.iter().take(3).take_while(|byte| byte.is_ascii_digit());
    let number = |number: Option<u64>, digit: &u8| Some(number.unwrap_or(0) * 10 + u64::from(digit - b'0'));
    digits.fold(None, number)
}

/// None beyond those that are told apart.
fn bit(index: u64) -> u128 {
    if index < MOST { 1 << index } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut met = Met::default();
        let mut is_new = |data: &str| met.is_new(data.as_bytes());
        assert_eq!([is_new(r#"{"choices":[{"index":0}]}"#), is_new(r#"{"index" : 0}"#)], [true, false]);
        assert_eq!([is_new(r#"{"index":12,"a":{"index":1}}"#), is_new(r#"{"index":1}"#)], [true, true]);
        assert_eq!(
            [is_new(r#"{"index":127}"#), is_new(r#"{"index":128}"#), is_new(r#"{"index":5000}"#)],
            [true, false, false]
        );
        for none in ["", "\"index\"", "{\"index\":", r#"{"index":null}"#, r#"{"content":"\"index\":7"}"#] {
            assert!(!is_new(none), "{none}");
        }
    }

    #[test]
    fn all_that_have_begun_must_end() {
        let mut choices = Choices::default();
        assert!(choices.have_ended(), "there are none");
        choices.note(0, false);
        choices.note(3, true);
        assert!(!choices.have_ended());
        let mut said = Choices::default();
        said.note(0, true);
        choices.take(said);
        assert!(choices.have_ended());
        choices.note(MOST, false);
        assert!(choices.have_ended(), "it is not told apart");
    }
}
