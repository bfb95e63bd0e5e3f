//! A map of bounded size: what was used last is known, what was not used for long is forgotten.
//!
//! Two generations, each of half the size. What is looked up or set goes to the young one; when that is
//! full, the old one is forgotten at once and the young one becomes it. So what was used among the last
//! half of the table is known, what was not used for a whole one is not, and no entry needs a link or a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem::swap;

/// A map of at most a given number of entries.
// Keys come from clients, so the maps hash them with a secret: nobody can fill one chain.
#[derive(Debug)]
pub struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// An empty map of at most `most` entries, at least 2.
    pub fn new(most: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: (most / 2).max(1) }
    }

    /// The value of a key that is known.
    pub fn get(&mut self, key: &K) -> Option<&mut V> {
        if !self.young.contains_key(key) {
            let known = self.old.remove(key)?;
            self.set(key.clone(), known);
        }
        self.young.get_mut(key)
    }

    /// Sets the value of a key.
    pub fn set(&mut self, key: K, value: V) {
        if self.young.len() == self.half {
            swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// The value of a key, made by `make` where it is not known.
    pub fn of(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if self.get(&key).is_none() {
            self.set(key.clone(), make());
        }
        self.young.get_mut(&key).expect("it has just been set or brought here")
    }

    /// Entries that are held.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_map_never_grows_beyond_its_bound() {
        let mut map = Recent::new(100);
        for key in 1..10_000_u32 {
            assert_eq!(*map.of(0, || 7), 7);
            *map.of(key, || key) += 1;
            assert!(map.len() <= 100, "{}", map.len());
        }
        assert_eq!(*map.of(9_999, || 0), 10_000, "the last one is known");
        assert_eq!(*map.of(1, || 0), 0, "the first one is forgotten");
    }
}
