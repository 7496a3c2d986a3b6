//! Draws over a column: samples by weight, rows of each class, keys that shuffle.
//!
//! The random word of a row is a Philox block of (seed, number of the row or hash of its key, use). With groups the
//! seed of a group is a block of (seed, hash of the group), and rows are numbered within their group, so that each group
//! is drawn as if it stood alone under a seed of its own.

use std::sync::Arc;

use super::hashed::{Groups, check_rows, narrow};
use super::memory::with_room;
use super::numbers::{Rule, count_above_zero};
use super::smallest::smallest;
use crate::error::{Error, Fault, Result};
use crate::sampler::draw::{index, low};
use crate::sampler::philox::{Blocks, Domain};
use crate::sampler::race;
use crate::sampler::tickets::{BATCH as TICKETS, TicketTable};
use crate::sampler::{Sampler, SamplerConfig};

/// The key of a row that is never taken: above all keys of [`race`].
const NEVER: u64 = u64::MAX;

/// Rows that are worked on while they are in the cache.
const PART: usize = 512;

/// Positions that a sampler fills at once.
const FILLED: u64 = 4096;

/// Whose random words: a seed, and what rows are known by.
#[derive(Clone, Copy, Debug)]
pub struct Drawing<'a> {
    /// The seed.
    pub seed: u64,
    /// Hashes of the rows' keys; without them rows go by their numbers.
    pub keys: Option<&'a [u64]>,
    /// The groups that are drawn from, each by itself.
    pub groups: Option<&'a Groups>,
}

/// The seed of a group.
fn group_seed(seed: u64, group: u64) -> u64 {
    low(Blocks::new(seed, 0, Domain::Group).get(group))
}

/// Blocks of the rows of a column for one use.
struct RowBlocks<'a> {
    all: Blocks,
    keys: Option<&'a [u64]>,
    groups: Option<GroupBlocks<'a>>,
}

struct GroupBlocks<'a> {
    codes: &'a [u32],
    blocks: Vec<Blocks>,
    places: Vec<u32>,
}

impl<'a> RowBlocks<'a> {
    fn new(drawing: &Drawing<'a>, domain: Domain) -> Self {
        let groups = drawing.groups.map(|groups| GroupBlocks {
            codes: groups.codes(),
            blocks: groups
                .hashes()
                .iter()
                .map(|&group| Blocks::new(group_seed(drawing.seed, group), 0, domain))
                .collect(),
            places: if drawing.keys.is_some() {
                Vec::new()
            } else {
                groups.places()
            },
        });
        Self {
            all: Blocks::new(drawing.seed, 0, domain),
            keys: drawing.keys,
            groups,
        }
    }

    /// A random word of each of the rows from `first` on.
    fn fill(&self, first: usize, out: &mut [u64]) {
        let rows = first..first + out.len();
        match (&self.groups, self.keys) {
            (None, None) => self.all.fill_low(first as u64, out),
            (None, Some(keys)) => self.all.fill_low_of(&keys[rows], out),
            (Some(groups), keys) => {
                for (slot, row) in out.iter_mut().zip(rows) {
                    let place = match keys {
                        Some(keys) => keys[row],
                        None => u64::from(groups.places[row]),
                    };
                    *slot = low(groups.blocks[groups.codes[row] as usize].get(place));
                }
            }
        }
    }

    /// One word a row.
    fn words(&self, rows: usize) -> Vec<u64> {
        // Filled part by part, so that each is written once while its page is in the cache.
        let mut words = with_room(rows);
        let mut part = [0; PART];
        while words.len() < rows {
            let part = &mut part[..PART.min(rows - words.len())];
            self.fill(words.len(), part);
            words.extend_from_slice(part);
        }
        words
    }
}

/// Numbers to sort rows by, so that they come in a random order.
pub fn shuffle_keys(rows: usize, drawing: &Drawing<'_>) -> Vec<u64> {
    RowBlocks::new(drawing, Domain::Shuffle).words(rows)
}

/// The random word of a row by its number or the hash of its key, as [`shuffle_keys`] without groups gives it.
pub fn shuffle_key(seed: u64, number: u64) -> u64 {
    low(Blocks::new(seed, 0, Domain::Shuffle).get(number))
}

