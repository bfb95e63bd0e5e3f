//! What the elements of a list are: how many, and how many prompts.

/// Bits for the kinds of elements.
const TEXT: u8 = 1;
const LIST: u8 = 2;
const NUMBER: u8 = 4;
const OTHER: u8 = 8;

/// The elements of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Elements {
    /// How many there are.
    pub count: usize,
    kinds: u8,
}

impl Elements {
    /// One more, which begins with this byte.
    pub(super) fn note(&mut self, first: u8) {
        self.count += 1;
        self.kinds |= match first {
            b'"' => TEXT,
            b'[' => LIST,
            b'-' | b'0'..=b'9' => NUMBER,
            _ => OTHER,
        };
    }

    /// How many prompts they are: numbers are the tokens of one, texts (and what stands for one, as an object does) and lists
    /// of tokens are one each. `None` where they are mixed: llama.cpp takes `[1, "a"]` for one prompt, others for two or none.
    pub fn prompts(&self) -> Option<u64> {
        match self.kinds {
            NUMBER => Some(1),
            kinds if kinds & NUMBER != 0 || (kinds & LIST != 0 && kinds != LIST) => None,
            _ => Some(self.count as u64),
        }
    }

    /// Whether they are the tokens of one prompt.
    pub(super) fn are_tokens(&self) -> bool {
        self.kinds == NUMBER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_counted_by_what_all_elements_are() {
        for (firsts, prompts) in [
            ("", Some(0)),
            ("1-9", Some(1)),
            ("\"\"\"", Some(3)),
            ("[[", Some(2)),
            ("{\"", Some(2)),
            ("1\"", None),
            ("\"1", None),
            ("[1", None),
            ("\"[", None),
            ("[{", None),
            ("1n", None),
        ] {
            let mut elements = Elements::default();
            firsts.bytes().for_each(|first| elements.note(first));
            assert_eq!(elements.prompts(), prompts, "{firsts}");
        }
    }
}
