//! A bounded table that gives up what was not used lately.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes the packed keys of this module's users, which are small numbers: one multiplication is enough.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let product = (self.0 ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}

pub(crate) type Places = HashMap<u64, usize, BuildHasherDefault<Mix>>;

struct Kept<V> {
    key: u64,
    value: V,
    used: bool,
}

/// At most `limit` values; a full table gives up one that was not used since the hand last passed it.
pub(crate) struct Lru<V> {
    limit: usize,
    kept: Vec<Kept<V>>,
    places: Places,
    hand: usize,
}

impl<V: Clone> Lru<V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            kept: Vec::new(),
            places: Places::default(),
            hand: 0,
        }
    }

    pub(crate) fn get(&mut self, key: u64) -> Option<V> {
        let kept = self.kept.get_mut(*self.places.get(&key)?)?;
        kept.used = true;
        Some(kept.value.clone())
    }

    /// Keeps a value and gives back what had to go, to be dropped outside of any lock.
    #[must_use]
    pub(crate) fn insert(&mut self, key: u64, value: V) -> Option<V> {
        if let Some(kept) = self
            .places
            .get(&key)
            .and_then(|&place| self.kept.get_mut(place))
        {
            kept.used = true;
            return Some(std::mem::replace(&mut kept.value, value));
        }
        if self.kept.len() < self.limit {
            self.places.insert(key, self.kept.len());
            self.kept.push(Kept {
                key,
                value,
                used: true,
            });
            return None;
        }
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.kept.len();
            let kept = self.kept.get_mut(place)?;
            if std::mem::take(&mut kept.used) {
                continue;
            }
            let old = std::mem::replace(
                kept,
                Kept {
                    key,
                    value,
                    used: true,
                },
            );
            self.places.remove(&old.key);
            self.places.insert(key, place);
            return Some(old.value);
        }
    }

    /// Gives up all values whose key is not wanted, to be dropped outside of any lock.
    #[must_use]
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(u64) -> bool) -> Vec<V> {
        let mut gone = Vec::new();
        let mut place = 0;
        while let Some(kept) = self.kept.get(place) {
            if wanted(kept.key) {
                place += 1;
                continue;
            }
            let old = self.kept.swap_remove(place);
            self.places.remove(&old.key);
            if let Some(moved) = self.kept.get(place) {
                self.places.insert(moved.key, place);
            }
            gone.push(old.value);
        }
        self.hand = 0;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::Lru;

    #[test]
    fn keeps_what_is_used_and_never_more_than_its_limit() {
        let mut lru = Lru::new(3);
        for key in 0..3 {
            assert_eq!(lru.insert(key, key * 10), None);
        }
        // One round clears all marks, so that 0 is the first to go; then 1 is used and stays.
        assert_eq!(lru.insert(3, 30), Some(0));
        assert_eq!(lru.get(1), Some(10));
        assert_eq!(lru.insert(4, 40), Some(20));
        assert_eq!(
            (lru.get(0), lru.get(1), lru.get(3)),
            (None, Some(10), Some(30))
        );
        assert_eq!(lru.insert(4, 41), Some(40));
        let mut gone = lru.retain(|key| key != 1 && key != 4);
        gone.sort_unstable();
        assert_eq!(gone, [10, 41]);
        assert_eq!((lru.get(3), lru.get(4)), (Some(30), None));
        for key in 5..100 {
            let _ = lru.insert(key, key);
            assert_eq!(lru.get(key), Some(key));
        }
    }
}