/// Which n rows are drawn, one after another without replacement, each in proportion to the weights that are left
/// (Efraimidis and Spirakis 2006): those with the n smallest keys E / w, of equal ones the first. With groups n of each.
///
/// Rows of weight 0 are never drawn. Keys are those of a weighted order of `spec/sampling.md`, section 8. No sort: the
/// n-th key is selected in linear time.
///
/// # Errors
/// [`Error::Table`] for a weight that is negative or not finite, or where fewer than n rows have a weight above 0; a
/// column without rows has no draws, whatever n.
pub fn sample_without_replacement(
    weights: &[f64],
    n: usize,
    drawing: &Drawing<'_>,
) -> Result<Vec<bool>> {
    let above_zero = check_weights(weights)?;
    enough(weights, above_zero, n, drawing.groups)?;
    let blocks = RowBlocks::new(drawing, Domain::Select);
    let mut keys = with_room(weights.len());
    let mut words = [0; PART];
    for weights in weights.chunks(PART) {
        let first = keys.len();
        let words = &mut words[..weights.len()];
        blocks.fill(first, words);
        let batches = words.chunks(race::BATCH).zip(weights.chunks(race::BATCH));
        for (words, weights) in batches {
            race::keys(words, weights, &mut keys);
        }
        for (key, &weight) in keys[first..].iter_mut().zip(weights) {
            *key = if weight == 0.0 { NEVER } else { *key };
        }
    }
    Ok(match drawing.groups {
        None => smallest(&keys, n),
        Some(groups) => {
            let mut mask = vec![false; weights.len()];
            let mut of_group = Vec::new();
            for rows in groups.iter() {
                of_group.clear();
                of_group.extend(rows.iter().map(|&row| keys[row as usize]));
                for (&row, taken) in rows.iter().zip(smallest(&of_group, n)) {
                    mask[row as usize] = taken;
                }
            }
            mask
        }
    })
}

/// How often each row is drawn in n draws with replacement, each in proportion to the weights. With groups n draws in
/// each. Draw p takes the row that `spec/sampling.md`, section 6.3, gives for its block; with keys the rows stand there
/// in the order of their keys' hashes.
///
/// # Errors
/// [`Error::Table`] for a weight that is negative or not finite, or where n isn't 0 and there are rows, but none
/// with a weight above 0.
pub fn sample_with_replacement(weights: &[f64], n: u32, drawing: &Drawing<'_>) -> Result<Vec<u32>> {
    check_weights(weights)?;
    check_rows(weights.len())?;
    let mut counts = vec![0; weights.len()];
    let mut draw = |rows: &mut Vec<u32>, seed: u64| {
        rows.retain(|&row| weights[row as usize] > 0.0);
        if n == 0 || weights.is_empty() {
            return Ok(());
        }
        if rows.is_empty() {
            return Err(nothing_to_draw());
        }
        if let Some(keys) = drawing.keys {
            rows.sort_unstable_by_key(|&row| (keys[row as usize], row));
        }
        let of_rows: Vec<f64> = rows.iter().map(|&row| weights[row as usize]).collect();
        let table = TicketTable::new(&of_rows);
        let blocks = Blocks::new(seed, 0, Domain::Counts);
        let (mut words, mut drawn) = ([0; TICKETS], [0; TICKETS]);
        let mut position = 0;
        while position < n {
            let count = (n - position).min(narrow(TICKETS));
            let (words, drawn) = (&mut words[..count as usize], &mut drawn[..count as usize]);
            blocks.fill(u64::from(position), words);
            table.rows(words, drawn);
            for &row in &*drawn {
                counts[rows[index(row)] as usize] += 1;
            }
            position += count;
        }
        Ok(())
    };
    match drawing.groups {
        None => draw(&mut (0..narrow(weights.len())).collect(), drawing.seed)?,
        Some(groups) => {
            for (rows, &hash) in groups.iter().zip(groups.hashes()) {
                draw(&mut rows.to_vec(), group_seed(drawing.seed, hash))?;
            }
        }
    }
    Ok(counts)
}

/// How often each row comes at the first n positions of the stream that a dataset with these weights and this
/// configuration reads, by the same sampler. Rows of weight 0 are left out of the table, as when a dataset drops them.
/// With groups each has a stream of its own.
///
/// # Errors
/// [`Error::Table`] for a weight that is negative or not finite, or where n isn't 0 and there are rows, but none
/// with a weight above 0.
pub fn draw_counts(
    weights: &[f64],
    n: u32,
    config: SamplerConfig,
    groups: Option<&Groups>,
) -> Result<Vec<u32>> {
    check_weights(weights)?;
    check_rows(weights.len())?;
    let mut counts = vec![0; weights.len()];
    let mut draw = |rows: Vec<u32>, config| {
        let rows: Vec<u32> = rows
            .into_iter()
            .filter(|&row| weights[row as usize] > 0.0)
            .collect();
        if n == 0 || weights.is_empty() {
            return Ok(());
        }
        if rows.is_empty() {
            return Err(nothing_to_draw());
        }
        let of_rows: Arc<[f64]> = rows.iter().map(|&row| weights[row as usize]).collect();
        let sampler = Sampler::new(config, rows.len() as u64, Some(of_rows))?;
        let mut drawn = vec![0; index(FILLED.min(u64::from(n)))];
        let mut position = 0;
        while position < u64::from(n) {
            let count = index(FILLED.min(u64::from(n) - position));
            let drawn = &mut drawn[..count];
            sampler.fill(position, drawn);
            for &row in &*drawn {
                counts[rows[index(row)] as usize] += 1;
            }
            position += count as u64;
        }
        Ok(())
    };
    match groups {
        None => draw((0..narrow(weights.len())).collect(), config)?,
        Some(groups) => {
            for (rows, &hash) in groups.iter().zip(groups.hashes()) {
                let seed = group_seed(config.seed, hash);
                draw(rows.to_vec(), SamplerConfig { seed, ..config })?;
            }
        }
    }
    Ok(counts)
}

