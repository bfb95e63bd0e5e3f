//! The entries of a map as they come, and which of their keys stood there already.

use std::collections::HashSet;

use super::{Entry, Map};

/// Entries of a map up to which its keys are looked through one by one: a file may have 100,000 small maps.
const FEW: usize = 16;

/// A map that grows.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) map: Map,
    /// The keys of a map that is not small.
    seen: HashSet<String>,
}

impl Entries {
    /// The next entry of the file.
    pub(super) fn push(&mut self, entry: Entry) {
        let is_known = self.is_known(&entry.key);
        let target = if is_known { &mut self.map.duplicates } else { &mut self.map.entries };
        target.push(entry);
    }

    fn is_known(&mut self, key: &str) -> bool {
        let entries = &self.map.entries;
        if entries.len() < FEW {
            return entries.iter().any(|entry| entry.key == key);
        }
        if self.seen.is_empty() {
            self.seen.extend(entries.iter().map(|entry| entry.key.clone()));
        }
        !self.seen.insert(key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Value, parse};
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_in_small_maps_and_in_large_ones() {
        for size in [2, FEW - 1, FEW, FEW + 1, 5 * FEW] {
            for first in [0, 1, size - 1] {
                let keys = (0..size).chain([first, first]);
                let text: String = keys.map(|key| format!("k{key}: {key}\n")).collect();
                let Value::Map(map) = parse(&text).unwrap().value else { panic!("a map") };
                assert_eq!(map.entries.len(), size, "{text}");
                let again: Vec<_> = map.duplicates.iter().map(|entry| (&*entry.key, entry.line)).collect();
                let (key, lines) = (format!("k{first}"), [size as u64 + 1, size as u64 + 2]);
                assert_eq!(again, lines.map(|line| (&*key, line)), "{text}");
            }
        }
    }
}
