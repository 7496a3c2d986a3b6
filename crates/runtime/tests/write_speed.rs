//! How fast samples are stored; no rule, only numbers to compare by.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use dataset_rt_format::{Codec, Columns, Value};
use dataset_rt_runtime::{InputBlock, PayloadList, WriteOptions};

#[path = "write_support/mod.rs"]
mod support;

use support::*;

/// The same payload again and again, without a copy.
struct Same {
    payload: Arc<Vec<u8>>,
    count: usize,
}

impl PayloadList for Same {
    fn len(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> &[u8] {
        if index < self.count {
            &self.payload
        } else {
            &[]
        }
    }
}

#[test]
#[ignore = "measures, with 2 GB of disk"]
fn speed_of_writes() {
    for (codec, len, samples) in [
        (Codec::None, 1_000, 1_000_000_u64),
        (Codec::None, 100_000, 15_000),
        (Codec::Lz4, 1_000, 500_000),
    ] {
        let base = scratch();
        let options = WriteOptions {
            codec,
            profile: true,
            ..WriteOptions::default()
        };
        let session = session(base.path(), options, 2);
        let writer = begin(&session, "s", None);
        writer.start(schema()).unwrap();
        let payload = Arc::new((0..len).map(|i| (i * 7 % 251) as u8).collect::<Vec<u8>>());
        let per_block = ((1 << 20) / len).clamp(1, 512) as u64;
        let mut columns = Columns::new(&schema());
        for i in 0..per_block {
            let (flag, number, share, text) = row(i);
            let values = [
                Value::Bool(flag),
                Value::Int64(number),
                Value::Float64(share),
                Value::Utf8(&text),
            ];
            columns.push_row(&values).unwrap();
        }
        let started = Instant::now();
        for _ in 0..samples / per_block {
            while !writer.wait_for_room(Duration::from_secs(1)) {}
            let payload = payload.clone();
            let count = per_block as usize;
            let payloads = Box::new(Same { payload, count });
            let columns = columns.clone();
            writer.submit(InputBlock { payloads, columns }).unwrap();
        }
        writer.finish();
        let written = outcome(&writer).unwrap();
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{} of {len} bytes: {:.0} samples/s, {:.0} MB/s",
            codec.name(),
            written.samples as f64 / seconds,
            written.payload_bytes as f64 / seconds / 1e6
        );
        println!("{}", session.profile_json().unwrap());
    }
}
