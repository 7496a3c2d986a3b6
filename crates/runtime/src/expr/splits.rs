//! Splits that keep the shares of each class or the order of time, and keys that stand in several parts.
//!
//! All go by hashes of keys, labels and groups, never by places of rows: the same rows in another order get the same
//! parts.

use std::collections::HashMap;

use super::class_cuts::{ClassCuts, FewCuts, ManyCuts};
use super::hashed::{GroupCodes, Groups, HashesTo, narrow};
use super::memory::with_room;
use super::shares::Shares;
use super::smallest::Cuts;
use crate::error::{Error, Result};

/// The part of each row so that every class is split by the shares: of each class a part gets the rows of its share
/// rounded up or down, of what is left over always the part that is furthest behind over the classes before.
///
/// Within a class the first part has the smallest keys' hashes, and so on: when rows are added few others move. Rows of
/// one label and key stay together, and count as one where they stand on a border.
///
/// # Errors
/// [`Error::Internal`](crate::Error::Internal) for another number of keys.
pub fn stratified(classes: &GroupCodes, keys: &[u64], shares: &Shares) -> Result<Vec<u32>> {
    if keys.len() != classes.codes().len() {
        return Err(Error::Internal("labels and keys of two lengths".to_owned()));
    }
    Ok(match shares.parts() {
        2 => stratified_by::<FewCuts<1>>(classes, keys, shares),
        3 => stratified_by::<FewCuts<2>>(classes, keys, shares),
        _ => stratified_by::<ManyCuts>(classes, keys, shares),
    })
}

fn stratified_by<C: ClassCuts>(classes: &GroupCodes, keys: &[u64], shares: &Shares) -> Vec<u32> {
    let mut hashes = classes.sorted(keys.iter().copied());
    let mut behind = vec![0.0; shares.parts()];
    let mut cuts = C::new(classes.hashes().len());
    for class in by_hash(classes.hashes()) {
        let hashes = &mut hashes[classes.range(class)];
        if hashes.is_empty() {
            continue;
        }
        let ranks = class_ranks(hashes.len(), shares, &mut behind);
        cuts.set(class, &Cuts::of_scratch(hashes, &ranks));
    }
    let mut parts = with_room(keys.len());
    let rows = classes.codes().iter().zip(keys);
    parts.extend(rows.map(|(&class, &key)| cuts.part(class as usize, key)));
    parts
}

/// Where each part but the last ends among the rows of a class. `behind` is what each part has got too little in the
/// classes before.
fn class_ranks(rows: usize, shares: &Shares, behind: &mut [f64]) -> Vec<usize> {
    let mut counts = shares.rows_of(rows);
    let mut left = rows.saturating_sub(counts.iter().map(|part| part.0).sum());
    for (part, late) in counts.iter().zip(&mut *behind) {
        *late += part.1;
    }
    // A part with no fraction left over is complete. At most one row each: the fractions make `left` rows.
    let mut open: Vec<usize> = (0..counts.len())
        .filter(|&part| counts[part].1 > 0.0)
        .collect();
    open.sort_by(|&a, &b| behind[b].total_cmp(&behind[a]).then(a.cmp(&b)));
    for part in open {
        if left == 0 {
            break;
        }
        counts[part].0 += 1;
        behind[part] -= 1.0;
        left -= 1;
    }
    let mut end = 0;
    counts[..counts.len() - 1]
        .iter()
        .map(|part| {
            end += part.0;
            end
        })
        .collect()
}

/// Groups by ascending hash, which no order of rows changes.
fn by_hash(hashes: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hashes.len()).collect();
    order.sort_unstable_by_key(|&group| hashes[group]);
    order
}

/// The part of each row so that rows of a group stay together and every class is split by the shares as well as that
/// allows: groups come by ascending hash, and each goes to the part that lacks most of its classes, weighted by its rows
/// of each.
///
/// Where each group has rows of one class alone, a part has its share of the class's rows within less than the largest
/// of these groups: no part that has its share gets another group while one lacks rows, and the one that gets it lacks
/// at least as much as every other.
///
/// # Errors
/// As [`Groups::new`].
pub fn stratified_groups(
    classes: &GroupCodes,
    groups: &[u64],
    shares: &Shares,
) -> Result<Vec<u32>> {
    let groups = Groups::new(groups)?;
    if groups.codes().len() != classes.codes().len() {
        return Err(Error::Internal(
            "labels and groups of two lengths".to_owned(),
        ));
    }
    // Rows of each class that a part still lacks.
    let fractions = shares.fractions();
    let mut lacks: Vec<Vec<f64>> = vec![vec![0.0; fractions.len()]; classes.hashes().len()];
    for (class, lacks) in lacks.iter_mut().enumerate() {
        let rows = classes.range(class).len() as f64;
        for (lack, share) in lacks.iter_mut().zip(&fractions) {
            *lack = rows * share;
        }
    }
    let mut parts = vec![0; groups.codes().len()];
    let mut counts: Vec<(u32, f64)> = Vec::new();
    let mut codes = Vec::new();
    let mut totals: Vec<f64> = fractions
        .iter()
        .map(|share| share * groups.codes().len() as f64)
        .collect();
    for group in by_hash(groups.hashes()) {
        let rows = groups.rows(group);
        codes.clear();
        codes.extend(rows.iter().map(|&row| classes.codes()[row as usize]));
        // In an order that is the classes' own, so that sums are the same for every order of rows.
        codes.sort_unstable_by_key(|&code| classes.hashes()[code as usize]);
        counts.clear();
        for same in codes.chunk_by(|a, b| a == b) {
            counts.push((same[0], same.len() as f64));
        }
        let part = best_part(&counts, &lacks, &totals);
        for &(class, count) in &counts {
            lacks[class as usize][part] -= count;
        }
        totals[part] -= rows.len() as f64;
        for &row in rows {
            parts[row as usize] = narrow(part);
        }
    }
    Ok(parts)
}

