//! Digests of an active table and of the caches under it, by which a saved position knows its own.
//!
//! A table is digested by runs: longest sequences of rows of one cache whose sample ids rise by one. A table that was
//! not edited is one run a cache, whatever its size.

use sha2::{Digest, Sha256};

/// Opens the digest of a table.
const TABLE_TAG: &[u8] = b"dataset_rt table 1\0";

/// The most caches whose heads a saved position lists.
pub const CACHE_HEADS: usize = 64;

/// A run that may still grow.
#[derive(Clone, Copy, Debug)]
struct Run {
    cache: u64,
    first: u64,
    count: u64,
    /// Bits of the weight of all rows; 0 where weights don't enter.
    weight: u64,
}

impl Run {
    /// Takes the other in, where it goes on exactly where this one ends.
    fn join(&mut self, other: &Self) -> bool {
        let follows = self.cache == other.cache
            && self.weight == other.weight
            && self.first.checked_add(self.count) == Some(other.first);
        if follows {
            self.count += other.count;
        }
        follows
    }
}

/// Runs as they are hashed: each only once nothing can be joined to it any more.
#[derive(Clone, Debug)]
struct Runs {
    hash: Sha256,
    open: Option<Run>,
}

impl Runs {
    fn new() -> Self {
        Self {
            hash: Sha256::new_with_prefix(TABLE_TAG),
            open: None,
        }
    }

    /// Takes a run; gives the one that it closes.
    fn push(&mut self, run: Run) -> Option<Run> {
        if run.count == 0 {
            return None;
        }
        if let Some(open) = &mut self.open
            && open.join(&run)
        {
            return None;
        }
        self.open.replace(run)
    }

    fn hash(&mut self, run: &Run, weighted: bool) {
        let words = [run.cache, run.first, run.count, run.weight];
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        self.hash.update(&bytes[..if weighted { 32 } else { 24 }]);
    }

    fn finish(mut self, weighted: bool) -> [u8; 32] {
        if let Some(run) = self.open.take() {
            self.hash(&run, weighted);
        }
        self.hash.finalize().into()
    }
}

/// Digest of which samples the rows of a table are.
#[derive(Clone, Debug)]
pub struct RowsDigest(Runs);

impl Default for RowsDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl RowsDigest {
    /// Of no rows yet.
    pub fn new() -> Self {
        Self(Runs::new())
    }

    /// Appends `count` rows: the samples `first`, `first + 1`, ... of a cache. Pieces of a run may come one by one.
    pub fn push(&mut self, cache: u64, first: u64, count: u64) {
        if let Some(closed) = self.0.push(Run {
            cache,
            first,
            count,
            weight: 0,
        }) {
            self.0.hash(&closed, false);
        }
    }

    /// The digest.
    pub fn finish(self) -> [u8; 32] {
        self.0.finish(false)
    }
}

/// Digest of which samples the rows of a table are, and of their weights.
#[derive(Clone, Debug)]
pub struct WeightsDigest(Runs);

impl Default for WeightsDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl WeightsDigest {
    /// Of no rows yet.
    pub fn new() -> Self {
        Self(Runs::new())
    }

    /// Appends `count` rows of one weight: the samples `first`, `first + 1`, ... of a cache. Pieces of a run may come
    /// one by one.
    pub fn push(&mut self, cache: u64, first: u64, count: u64, weight: f64) {
        if let Some(closed) = self.0.push(Run {
            cache,
            first,
            count,
            weight: weight.to_bits(),
        }) {
            self.0.hash(&closed, true);
        }
    }

    /// The digest.
    pub fn finish(self) -> [u8; 32] {
        self.0.finish(true)
    }
}

/// Digest of the identities of caches, in the order in which they are loaded.
pub fn caches_digest<'a>(identities: impl IntoIterator<Item = &'a [u8; 32]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for identity in identities {
        hash.update(identity);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::{RowsDigest, WeightsDigest, caches_digest};
    use crate::sampler::golden;

    fn hex(digest: [u8; 32]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_are_those_of_the_definition() {
        let mut rows = RowsDigest::new();
        let mut weights = WeightsDigest::new();
        for (cache, first, count) in [(0, 0, 1000), (1, 5, 1), (1, 4, 3), (2, 1 << 40, 2)] {
            rows.push(cache, first, count);
        }
        for (cache, first, count, weight) in [
            (0, 0, 400, 1.0),
            (0, 400, 600, 2.0),
            (1, 5, 1, 2.0),
            (1, 4, 3, 0.5),
            (2, 1 << 40, 2, 0.5),
        ] {
            weights.push(cache, first, count, weight);
        }
        assert_eq!(hex(rows.finish()), golden::ROWS_DIGEST);
        assert_eq!(hex(weights.finish()), golden::WEIGHTS_DIGEST);
        let counted: [u8; 32] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        assert_eq!(
            hex(caches_digest([&[1; 32], &counted])),
            golden::CACHES_DIGEST
        );
    }

    #[test]
    fn row_by_row_is_the_same_as_by_runs() {
        let (mut whole, mut single) = (RowsDigest::new(), RowsDigest::new());
        let (mut whole_weights, mut single_weights) = (WeightsDigest::new(), WeightsDigest::new());
        for (cache, first, count, weight) in [
            (0, 0, 50, 1.5),
            (0, 50, 7, 2.5),
            (1, 57, 3, 2.5),
            (1, 9, 2, 0.1),
        ] {
            whole.push(cache, first, count);
            whole_weights.push(cache, first, count, weight);
            whole.push(9, 9, 0);
            for sample in first..first + count {
                single.push(cache, sample, 1);
                single_weights.push(cache, sample, 1, weight);
            }
        }
        assert_eq!(whole.finish(), single.finish());
        assert_eq!(whole_weights.finish(), single_weights.finish());
    }

    #[test]
    fn any_change_of_the_rows_shows() {
        let of = |rows: &[(u64, u64)]| {
            let mut digest = RowsDigest::new();
            for &(cache, sample) in rows {
                digest.push(cache, sample, 1);
            }
            digest.finish()
        };
        let tables: [&[(u64, u64)]; 8] = [
            &[],
            &[(0, 0)],
            &[(0, 0), (0, 1)],
            &[(0, 1), (0, 0)],
            &[(0, 0), (0, 0)],
            &[(0, 0), (1, 1)],
            &[(0, 0), (0, 1), (0, 2)],
            &[(0, u64::MAX), (0, 0)],
        ];
        for (i, one) in tables.iter().enumerate() {
            for other in &tables[..i] {
                assert_ne!(of(one), of(other), "{one:?} {other:?}");
            }
        }
        let of = |weights: [f64; 2]| {
            let mut digest = WeightsDigest::new();
            digest.push(0, 0, 1, weights[0]);
            digest.push(0, 1, 1, weights[1]);
            digest.finish()
        };
        assert_ne!(of([1.0, 1.0]), of([1.0, 1.0 + f64::EPSILON]));
        assert_ne!(of([1.0, 2.0]), of([2.0, 1.0]));
    }
}
