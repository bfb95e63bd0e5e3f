//! Whether an engine's refusal speaks of a session.

use memchr::memchr2_iter;

/// Most bytes of an answer that are looked at: error messages are short and come first.
const LOOKED_AT_MAX: usize = 16 * 1024;

const WORD: &[u8] = b"session";

/// Looks for the word, in any case and however the answer is cut into chunks.
#[derive(Debug, Default)]
pub struct Mention {
    seen: usize,
    /// The last bytes, which may be the beginning of the word. Fewer than the word has.
    tail: Vec<u8>,
}

impl Mention {
    /// Takes the next chunk. Whether the word has come.
    pub fn note(&mut self, chunk: &[u8]) -> bool {
        let chunk = &chunk[..chunk.len().min(LOOKED_AT_MAX - self.seen)];
        self.seen += chunk.len();
        self.tail.extend_from_slice(chunk);
        let found = memchr2_iter(b's', b'S', &self.tail)
            .any(|at| self.tail[at..].get(..WORD.len()).is_some_and(|word| word.eq_ignore_ascii_case(WORD)));
        let kept = self.tail.len().min(WORD.len() - 1);
        self.tail.drain(..self.tail.len() - kept);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_found_in_any_case_and_any_chunks() {
        for text in [
            "unknown field Session-ID",
            "SESSION",
            "no such sSession",
            "sessions",
            "{\"param\":\"session_id\"}",
        ] {
            for size in 1..=text.len() {
                let mut mention = Mention::default();
                assert!(text.as_bytes().chunks(size).any(|chunk| mention.note(chunk)), "{text} by {size}");
            }
        }
        for text in ["", "sess", "ses sion", "sess\u{131}on"] {
            assert!(!Mention::default().note(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn only_so_much_is_looked_at() {
        let mut mention = Mention::default();
        assert!(!mention.note(&vec![b's'; LOOKED_AT_MAX - 1]));
        assert!(!mention.note(b"session"));
        assert!(!mention.note(b"session"));
        assert!(mention.tail.len() < WORD.len());
    }
}