/// The part that lacks most of what a group has; of equal ones that which lacks most rows at all, then the first.
fn best_part(counts: &[(u32, f64)], lacks: &[Vec<f64>], totals: &[f64]) -> usize {
    let mut best = (0, f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (part, &total) in totals.iter().enumerate() {
        let lack = counts
            .iter()
            .map(|&(class, count)| lacks[class as usize][part] * count)
            .sum();
        if (lack, total) > (best.1, best.2) {
            best = (part, lack, total);
        }
    }
    best.0
}

/// The part of each row by rank: the first part has the smallest values. Equal values stay together, in the part of the
/// first of them; else a part has its share of the rows to the nearest.
pub fn by_rank(values: &[u64], shares: &Shares) -> Vec<u32> {
    Cuts::new(values, &shares.ranks(values.len())).parts(values)
}

/// Which rows have a key that stands in several parts. Rows without key or part (`counts` is false) have none.
pub fn leaks(parts: &[u64], keys: &[u64], counts: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut found: HashesTo<(u64, bool)> = HashMap::default();
    for (row, (&part, &key)) in parts.iter().zip(keys).enumerate() {
        if counts(row) {
            let seen = found.entry(key).or_insert((part, false));
            seen.1 |= seen.0 != part;
        }
    }
    keys.iter()
        .enumerate()
        .map(|(row, key)| counts(row) && found.get(key).is_some_and(|seen| seen.1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{GroupCodes, by_rank, leaks, stratified, stratified_groups};
    use crate::expr::codes::{Chunk, Codes, Nulls};
    use crate::expr::hash::hash_integer;
    use crate::expr::shares::Shares;

    fn hashes(values: impl IntoIterator<Item = u64>) -> Vec<u64> {
        values
            .into_iter()
            .map(|value| hash_integer(value, 5))
            .collect()
    }

    fn classes_of(labels: Vec<u64>) -> GroupCodes {
        GroupCodes::new(&hashes(labels)).unwrap()
    }

    /// Numbers with gaps make the same parts as the hashes they stand for.
    #[test]
    fn numbered_classes_are_the_hashed_ones() {
        let labels: Vec<u64> = classes().into_iter().map(|label| label * 2 + 3).collect();
        let chunk = Chunk {
            values: &labels,
            validity: None,
        };
        let codes = Codes::of_words(&[chunk], Nulls::NoClass).unwrap();
        let of_code = |row: Option<usize>| row.map_or(0, |row| hashes([labels[row]])[0]);
        let of_codes: Vec<u64> = codes.first_rows().into_iter().map(of_code).collect();
        assert!(of_codes.contains(&0));
        let numbered = GroupCodes::of_codes(codes, of_codes).unwrap();
        let hashed = classes_of(labels);
        let (keys, groups) = (hashes(0..5000), hashes((0..5000).map(|i| i / 7)));
        let shares = Shares::new(&[0.7, 0.2, 0.1]).unwrap();
        assert_eq!(
            stratified(&numbered, &keys, &shares).unwrap(),
            stratified(&hashed, &keys, &shares).unwrap()
        );
        assert_eq!(
            stratified_groups(&numbered, &groups, &shares).unwrap(),
            stratified_groups(&hashed, &groups, &shares).unwrap()
        );
    }

    /// Rows of class c in part p, classes by number.
    fn table(classes: &[u64], parts: &[u32], k: usize) -> Vec<Vec<usize>> {
        let place = |class: u64| usize::try_from(class).unwrap();
        let largest = classes.iter().max().map_or(0, |&class| place(class) + 1);
        let mut counts = vec![vec![0; k]; largest];
        for (&class, &part) in classes.iter().zip(parts) {
            counts[place(class)][part as usize] += 1;
        }
        counts
    }

    fn classes() -> Vec<u64> {
        (0..5000_u64).map(|i| (i * i + i / 7) % 97 % 13).collect()
    }

    #[test]
    fn classes_are_split_to_one_row() {
        let labels = classes();
        for shares in [
            vec![0.8, 0.2],
            vec![0.7, 0.2, 0.1],
            vec![0.33, 0.33, 0.34],
            vec![1.0],
            vec![0.999, 0.001],
        ] {
            let exact = Shares::new(&shares).unwrap();
            let parts = stratified(&classes_of(labels.clone()), &hashes(0..5000), &exact).unwrap();
            let table = table(&labels, &parts, shares.len());
            for row in &table {
                let n = row.iter().sum::<usize>() as f64;
                for (count, share) in row.iter().zip(&shares) {
                    assert!((*count as f64 - n * share).abs() < 1.0);
                }
            }
            for (part, share) in shares.iter().enumerate() {
                let total: usize = table.iter().map(|row| row[part]).sum();
                assert!((total as f64 - 5000.0 * share).abs() < 2.0, "{total}");
            }
        }
    }

    #[test]
    fn many_small_classes_add_up() {
        // 1000 classes of 3: rounding each alone would give the test part nothing or a third.
        let labels: Vec<u64> = (0..3000).map(|i| i / 3).collect();
        let shares = Shares::new(&[0.8, 0.2]).unwrap();
        let parts = stratified(&classes_of(labels), &hashes(0..3000), &shares).unwrap();
        assert_eq!(parts.iter().filter(|&&part| part == 1).count(), 600);
    }

    #[test]
    fn the_order_of_rows_is_nothing() {
        let labels = hashes(classes());
        let keys = hashes(0..5000);
        let groups = hashes((0..5000).map(|i| i / 7));
        let shares = Shares::equal(5).unwrap();
        let order: Vec<usize> = (0..5000).map(|i| i * 2503 % 5000).collect();
        let moved = |column: &[u64]| order.iter().map(|&row| column[row]).collect::<Vec<_>>();
        let of = |labels: &[u64]| GroupCodes::new(labels).unwrap();
        let parts = stratified(&of(&labels), &keys, &shares).unwrap();
        let again = stratified(&of(&moved(&labels)), &moved(&keys), &shares).unwrap();
        assert!(
            order
                .iter()
                .zip(again)
                .all(|(&row, part)| parts[row] == part)
        );
        let parts = stratified_groups(&of(&labels), &groups, &shares).unwrap();
        let again = stratified_groups(&of(&moved(&labels)), &moved(&groups), &shares).unwrap();
        assert!(
            order
                .iter()
                .zip(again)
                .all(|(&row, part)| parts[row] == part)
        );
    }

    #[test]
    fn one_key_is_in_one_part() {
        let keys = hashes((0..1000).map(|i| i / 10));
        let classes = GroupCodes::new(&[1; 1000]).unwrap();
        let parts = stratified(&classes, &keys, &Shares::equal(3).unwrap()).unwrap();
        assert!(
            parts
                .chunks(10)
                .all(|same| same.iter().all(|part| *part == same[0]))
        );
    }

    #[test]
    fn groups_stay_together_and_parts_near_their_shares() {
        // Groups of 1 to 12 rows, each of one class.
        let mut groups = Vec::new();
        let mut labels = Vec::new();
        for group in 0..800_u64 {
            for _ in 0..=group * 7 % 12 {
                groups.push(group);
                labels.push(group % 3);
            }
        }
        let shares = [0.6, 0.3, 0.1];
        let exact = Shares::new(&shares).unwrap();
        let parts = stratified_groups(&classes_of(labels.clone()), &hashes(groups.clone()), &exact)
            .unwrap();
        for (pair, part) in groups.windows(2).zip(parts.windows(2)) {
            assert!(pair[0] != pair[1] || part[0] == part[1]);
        }
        for row in table(&labels, &parts, 3) {
            let n = row.iter().sum::<usize>() as f64;
            for (count, share) in row.iter().zip(&shares) {
                assert!((*count as f64 - n * share).abs() < 12.0, "{row:?}");
            }
        }
    }

    #[test]
    fn times_are_cut_between_values() {
        let shares = Shares::new(&[0.5, 0.25, 0.25]).unwrap();
        assert_eq!(
            by_rank(&[8, 1, 2, 7, 3, 6, 5, 4], &shares),
            [2, 0, 0, 2, 0, 1, 1, 0]
        );
        assert_eq!(
            by_rank(&[1, 2, 2, 2, 2, 2, 2, 3], &shares),
            [0, 0, 0, 0, 0, 0, 0, 2]
        );
        assert!(by_rank(&[], &shares).is_empty());
    }

    #[test]
    fn keys_in_several_parts() {
        let keys = [1, 2, 1, 3, 3, 1];
        let mask = leaks(&[0, 0, 1, 1, 1, 0], &keys, |_| true);
        assert_eq!(mask, [true, false, true, false, false, true]);
        let mask = leaks(&[0, 0, 1, 1, 1, 0], &keys, |row| row != 2);
        assert_eq!(mask, [false; 6]);
    }
}
