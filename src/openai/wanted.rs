//! What a walk over a body looks for: members at the end of pointers, and names at any depth.

use super::pointers::{Pointer, Pointers};

/// Everything that one walk looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Members by their way from the outermost object.
    pub pointers: Pointers,
    /// Members by their name alone, wherever they stand.
    pub names: Names,
    /// Whether the depth of JSON schemas is measured.
    pub schemas: bool,
    /// Number of the pointer to the client's own salt, where a cluster salts.
    pub salt: Option<usize>,
    /// Number of the pointer to the prompts of completions, which are always counted.
    pub(super) prompt: Option<usize>,
}

impl Default for Wanted {
    fn default() -> Self {
        Pointers::default().into()
    }
}

impl From<Pointers> for Wanted {
    fn from(mut pointers: Pointers) -> Self {
        let prompt = Pointer::parse("/prompt").map(|pointer| pointers.add_counted(pointer));
        Self { pointers, names: Names::default(), schemas: false, salt: None, prompt }
    }
}

/// Members whose value is a JSON schema, or holds one, in the requests of OpenAI, Anthropic, vLLM, SGLang and
/// llama.cpp: formats of answers, tools, guided decoding.
const SCHEMAS: [&[u8]; 7] =
    [b"schema", b"json_schema", b"parameters", b"input_schema", b"guided_json", b"json", b"format"];

/// Whether a member of this name may have a JSON schema for a value.
pub(super) fn is_schema(name: &[u8]) -> bool {
    SCHEMAS.contains(&name)
}

/// Names of members, each with a number.
///
/// Every member of a body is held against them, so almost all are told apart by their length alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    names: Vec<Box<str>>,
    /// Bit `n` is set where a name has `n` bytes; the last one, where one has 63 or more.
    lengths: u64,
}

impl Names {
    /// Adds a name, unless it is there. Its number.
    pub fn add(&mut self, name: &str) -> usize {
        if let Some(number) = self.find(name.as_bytes()) {
            return number;
        }
        self.lengths |= bit(name.len());
        self.names.push(name.into());
        self.names.len() - 1
    }

    /// The number of a name.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        if self.lengths & bit(name.len()) == 0 {
            return None;
        }
        self.names.iter().position(|known| known.as_bytes() == name)
    }
}

fn bit(length: usize) -> u64 {
    1 << length.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_whole_and_once() {
        let long = "x".repeat(100);
        let mut names = Names::default();
        assert_eq!(["a", "bc", "a", &long].map(|name| names.add(name)), [0, 1, 0, 2]);
        for (name, number) in [("a", Some(0)), ("bc", Some(1)), ("b", None), ("cb", None), ("", None)] {
            assert_eq!(names.find(name.as_bytes()), number, "{name}");
        }
        assert_eq!((names.find(long.as_bytes()), names.find(&long.as_bytes()[1..])), (Some(2), None));
    }
}
