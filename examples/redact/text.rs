//! Keys in texts: what looks like one, and what may become one with the next piece.

const MARK: &str = "sk-";
const KEY_MIN: usize = 16;
const REDACTED: &str = "[redacted]";

/// A text that comes in pieces.
#[derive(Default)]
pub(crate) struct Text {
    /// What may be the beginning of a key.
    pub(crate) held: String,
    /// A key has been found, and its end has not.
    is_inside: bool,
}

impl Text {
    /// Takes the next piece, and gives what can be shown by now.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let text = std::mem::take(&mut self.held) + piece;
        let (mut rest, mut shown) = (&text[..], String::new());
        loop {
            if self.is_inside {
                rest = rest.trim_start_matches(is_of_key);
                self.is_inside = rest.is_empty();
            }
            let Some(at) = rest.find(MARK) else { break };
            shown += &rest[..at];
            rest = &rest[at..];
            let behind = &rest[MARK.len()..];
            let end = behind.find(|letter| !is_of_key(letter));
            if end.unwrap_or(behind.len()) >= KEY_MIN {
                shown += REDACTED;
                self.is_inside = true;
            } else if end.is_none() {
                rest.clone_into(&mut self.held);
                return shown;
            } else {
                shown += MARK;
            }
            rest = behind;
        }
        let begun = (1..MARK.len()).rev().find(|length| rest.ends_with(&MARK[..*length])).unwrap_or(0);
        let (now, later) = rest.split_at(rest.len() - begun);
        later.clone_into(&mut self.held);
        shown + now
    }

    /// The text has ended: what was held back was no key.
    pub(crate) fn finish(&mut self) -> String {
        self.is_inside = false;
        std::mem::take(&mut self.held)
    }
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_".contains(letter)
}

/// What stands around the texts of an event, which is read by nobody but looked at as it is.
pub(crate) fn plain(text: &str) -> Option<String> {
    (!hides_letters(text)).then(|| redact(text))
}

/// Whether a letter of a key is written as an escape (`\u0073`), which engines do with other letters only.
pub(crate) fn hides_letters(json: &str) -> bool {
    json.match_indices("\\u").any(|(at, _)| {
        let slashes = json[..at].bytes().rev().take_while(|&byte| byte == b'\\').count();
        let code = json.get(at + 2..at + 6).and_then(|code| u32::from_str_radix(code, 16).ok());
        slashes % 2 == 0 && code.and_then(char::from_u32).is_some_and(is_of_key)
    })
}

/// A text that is there as a whole, without what looks like a key.
pub(crate) fn redact(text: &str) -> String {
    let mut whole = Text::default();
    whole.push(text) + &whole.finish()
}
