//! Signatures of texts that tell how alike they are: MinHash (Broder 1997) and SimHash (Charikar 2002).

use super::hash::{KeyType, hash_bytes};
use super::shingles::Shingles;
use crate::error::{Error, Result};
use crate::sampler::draw::{high, low};
use crate::sampler::philox::{Blocks, Domain};

/// Hashes that are worked on at once, so that they stay in the nearest cache beside the signature.
const AT_ONCE: usize = 512;

/// Makes MinHash signatures: of k permutations of all hashes the smallest value that a shingle of the text takes. Two
/// signatures agree at a place with the probability that is the Jaccard similarity of the texts' sets of shingles, so
/// the share of equal places estimates it with a standard error of sqrt(J (1 - J) / k).
///
/// Permutation i maps the hash h to (a_i h + b_i) mod 2^64, with a_i the low half of a Philox block made odd and b_i its
/// high half; the signature keeps the upper 32 bits.
#[derive(Clone, Debug)]
pub struct MinHash {
    shingles: Shingles,
    steps: Vec<(u64, u64)>,
    hashes: Vec<u64>,
}

impl MinHash {
    /// Signatures of k values.
    ///
    /// # Errors
    /// [`Error::Argument`] for k = 0.
    pub fn new(shingles: Shingles, k: u32, seed: u64) -> Result<Self> {
        if k == 0 {
            return Err(Error::Argument {
                argument: "k",
                message: "k must be at least 1, found 0".to_owned(),
            });
        }
        let blocks = Blocks::new(seed, 0, Domain::MinHash);
        let steps = (0..u64::from(k))
            .map(|i| blocks.get(i))
            .map(|block| (low(block) | 1, high(block)))
            .collect();
        Ok(Self {
            shingles,
            steps,
            hashes: Vec::new(),
        })
    }

    /// Appends the k values of a text.
    pub fn extend(&mut self, text: &str, out: &mut Vec<u32>) {
        self.hashes.clear();
        self.shingles.each(text, |hash| self.hashes.push(hash));
        // A set: what repeats would only cost time.
        self.hashes.sort_unstable();
        self.hashes.dedup();
        let first = out.len();
        out.resize(first + self.steps.len(), u32::MAX);
        for hashes in self.hashes.chunks(AT_ONCE) {
            for (slot, &(a, b)) in out[first..].iter_mut().zip(&self.steps) {
                let smallest = hashes
                    .iter()
                    .map(|&hash| hash.wrapping_mul(a).wrapping_add(b))
                    .min()
                    .unwrap_or(u64::MAX);
                *slot = (*slot).min(upper(smallest));
            }
        }
    }
}

/// The upper 32 bits.
fn upper(x: u64) -> u32 {
    (x >> 32 & 0xFFFF_FFFF) as u32
}

/// Appends the hashes of the bands of a signature: cut into `bands` runs of as many values, each hashed as the bytes of
/// its values, little-endian, under the number of the band. Texts that agree in a whole band have a hash in common,
/// which texts of similarity J and bands of r values do with probability 1 - (1 - J^r)^bands.
///
/// The length must be a multiple of `bands`; values past that are left out.
pub fn band_hashes(signature: &[u32], bands: usize, written: &mut Vec<u8>, out: &mut Vec<u64>) {
    let run = (signature.len() / bands.max(1)).max(1);
    for (band, values) in (0..).zip(signature.chunks_exact(run)).take(bands) {
        written.clear();
        for value in values {
            written.extend_from_slice(&value.to_le_bytes());
        }
        out.push(hash_bytes(written, KeyType::Binary.seed(band)));
    }
}

/// The SimHash of a text: bit i is 1 if more hashes of its shingles have it set than not, each occurrence counted. Texts
/// alike have few different bits: the angle between their vectors of shingle counts is about pi / 64 a bit.
pub fn simhash(shingles: &mut Shingles, text: &str) -> u64 {
    let mut set = [0_u32; 64];
    let mut count = 0_u32;
    shingles.each(text, |hash| {
        count = count.saturating_add(1);
        for (bit, sum) in set.iter_mut().enumerate() {
            // One bit is left.
            *sum += (hash >> bit & 1) as u32;
        }
    });
    set.iter().enumerate().fold(0, |hash, (bit, &sum)| {
        hash | u64::from(u64::from(sum) * 2 > u64::from(count)) << bit
    })
}

