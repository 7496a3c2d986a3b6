//! What the writer wrote is what the reader reads: over borders of batches, shards and checked blocks, in any order.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

use std::time::Duration;

use arrow_array::RecordBatch;
use dataset_rt_format::{Codec, Columns, Field, FieldType, Schema, Value};
use dataset_rt_runtime::{
    Begin, BlockSizing, CacheOptions, Cancel, Dataset, Error, InputBlock, Poll, Pool,
    ReaderOptions, VecBuffers, WriteOptions, WriteSession, verify,
};

/// More than a batch of rows, and several checked blocks of index and metadata.
const SAMPLES: u64 = 70_000;

fn payload(i: u64) -> Vec<u8> {
    let noise = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    (0..i % 97)
        .map(|j| {
            if i.is_multiple_of(2) {
                7
            } else {
                (j * noise) as u8
            }
        })
        .collect()
}

fn text(i: u64) -> String {
    "größe ".repeat((i % 4) as usize)
}

fn block(schema: &Schema, rows: std::ops::Range<u64>) -> InputBlock {
    let mut columns = Columns::new(schema);
    for i in rows.clone() {
        let text = text(i);
        let row = [
            Value::Int64(i as i64),
            Value::Utf8(&text),
            Value::Bool(i % 3 == 1),
        ];
        columns.push_row(&row).unwrap();
    }
    InputBlock {
        payloads: Box::new(rows.map(payload).collect::<Vec<_>>()),
        columns,
    }
}

#[test]
fn written_caches_read_back() {
    let base = tempfile::tempdir().unwrap();
    let pool = Pool::new(2).unwrap();
    let schema = Schema::new(vec![
        Field::new("number", FieldType::Int64),
        Field::new("text", FieldType::Utf8),
        Field::new("flag", FieldType::Bool),
    ])
    .unwrap();
    for codec in [Codec::None, Codec::Lz4] {
        let options = WriteOptions {
            codec,
            max_shard_bytes: 300_000,
            ..WriteOptions::default()
        };
        let base = base.path().to_path_buf();
        let session = WriteSession::new(pool.clone(), base, options, Cancel::new()).unwrap();
        let Begin::Write(writer) = session.begin(codec.name(), None).unwrap() else {
            panic!("somebody else writes here");
        };
        writer.start(schema.clone()).unwrap();
        for start in (0..SAMPLES).step_by(1000) {
            while !writer.wait_for_room(Duration::from_millis(50)) {}
            writer.submit(block(&schema, start..start + 1000)).unwrap();
        }
        writer.finish();
        let written = writer.wait(Duration::from_secs(120)).unwrap().unwrap();

        for use_mmap in [true, false] {
            let cache_options = CacheOptions {
                use_mmap,
                follow_links: false,
            };
            verify(&written.path, cache_options, &Cancel::new()).unwrap();
            let options = ReaderOptions {
                use_mmap,
                replacement: false,
                ..ReaderOptions::new(1)
            };
            let paths = vec![written.path.clone()];
            let dataset = Dataset::open(pool.clone(), paths, options, &Cancel::new()).unwrap();
            check(&dataset);
        }
    }
}

fn check(dataset: &Dataset) {
    let window = dataset.take_window().unwrap();
    let mut stream = dataset.blocks(window, BlockSizing::Samples);
    stream.want_columns(true);
    let mut seen = vec![false; SAMPLES as usize];
    loop {
        let mut allocate = |lengths: &[u32]| Ok::<_, Error>(VecBuffers::allocate(lengths));
        match stream.poll(&mut allocate).unwrap() {
            Poll::Pending(waiter) => waiter.wait(Duration::from_secs(1)),
            Poll::Done => break,
            Poll::Ready(block) => {
                assert!(block.errors.is_empty(), "{:?}", block.errors);
                let columns = block.columns.unwrap();
                for (row, sample) in block.samples.iter().enumerate() {
                    let i = sample.sample;
                    assert!(!std::mem::replace(&mut seen[i as usize], true));
                    assert_eq!(block.buffers.0[row], payload(i));
                    assert_eq!(columns.value(row, 0), Some(Value::Int64(i as i64)));
                    assert_eq!(columns.value(row, 1), Some(Value::Utf8(&text(i))));
                    assert_eq!(columns.value(row, 2), Some(Value::Bool(i % 3 == 1)));
                }
            }
        }
    }
    assert!(seen.into_iter().all(|seen| seen));

    let exported = dataset.export().unwrap();
    let rows: usize = exported.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows as u64, SAMPLES);
    let mut i = 0;
    for batch in exported {
        use arrow_array::cast::AsArray;
        use arrow_array::types::{Int64Type, UInt64Type};
        let ids = batch.column(1).as_primitive::<UInt64Type>();
        let numbers = batch.column(2).as_primitive::<Int64Type>();
        let (texts, flags) = (
            batch.column(3).as_string_view(),
            batch.column(4).as_boolean(),
        );
        for row in 0..batch.num_rows() {
            assert_eq!((ids.value(row), numbers.value(row)), (i, i as i64));
            assert_eq!(
                (texts.value(row), flags.value(row)),
                (text(i).as_str(), i % 3 == 1)
            );
            i += 1;
        }
    }
}
