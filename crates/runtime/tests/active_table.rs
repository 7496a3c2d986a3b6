//! The active table: what updates take and refuse, and what an export gives back.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

mod reading;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Float16Array, Float64Array, Int8Array, Int64Array, RecordBatch, StringArray,
    UInt64Array,
};
use dataset_rt_format::{Field, FieldType, Value};
use dataset_rt_runtime::{BlockSizing, Error, Fault, ReaderOptions, SampleRef, UpdateReport};

use reading::{Made, Spec, assert_payloads, columns, ids, make, open, ordered, table, window};

#[test]
fn updates_filter_duplicate_reorder_and_weight() {
    let (a, b) = (make(&Spec::new(40)), make(&Spec::new(20)));
    let dataset = open(&[&a, &b], ordered());
    let rows = [(1, 19, 1.0), (0, 3, 1.0), (0, 3, 1.0), (0, 0, 1.0)];
    let report = dataset
        .update(&[table(&rows[..2]), table(&rows[2..])], 0)
        .unwrap();
    assert_eq!(
        report,
        UpdateReport {
            rows: 4,
            kept: 3,
            duplicated: 1,
            dropped: 57
        }
    );
    let read = window(&dataset, BlockSizing::Samples);
    let order: Vec<_> = read
        .iter()
        .map(|(s, _)| (u64::from(s.cache), s.sample))
        .collect();
    assert_eq!(order, rows.map(|row| (row.0, row.1)));
    assert_payloads(&read, &[&a, &b]);
    let report = dataset
        .update(&[table(&[(0, 3, 2.0), (0, 4, 1.0)])], 0)
        .unwrap();
    assert_eq!(
        report,
        UpdateReport {
            rows: 2,
            kept: 2,
            duplicated: 0,
            dropped: 2
        }
    );
    assert!(dataset.table().is_edited());

    // A row of 2^-1000 of the weight is as good as never drawn.
    let options = ReaderOptions::new(1);
    let dataset = open(&[&a, &b], options);
    dataset
        .update(&[table(&[(0, 1, 2f64.powi(-1000)), (1, 7, 1.0)])], 0)
        .unwrap();
    dataset.set_epoch_len(1000).unwrap();
    let read = window(&dataset, BlockSizing::Samples);
    assert!(read.iter().all(|(sample, _)| *sample
        == SampleRef {
            cache: 1,
            sample: 7
        }));
}

#[test]
fn handing_the_table_back_is_a_fresh_start() {
    let made = make(&Spec::new(100));
    let dataset = open(&[&made], ReaderOptions::new(11));
    let first = ids(&window(&dataset, BlockSizing::Samples));
    assert_ne!(ids(&window(&dataset, BlockSizing::Samples)), first);
    let exported = dataset.export().unwrap();
    let report = dataset.update(&exported, 0).unwrap();
    assert_eq!(
        report,
        UpdateReport {
            rows: 100,
            kept: 100,
            duplicated: 0,
            dropped: 0
        }
    );
    assert!(!dataset.table().is_edited());
    assert_eq!(ids(&window(&dataset, BlockSizing::Samples)), first);
}

#[test]
fn integers_and_floats_of_all_widths_are_accepted() {
    let made = make(&Spec::new(10));
    let dataset = open(&[&made], ordered());
    let ids: ArrayRef = Arc::new(Int8Array::from(vec![0, 0]));
    let samples: ArrayRef = Arc::new(Int64Array::from(vec![7, 3]));
    let half = Float16Array::from(
        vec![0.5, 2.0]
            .into_iter()
            .map(half_from)
            .collect::<Vec<_>>(),
    );
    let weights: [ArrayRef; 3] = [
        Arc::new(half),
        Arc::new(Int8Array::from(vec![1, 4])),
        Arc::new(UInt64Array::from(vec![u64::MAX, 1])),
    ];
    for weight in weights {
        dataset
            .update(&[columns(ids.clone(), samples.clone(), weight)], 0)
            .unwrap();
        assert_eq!(dataset.active_sample(0).unwrap().sample, 7);
    }
    assert_eq!(
        dataset.table().weight(0),
        Some(18_446_744_073_709_551_616.0)
    );
}

