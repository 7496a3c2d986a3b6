//! Tables over more samples than memory could hold: rows are numbers, and cost nothing that is not there.
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};

use crate::cancel::Cancel;

use super::{ActiveTable, Numbering, Rows, SampleRef, UpdateReport, Weights};

fn batch(rows: &[(u64, u64, f64)]) -> RecordBatch {
    let column = |f: fn(&(u64, u64, f64)) -> u64| {
        Arc::new(UInt64Array::from(rows.iter().map(f).collect::<Vec<_>>())) as ArrayRef
    };
    let weights = Float64Array::from(rows.iter().map(|row| row.2).collect::<Vec<_>>());
    RecordBatch::try_from_iter([
        ("weight", Arc::new(weights) as ArrayRef),
        ("sample_id", column(|row| row.1)),
        ("cache_id", column(|row| row.0)),
    ])
    .unwrap()
}

#[test]
fn numbers_and_samples_are_each_others_inverse() {
    let numbering = Numbering::new([3, 1 << 40, 2]).unwrap();
    let end = 3 + (1 << 40) + 2;
    assert_eq!((numbering.total(), numbering.caches()), (end, 3));
    for number in [0, 2, 3, 4, 1 << 40, (1 << 40) + 2, (1 << 40) + 3, end - 1] {
        let SampleRef { cache, sample } = numbering.sample(number);
        assert_eq!(numbering.number(cache.into(), sample), Some(number));
    }
    assert_eq!(
        numbering.sample(3),
        SampleRef {
            cache: 1,
            sample: 0
        }
    );
    assert_eq!(numbering.number(0, 3), None);
    assert_eq!(numbering.number(3, 0), None);
    assert!(Numbering::new([1 << 61, 1 << 61, 1]).is_err());
}

#[test]
fn wide_rows_and_reports_over_billions_of_samples() {
    let numbering = Arc::new(Numbering::new([1 << 33, 5]).unwrap());
    let all = ActiveTable::all(numbering.clone());
    let rows = [(1, 4, 1.0), (0, (1 << 33) - 1, 1.0), (1, 4, 1.0)];
    let table = ActiveTable::parse(numbering.clone(), &[batch(&rows)], &Cancel::new()).unwrap();
    assert!(matches!(table.rows, Rows::Wide(_)));
    let mut samples = Vec::new();
    table.samples_of(&[2, 1, 0], &mut samples);
    let wanted = rows.map(|row| SampleRef {
        cache: u32::try_from(row.0).unwrap(),
        sample: row.1,
    });
    assert!(samples.iter().rev().eq(&wanted));
    let total = (1 << 33) + 5;
    let report = UpdateReport {
        rows: 3,
        kept: 2,
        duplicated: 1,
        dropped: total - 2,
    };
    assert_eq!(table.report(&all), report);
    let next = ActiveTable::parse(numbering, &[batch(&[(1, 4, 1.0)])], &Cancel::new()).unwrap();
    let report = UpdateReport {
        rows: 1,
        kept: 1,
        duplicated: 0,
        dropped: 1,
    };
    assert_eq!(next.report(&table), report);
}

#[test]
fn nothing_is_stored_for_rows_in_order_and_equal_weights() {
    let numbering = Arc::new(Numbering::new([2, 2]).unwrap());
    let head = [(0, 0, 1.0), (0, 1, 1.0)];
    let tail = [(1, 0, 1.0), (1, 1, 1.0)];
    let parse = |batches: &[RecordBatch]| {
        ActiveTable::parse(numbering.clone(), batches, &Cancel::new()).unwrap()
    };
    let table = parse(&[batch(&head), batch(&tail)]);
    assert!(!table.is_edited() && matches!(table.rows, Rows::All));
    // The order breaks in a later batch, or the table ends early.
    let table = parse(&[batch(&head), batch(&tail[1..]), batch(&tail[..1])]);
    let order: Vec<_> = (0..4)
        .map(|row| table.sample(row).unwrap().sample)
        .collect();
    assert_eq!(order, [0, 1, 1, 0]);
    assert_eq!(parse(&[batch(&head)]).len(), 2);
    assert!(parse(&[batch(&head)]).is_edited());
    // Equal weights other than 1 are an edit, and are one number.
    let twos = [(0, 0, 2.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 2.0)];
    let table = parse(&[batch(&twos)]);
    assert!(table.is_edited() && matches!(table.weights, Weights::Equal(2.0)));
    assert!(table.weights().is_none());
    assert_eq!((table.weight(3), table.weight(4)), (Some(2.0), None));
    // Weights that differ from the second batch on.
    let table = parse(&[batch(&head), batch(&twos[2..])]);
    let weights: Vec<_> = (0..4).map(|row| table.weight(row).unwrap()).collect();
    assert_eq!(weights, [1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn an_interrupt_ends_the_check_of_a_table() {
    let numbering = Arc::new(Numbering::new([2]).unwrap());
    let cancel = Cancel::new();
    cancel.cancel();
    let parsed = ActiveTable::parse(numbering, &[batch(&[(0, 0, 1.0)])], &cancel);
    assert!(matches!(parsed, Err(crate::error::Error::Interrupted)));
}
