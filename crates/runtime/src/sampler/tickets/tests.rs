//! Tickets: exact numbers, extreme weights, and a guide that changes nothing.

use super::{BATCH, TicketTable, short};
use crate::sampler::draw::scale;
use crate::sampler::golden;

fn tickets(weights: &[f64]) -> Vec<u64> {
    let mut before = 0;
    let ends = TicketTable::new(weights).ends;
    ends.iter()
        .map(|&end| end - std::mem::replace(&mut before, end))
        .collect()
}

/// The search of the definition, without a guide.
fn plain(table: &TicketTable, block: u128) -> u64 {
    let ticket = scale(block, table.sum());
    table.ends.iter().position(|&end| end > ticket).unwrap() as u64
}

fn rows(table: &TicketTable, blocks: &[u128]) -> Vec<u64> {
    let mut rows = vec![u64::MAX; blocks.len()];
    for (blocks, rows) in blocks.chunks(BATCH).zip(rows.chunks_mut(BATCH)) {
        table.rows(blocks, rows);
    }
    rows
}

/// Blocks at which the drawn ticket or the bucket changes, the blocks around them, and some random ones.
fn telling_blocks(table: &TicketTable) -> Vec<u128> {
    let sum = u128::from(table.sum());
    let mut blocks = vec![0, u128::MAX];
    let mut around =
        |block: u128| blocks.extend([block.wrapping_sub(1), block, block.wrapping_add(1)]);
    for &end in &table.ends {
        // The lowest block that is scaled to the ticket `end`: ceil(end * 2^128 / sum), by long division.
        let (high, rest) = ((u128::from(end) << 64) / sum, (u128::from(end) << 64) % sum);
        let (low, rest) = ((rest << 64) / sum, (rest << 64) % sum);
        around(
            (high << 64)
                .wrapping_add(low)
                .wrapping_add(u128::from(rest > 0)),
        );
    }
    for bucket in 0..1_u128 << table.guide_bits {
        around(bucket << (128 - table.guide_bits));
    }
    let mut x = 1_u128;
    for _ in 0..500 {
        x = x
            .wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645)
            .wrapping_add(0x5851_F42D_4C95_7F2D);
        blocks.push(x);
    }
    blocks
}

#[test]
fn numbers_are_those_of_the_definition() {
    for (weights, expected) in [
        (golden::COUNTED, golden::COUNTED_TICKETS),
        (golden::FRACTIONS, golden::FRACTIONS_TICKETS),
        (golden::FAR_APART, golden::FAR_APART_TICKETS),
        (golden::NEARLY_NONE, golden::NEARLY_NONE_TICKETS),
        (golden::SUBNORMAL, golden::SUBNORMAL_TICKETS),
        (golden::LARGEST, golden::LARGEST_TICKETS),
    ] {
        assert_eq!(tickets(weights), expected);
    }
}

#[test]
fn extreme_weights_keep_their_ratios() {
    let ratios = |weights: &[f64]| {
        let tickets = tickets(weights);
        assert!(
            tickets.iter().all(|count| count % tickets[0] == 0),
            "{weights:?}: {tickets:?}"
        );
        tickets
            .iter()
            .map(|count| count / tickets[0])
            .collect::<Vec<_>>()
    };
    assert_eq!(ratios(&[1e308; 3]), [1, 1, 1]);
    assert_eq!(ratios(&[5e-324; 3]), [1, 1, 1]);
    assert_eq!(ratios(&[5e-324, 1e-323, 1.5e-323]), [1, 2, 3]);
    assert_eq!(
        ratios(&[
            f64::MIN_POSITIVE / 2.0,
            f64::MIN_POSITIVE,
            f64::MIN_POSITIVE * 2.0
        ]),
        [1, 2, 4]
    );
    let far = tickets(&[1e308, 5e-324]);
    assert_eq!(far[1], 1);
    assert!(far[0] >= 1 << 62);
    // Many rows of next to nothing take next to nothing from the one that has all.
    let mut weights = vec![1e-300; 100_000];
    weights.push(1.0);
    let table = TicketTable::new(&weights);
    assert_eq!(table.ends[99_999], 100_000);
    assert!(table.sum() - 100_000 >= 1 << 62);
}

#[test]
fn sums_stay_within_64_bits() {
    for rows in [2, 3, 1000, 4097] {
        for weight in [5e-324, 1.0, 1.999_999_999_999_999_8, f64::MAX] {
            let sum = TicketTable::new(&vec![weight; rows]).sum();
            assert!(
                (1 << 62..(1 << 63) + rows as u64).contains(&sum),
                "{rows} {weight}: {sum}"
            );
            assert_eq!(sum % rows as u64, 0);
        }
    }
}

#[test]
fn powers_of_two_change_nothing() {
    let base: Vec<f64> = (1..200).map(|i| f64::from(i * i % 89 + 1) * 0.37).collect();
    let expected = tickets(&base);
    // -1020 still leaves every weight normal.
    for exponent in [-1010, -64, -1, 1, 30, 1015] {
        let factor = f64::from_bits(u64::try_from(1023 + exponent).unwrap() << 52);
        let scaled: Vec<f64> = base.iter().map(|weight| weight * factor).collect();
        assert_eq!(tickets(&scaled), expected, "{exponent}");
    }
}

#[test]
fn the_guide_gives_the_rows_of_the_plain_search() {
    let skewed: Vec<f64> = (0..700).map(|i| 2.0_f64.powi(i - 350)).collect();
    let mut one_heavy = vec![1e-20; 999];
    one_heavy[500] = 1.0;
    let mut heavy_ends = vec![1.0; 1000];
    (heavy_ends[0], heavy_ends[999]) = (1e6, 1e7);
    let even = vec![0.1; 1024];
    for weights in [
        &skewed,
        &one_heavy,
        &heavy_ends,
        &even,
        golden::COUNTED,
        golden::FAR_APART,
    ] {
        // A coarse guide leaves long searches, a fine one none; a shift stands for tables past 2^32 rows.
        for (bits, shift) in [
            (1, 0),
            (4, 0),
            (10, 0),
            (13, 0),
            (4, 3),
            (10, 1),
            (10, 9),
            (5, 20),
        ] {
            let table = TicketTable::with_guide(weights, bits, shift);
            let blocks = telling_blocks(&table);
            let expected: Vec<u64> = blocks.iter().map(|&block| plain(&table, block)).collect();
            assert_eq!(
                rows(&table, &blocks),
                expected,
                "{} rows, {bits}, {shift}",
                weights.len()
            );
        }
        let table = TicketTable::new(weights);
        let blocks = telling_blocks(&table);
        let expected: Vec<u64> = blocks.iter().map(|&block| plain(&table, block)).collect();
        assert_eq!(rows(&table, &blocks), expected);
    }
}

/// Weights that are equal need no table: the table gives the same rows, being nested floors.
#[test]
fn equal_tickets_draw_as_a_number_of_rows() {
    for n in [1_u64, 2, 3, 7, 64, 1000] {
        for weight in [1.0, 0.3, 5e-324, f64::MAX] {
            let table = TicketTable::new(&vec![weight; usize::try_from(n).unwrap()]);
            let blocks = telling_blocks(&table);
            let expected: Vec<u64> = blocks.iter().map(|&block| scale(block, n)).collect();
            assert_eq!(rows(&table, &blocks), expected, "{n} x {weight}");
        }
    }
}

#[test]
fn guide_of_a_common_table() {
    let table = TicketTable::new(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!((table.guide_bits, table.guide_shift), (3, 0));
    assert_eq!(table.guide.len(), 9);
    assert_eq!(short(7), 7);
}