fn half_from(
    value: f64,
) -> <arrow_array::types::Float16Type as arrow_array::ArrowPrimitiveType>::Native {
    <arrow_array::types::Float16Type as arrow_array::ArrowPrimitiveType>::Native::from_f64(value)
}

#[test]
fn a_wrong_table_is_refused_whole_and_named() {
    let made = make(&Spec::new(10));
    let dataset = open(&[&made, &made], ordered());
    let before = dataset.cursor();
    let good = || Arc::new(UInt64Array::from(vec![0, 1])) as ArrayRef;
    let weights = |values: Vec<f64>| Arc::new(Float64Array::from(values)) as ArrayRef;
    let ones = || weights(vec![1.0, 1.0]);
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let text = || Arc::new(StringArray::from(vec!["0", "1"])) as ArrayRef;
    let nulls = || Arc::new(UInt64Array::from(vec![Some(1), None])) as ArrayRef;
    let cases: Vec<(RecordBatch, Fault, &str, Option<u64>, &str)> = vec![
        (
            columns(ints(vec![0, 2]), good(), ones()),
            Fault::Value,
            "cache_id",
            Some(3),
            "2",
        ),
        (
            columns(ints(vec![-1, 1]), good(), ones()),
            Fault::Value,
            "cache_id",
            Some(2),
            "-1",
        ),
        (
            columns(good(), ints(vec![9, 10]), ones()),
            Fault::Value,
            "sample_id",
            Some(3),
            "10",
        ),
        (
            columns(nulls(), good(), ones()),
            Fault::Value,
            "cache_id",
            Some(3),
            "1 nulls",
        ),
        (
            columns(good(), nulls(), ones()),
            Fault::Value,
            "sample_id",
            Some(3),
            "1 nulls",
        ),
        (
            columns(good(), good(), nulls()),
            Fault::Value,
            "weight",
            Some(3),
            "1 nulls",
        ),
        (
            columns(good(), good(), weights(vec![1.0, 0.0])),
            Fault::Value,
            "weight",
            Some(3),
            "0",
        ),
        (
            columns(good(), good(), weights(vec![-1.0, 1.0])),
            Fault::Value,
            "weight",
            Some(2),
            "-1",
        ),
        (
            columns(good(), good(), weights(vec![1.0, f64::NAN])),
            Fault::Value,
            "weight",
            Some(3),
            "NaN",
        ),
        (
            columns(good(), good(), weights(vec![f64::INFINITY, 1.0])),
            Fault::Value,
            "weight",
            Some(2),
            "inf",
        ),
        (
            columns(text(), good(), ones()),
            Fault::Type,
            "cache_id",
            None,
            "Utf8",
        ),
        (
            columns(good(), ones(), ones()),
            Fault::Type,
            "sample_id",
            None,
            "Float64",
        ),
        (
            columns(good(), good(), text()),
            Fault::Type,
            "weight",
            None,
            "Utf8",
        ),
    ];
    for (batch, fault, column, row, found) in cases {
        // The second batch, so that rows are counted over batches.
        let error = dataset
            .update(&[table(&[(0, 0, 1.0), (0, 1, 1.0)]), batch], 3)
            .unwrap_err();
        match &error {
            Error::Table {
                fault: f,
                column: c,
                row: r,
                message,
            } => {
                assert_eq!((*f, c.as_str(), *r), (fault, column, row), "{message}");
                assert!(
                    message.contains(found) && message.contains(column),
                    "{message}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let without = table(&[(0, 0, 1.0)]).project(&[0, 2]).unwrap();
    assert!(
        dataset
            .update(&[without], 0)
            .unwrap_err()
            .to_string()
            .contains("\"sample_id\"")
    );
    assert!(
        dataset
            .update(&[], 0)
            .unwrap_err()
            .to_string()
            .contains("no rows")
    );
    assert!(
        dataset
            .update(&[table(&[])], 0)
            .unwrap_err()
            .to_string()
            .contains("no rows")
    );
    assert_eq!(dataset.cursor(), before);
    assert!(!dataset.table().is_edited());
}

/// The metadata of a table's batches must be that of its samples.
fn assert_metadata(batches: &[RecordBatch], samples: &[SampleRef], caches: &[&Made]) {
    let schema = batches[0].schema();
    let mut row = 0;
    for batch in batches {
        for i in 0..batch.num_rows() {
            let sample = samples[row];
            let spec = &caches[sample.cache as usize].spec;
            for (name, column) in schema.fields().iter().zip(batch.columns()) {
                let field = spec.fields.iter().find(|field| field.name == *name.name());
                let Some(field) = field else {
                    let own = ["cache_id", "sample_id", "weight"].contains(&name.name().as_str());
                    assert!(own || column.is_null(i));
                    continue;
                };
                assert!(column.is_valid(i));
                let mut text = String::new();
                match spec.value(field.field_type, sample.sample, &mut text) {
                    Value::Bool(value) => assert_eq!(column.as_boolean().value(i), value),
                    Value::Int64(v) => assert_eq!(column.as_primitive::<Int64Type>().value(i), v),
                    Value::Float64(v) => {
                        let found = column.as_primitive::<Float64Type>().value(i);
                        assert_eq!(found.to_bits(), v.to_bits());
                    }
                    _ => assert_eq!(column.as_string_view().value(i), text),
                }
            }
            row += 1;
        }
    }
    assert_eq!(row, samples.len());
}

#[test]
fn the_exported_table_is_whole_and_bit_exact() {
    // Many batches, borders inside of exported ones; the second cache lacks one field and brings another.
    let a = make(&Spec::new(300));
    let mut fields = vec![
        Field::new("extra", FieldType::Utf8),
        Field::new("good", FieldType::Bool),
    ];
    fields.push(Field::new("label", FieldType::Int64));
    let b = make(&Spec {
        fields,
        salt: 5,
        batch_rows: 1,
        ..Spec::new(30)
    });
    for use_mmap in [true, false] {
        let dataset = open(
            &[&a, &b],
            ReaderOptions {
                use_mmap,
                ..ordered()
            },
        );
        let names: Vec<_> = dataset
            .schema()
            .iter()
            .map(|f| (f.name.as_str(), f.nullable))
            .collect();
        assert_eq!(
            names,
            [
                ("label", false),
                ("score", true),
                ("good", false),
                ("text", true),
                ("extra", true)
            ]
        );
        assert_eq!(
            dataset.cache_fields(1),
            [Some(2), None, Some(1), None, Some(0)]
        );
        let all: Vec<SampleRef> = (0..330)
            .map(|row| dataset.active_sample(row).unwrap())
            .collect();
        let exported = dataset.export().unwrap();
        assert_metadata(&exported, &all, &[&a, &b]);
        let ids = exported[0].column(1).as_primitive::<UInt64Type>();
        // A batch ends where a cache does.
        assert_eq!((ids.len(), ids.value(299)), (300, 299));
        assert_eq!(
            exported[0]
                .column(6 + 1)
                .as_primitive::<Float64Type>()
                .value(0),
            1.0
        );

        // Reversed, with duplicates and weights.
        let rows: Vec<_> = all
            .iter()
            .rev()
            .flat_map(|s| [(u64::from(s.cache), s.sample, 0.5 + s.sample as f64); 2])
            .collect();
        dataset.update(&[table(&rows)], 0).unwrap();
        let rows: Vec<SampleRef> = all.iter().rev().flat_map(|s| [*s; 2]).collect();
        let exported = dataset.export().unwrap();
        assert_metadata(&exported, &rows, &[&a, &b]);
        let weight = exported[0].column_by_name("weight").unwrap();
        assert_eq!(weight.as_primitive::<Float64Type>().value(0), 29.5);
        assert_eq!(dataset.export_samples(&rows[5..90]).unwrap().num_rows(), 85);
        assert_metadata(
            &[dataset.export_samples(&rows[5..90]).unwrap()],
            &rows[5..90],
            &[&a, &b],
        );
    }
}
