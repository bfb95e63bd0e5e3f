//! The tokens of a simulated engine: each says its index and when it was sent. Pure.
//!
//! The one hard idea: `tok7 t=1700000000000000 ` followed by filler is a text no model writes, so an answer that
//! begins so is a simulated engine's, and from there every byte of it is known beforehand. The hash of an engine with
//! `--proof` (`tok7#0123456789abcdef t=...`) is passed over: whose a token is, the test of an engine asks for, not a load.

use super::wrong::{Wrong, quote};

/// What stands before a token's index, and before the time it was sent.
const TOKEN: &str = "tok";
const TIME: &str = " t=";
/// What stands before a token's hash, and its digits: 64 bits in hexadecimal.
const PROOF: char = '#';
const PROOF_DIGITS: usize = 16;
/// What fills an event up to its size.
const FILLER: char = 'x';

/// The tokens of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    next: u64,
}

impl Stamps {
    /// Whether an answer that begins with this text is stamped.
    pub(super) fn begin(text: &str) -> bool {
        token(text).is_some()
    }

    /// Takes the tokens of a text, of which there may be many in an answer that is no stream. The times at which
    /// they were sent are appended to `sent`, in microseconds since 1970.
    ///
    /// # Errors
    /// A token that is not the next one; something between them.
    pub(super) fn take(&mut self, text: &str, sent: &mut Vec<u64>) -> Result<(), Wrong> {
        let mut rest = text;
        while !rest.is_empty() {
            let Some((index, time, behind)) = token(rest) else {
                return Err(Wrong::Content(quote(rest.as_bytes())));
            };
            if index != self.next {
                return Err(Wrong::Order { got: index, due: self.next });
            }
            self.next += 1;
            sent.push(time);
            rest = behind.trim_start_matches(FILLER);
        }
        Ok(())
    }

    /// Tokens so far.
    pub(super) fn count(&self) -> u64 {
        self.next
    }
}

/// The index and the time of the token at the front, and what stands behind its blank.
fn token(text: &str) -> Option<(u64, u64, &str)> {
    let (index, rest) = number(text.strip_prefix(TOKEN)?)?;
    let (time, rest) = number(without_proof(rest)?.strip_prefix(TIME)?)?;
    Some((index, time, rest.strip_prefix(' ')?))
}

/// What stands behind the hash, if there is one.
fn without_proof(text: &str) -> Option<&str> {
    let Some(hash) = text.strip_prefix(PROOF) else { return Some(text) };
    let digits = hash.bytes().take_while(u8::is_ascii_hexdigit).count();
    (digits == PROOF_DIGITS).then(|| &hash[digits..])
}

fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(texts: &[&str]) -> Result<(u64, Vec<u64>), Wrong> {
        let (mut stamps, mut sent) = (Stamps::default(), Vec::new());
        texts.iter().try_for_each(|text| stamps.take(text, &mut sent))?;
        Ok((stamps.count(), sent))
    }

    #[test]
    fn tokens_come_one_by_one_or_together() {
        let both = Ok((3, vec![5, 6, 6]));
        assert_eq!(take(&["tok0 t=5 ", "tok1 t=6 xxx", "tok2 t=6 x"]), both);
        assert_eq!(take(&["tok0 t=5 tok1 t=6 xxxtok2 t=6 x"]), both);
        let proven = ["tok0#0123456789abcdef t=5 ", "tok1#fedcba9876543210 t=6 xtok2#0000000000000000 t=6 "];
        assert_eq!(take(&proven), both);
        assert!(take(&["tok0#0123 t=5 "]).is_err(), "too short for a hash");
    }

    #[test]
    fn what_is_lost_doubled_or_swapped_is_seen() {
        let order = |got, due| Err(Wrong::Order { got, due });
        assert_eq!(take(&["tok0 t=5 ", "tok2 t=6 "]), order(2, 1));
        assert_eq!(take(&["tok0 t=5 ", "tok0 t=5 "]), order(0, 1));
        assert_eq!(take(&["tok1 t=5 "]), order(1, 0));
        for odd in
            ["tok0 t=5", "tok0  t=5 ", "tok0 t=5 xyz", "tok t=5 ", "Hello", "tok0 t=99999999999999999999 "]
        {
            assert!(matches!(take(&[odd]), Err(Wrong::Content(_))), "{odd}");
        }
    }

    #[test]
    fn no_model_is_taken_for_a_simulated_engine() {
        assert!(Stamps::begin("tok0 t=1 xx") && Stamps::begin("tok4 t=1 "));
        for text in ["", "tok0 ", "token", "Once upon a time", "tok0 t= "] {
            assert!(!Stamps::begin(text), "{text}");
        }
    }
}