/// How often each row is taken so that every class is taken m times. Of a class with more than m rows m are drawn, all
/// alike; a smaller one is repeated as often as it fits, and the rest of m is drawn from it.
pub fn per_class(classes: &Groups, m: u32, drawing: &Drawing<'_>) -> Vec<u32> {
    let rows = classes.codes().len();
    let words = RowBlocks::new(drawing, Domain::PerClass).words(rows);
    let mut counts = vec![0; rows];
    let mut of_class = Vec::new();
    for rows in classes.iter() {
        of_class.clear();
        of_class.extend(rows.iter().map(|&row| words[row as usize]));
        // A class has at least one row.
        let (times, rest) = (m / narrow(rows.len()).max(1), m % narrow(rows.len()).max(1));
        for (&row, taken) in rows.iter().zip(smallest(&of_class, rest as usize)) {
            counts[row as usize] = times + u32::from(taken);
        }
    }
    counts
}

/// How often each row comes when its factor is rounded up or down at random: floor(f), and one more with the probability
/// of what is left (Gupta, Dollar and Girshick 2019). The random number is that of the upper 53 bits of the row's word.
///
/// # Errors
/// [`Error::Table`] for a factor that is negative or 2^32 - 1 or more.
pub fn repeat_counts(factors: &[f64], drawing: &Drawing<'_>) -> Result<Vec<u32>> {
    const MOST: f64 = 4_294_967_295.0;
    if let Some(row) = factors
        .iter()
        .position(|factor| !(0.0..MOST).contains(factor))
    {
        return Err(Error::Table {
            fault: Fault::Value,
            column: "factor".to_owned(),
            row: Some(row as u64),
            message: format!(
                "factors must be at least 0 and below 2^32 - 1, found {} at row {row}",
                factors[row]
            ),
        });
    }
    let mut words = RowBlocks::new(drawing, Domain::Repeat).words(factors.len());
    Ok(factors
        .iter()
        .zip(&mut words)
        .map(|(&factor, word)| {
            let (whole, rest) = (factor.floor(), factor.fract());
            let chance = (*word >> 11) as f64 / 9_007_199_254_740_992.0;
            // Checked to be in range.
            #[allow(clippy::cast_possible_truncation)]
            let times = whole as u32;
            times + u32::from(chance < rest)
        })
        .collect())
}

/// How many weights are above 0.
fn check_weights(weights: &[f64]) -> Result<usize> {
    let mut above_zero = 0;
    let mut all = true;
    for block in weights.chunks(PART) {
        all &= Rule::Weight.allows_all(block);
        above_zero += count_above_zero(block);
    }
    if all {
        return Ok(above_zero);
    }
    let row = weights
        .iter()
        .position(|&weight| !Rule::Weight.allows(weight));
    let row = row.unwrap_or_default();
    Err(Error::Table {
        fault: Fault::Value,
        column: "weight".to_owned(),
        row: Some(row as u64),
        message: format!(
            "weights must be finite and at least 0, found {} at row {row}",
            weights[row]
        ),
    })
}

/// Whether n rows can be drawn, from every group; so many weights are above 0 in all.
fn enough(weights: &[f64], above_zero: usize, n: usize, groups: Option<&Groups>) -> Result<()> {
    let refused = |found: usize, place: String| {
        Err(Error::Table {
            fault: Fault::Value,
            column: "weight".to_owned(),
            row: None,
            message: format!(
                "n = {n} rows can't be drawn without replacement: {found} have a weight above 0{place}"
            ),
        })
    };
    match groups {
        None => {
            if above_zero < n && !weights.is_empty() {
                return refused(above_zero, String::new());
            }
        }
        Some(groups) => {
            for rows in groups.iter() {
                let found = rows
                    .iter()
                    .filter(|&&row| weights[row as usize] > 0.0)
                    .count();
                if found < n {
                    return refused(found, format!(" in the group of row {}", rows[0]));
                }
            }
        }
    }
    Ok(())
}

fn nothing_to_draw() -> Error {
    Error::Table {
        fault: Fault::Value,
        column: "weight".to_owned(),
        row: None,
        message: "nothing can be drawn: no row has a weight above 0".to_owned(),
    }
}

#[cfg(test)]
mod tests;