#[cfg(test)]
mod tests {
    use super::{MinHash, band_hashes, simhash};
    use crate::expr::shingles::{ShingleUnit, Shingles};

    fn words(range: std::ops::Range<u32>) -> String {
        range.map(|i| format!("w{i} ")).collect()
    }

    fn signature(text: &str, k: u32, seed: u64) -> Vec<u32> {
        let shingles = Shingles::new(ShingleUnit::Word, 1, seed).unwrap();
        let mut out = Vec::new();
        MinHash::new(shingles, k, seed)
            .unwrap()
            .extend(text, &mut out);
        out
    }

    /// Over many seeds the estimate is neither too high nor too low, and as far off as k binomial draws are.
    #[test]
    fn estimates_the_jaccard_similarity() {
        // Of 300 words 100, 200 and 270 are shared.
        for (shared, similarity) in [(100, 100.0 / 500.0), (200, 0.5), (270, 270.0 / 330.0)] {
            let (a, b) = (words(0..300), words(300 - shared..600 - shared));
            let (k, rounds) = (128, 200);
            let errors: Vec<f64> = (0..rounds)
                .map(|seed| {
                    let (a, b) = (signature(&a, k, seed), signature(&b, k, seed));
                    let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
                    equal as f64 / f64::from(k) - similarity
                })
                .collect();
            let mean = errors.iter().sum::<f64>() / rounds as f64;
            let square = errors.iter().map(|error| error * error).sum::<f64>() / rounds as f64;
            let expected = similarity * (1.0 - similarity) / f64::from(k);
            // Four standard errors of the mean; the variance of 200 estimates is within 40 % of its own.
            assert!(
                mean.abs() < 4.0 * (expected / rounds as f64).sqrt(),
                "{mean}"
            );
            assert!((square / expected - 1.0).abs() < 0.4, "{square} {expected}");
        }
    }

    #[test]
    fn signatures_are_of_sets() {
        assert_eq!(signature("a b a b b", 16, 1), signature("b a", 16, 1));
        assert_ne!(signature("a b", 16, 1), signature("a b", 16, 2));
        assert_ne!(signature("a b", 16, 1), signature("a c", 16, 1));
        // More hashes than are worked on at once.
        let (a, b) = (words(0..700), words(700..1400));
        let smaller: Vec<u32> = signature(&a, 8, 1)
            .into_iter()
            .zip(signature(&b, 8, 1))
            .map(|(a, b)| a.min(b))
            .collect();
        assert_eq!(signature(&(a + &b), 8, 1), smaller);
    }

    #[test]
    fn bands_are_hashed_by_their_number() {
        let mut out = Vec::new();
        band_hashes(&[1, 2, 1, 2, 3, 4], 3, &mut Vec::new(), &mut out);
        assert_eq!(out.len(), 3);
        assert_ne!(out[0], out[1]);
        let mut other = Vec::new();
        band_hashes(&[9, 9, 1, 2, 9, 9], 3, &mut Vec::new(), &mut other);
        assert_eq!(out[1], other[1]);
        assert_ne!(out[0], other[0]);
    }

    #[test]
    fn bits_of_the_majority() {
        let hash = |text: &str| simhash(&mut Shingles::new(ShingleUnit::Word, 1, 0).unwrap(), text);
        let [a, b, c] = ["a", "b", "c"].map(hash);
        assert_eq!(hash("a b c"), a & b | a & c | b & c);
        assert_eq!(hash("a a b"), a);
        // Ties are 0.
        assert_eq!(hash("a b"), a & b);
        let near = hash(&words(0..300)) ^ hash(&words(5..305));
        let far = hash(&words(0..300)) ^ hash(&words(300..600));
        assert!(near.count_ones() < 12 && far.count_ones() > 18);
    }

    #[test]
    fn what_is_refused() {
        let shingles = Shingles::new(ShingleUnit::Char, 1, 0).unwrap();
        assert!(MinHash::new(shingles, 0, 0).is_err());
        assert!(Shingles::new(ShingleUnit::Char, 0, 0).is_err());
    }
}
