//! Where keys are at home: a table of bounded size, oldest out.

use parking_lot::Mutex;

use crate::recent::Recent;

/// Most entries of a cluster: some 2 MiB. A session takes one, a conversation known by its prompt one for
/// each block of it.
pub const ENTRIES_MAX: usize = 65_536;

/// Where keys are at home, by the ids of backends ([`crate::cluster::Backend::id`]).
#[derive(Debug)]
pub struct Homes(Mutex<Recent<u64, u64>>);

impl Default for Homes {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(ENTRIES_MAX)))
    }
}

impl Homes {
    /// The home of the longest key that has one, and whether that is the longest of all.
    pub fn find(&self, keys: &[u64]) -> Option<(u64, bool)> {
        let mut state = self.0.lock();
        let mut found =
            keys.iter().rev().enumerate().filter_map(|(back, key)| Some((*state.get(key)?, back == 0)));
        found.next()
    }

    /// Gives `home` to those keys that have none, or have the one that is `lost`.
    pub fn settle(&self, keys: &[u64], home: u64, lost: Option<u64>) {
        let mut state = self.0.lock();
        for key in keys {
            let known = state.get(key).copied();
            if known.is_none() || known == lost {
                state.set(*key, home);
            }
        }
    }

    /// Entries that are held.
    pub fn len(&self) -> usize {
        self.0.lock().len()
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
    fn the_longest_key_that_is_known_wins() {
        let homes = Homes::default();
        assert_eq!(homes.find(&[1, 2, 3]), None);
        homes.settle(&[1, 2], 7, None);
        homes.settle(&[1, 4], 8, None);
        assert_eq!((homes.find(&[1]), homes.find(&[1, 2])), (Some((7, true)), Some((7, true))));
        assert_eq!((homes.find(&[1, 2, 3]), homes.find(&[1, 4])), (Some((7, false)), Some((8, true))));
    }

    #[test]
    fn a_home_is_changed_only_where_it_is_lost() {
        let homes = Homes::default();
        homes.settle(&[1, 2], 7, None);
        homes.settle(&[1, 2, 3], 8, None);
        assert_eq!((homes.find(&[1, 2]), homes.find(&[1, 2, 3])), (Some((7, true)), Some((8, true))));
        homes.settle(&[1, 2, 3], 9, Some(7));
        assert_eq!((homes.find(&[1, 2]), homes.find(&[1, 2, 3])), (Some((9, true)), Some((8, true))));
    }

    #[test]
    fn the_oldest_go_and_what_is_used_stays() {
        let homes = Homes::default();
        let most = ENTRIES_MAX as u64;
        for key in 0..10 * most {
            homes.settle(&[key], key, None);
            assert!(key % 1_024 > 0 || homes.len() <= ENTRIES_MAX);
            if key % 1_000 == 0 {
                assert_eq!(homes.find(&[0]), Some((0, true)), "used all the time");
            }
        }
        assert_eq!(homes.find(&[1]), None);
        let recent = (10 * most - most / 2..10 * most).filter(|key| homes.find(&[*key]).is_some()).count();
        assert_eq!(recent, ENTRIES_MAX / 2, "the last half of the table is known");
    }
}
