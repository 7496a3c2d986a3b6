//! Measures, run by hand: `cargo test --profile bench-quick -p dataset_rt_runtime --test read_speed -- --ignored --nocapture`.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "code of tests"
)]

mod reading;

use std::hint::black_box;
use std::time::{Duration, Instant};

use dataset_rt_format::{Field, FieldType, Value};
use dataset_rt_runtime::{BlockSizing, Dataset, Error, PayloadBuffers, Poll, ReaderOptions};

use reading::{Made, Spec, make, open, ordered};

/// One allocation a block.
struct Arena {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

// SAFETY: `allocate` makes the buffer as long as all lengths together, and nothing touches it before the drop.
#[allow(unsafe_code)]
unsafe impl PayloadBuffers for Arena {
    fn slot(&self, i: usize) -> *mut u8 {
        // SAFETY: the start of a payload lies in the buffer, or at its end for an empty one.
        unsafe { self.bytes.as_ptr().cast_mut().add(self.starts[i]) }
    }
}

fn allocate(lengths: &[u32]) -> Result<Arena, Error> {
    let mut end = 0;
    let mut starts = Vec::with_capacity(lengths.len());
    for &len in lengths {
        starts.push(end);
        end += len as usize;
    }
    Ok(Arena {
        bytes: Vec::with_capacity(end),
        starts,
    })
}

fn pass(dataset: &Dataset, columns: bool) -> f64 {
    let mut stream = dataset.blocks(dataset.take_window().unwrap(), BlockSizing::Samples);
    stream.want_columns(columns);
    let start = Instant::now();
    let mut samples = 0;
    loop {
        match stream.poll(&mut allocate).unwrap() {
            Poll::Ready(block) => {
                assert!(block.errors.is_empty());
                samples += block.samples.len();
                if columns {
                    let columns = block.columns.as_ref().unwrap();
                    for row in 0..block.samples.len() {
                        for field in 0..4 {
                            if let Some(Value::Int64(value)) = columns.value(row, field) {
                                black_box(value);
                            }
                        }
                    }
                }
                black_box(&block.buffers);
            }
            Poll::Pending(waiter) => waiter.wait(Duration::from_secs(1)),
            Poll::Done => break,
        }
    }
    samples as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn data(samples: u64, len: u64) -> Made {
    let fields = ["a", "b", "c", "d"].into_iter().zip([
        FieldType::Int64,
        FieldType::Float64,
        FieldType::Bool,
        FieldType::Utf8,
    ]);
    let fields = fields
        .map(|(name, field_type)| Field::new(name, field_type))
        .collect();
    make(&Spec {
        max_shard: 64 << 20,
        batch_rows: 65_536,
        fields,
        fixed_len: Some(len),
        ..Spec::new(samples)
    })
}

#[test]
#[ignore = "measures"]
fn speed_of_streams() {
    for (name, samples, len) in [
        ("W1", 200_000, 1024),
        ("W3", 1_000_000, 128),
        ("W2", 5_000, 100 * 1024),
    ] {
        let made = data(samples, len);
        let shuffled = || ReaderOptions {
            replacement: false,
            ..ReaderOptions::new(1)
        };
        for (order, options) in [("ordered", ordered()), ("shuffled", shuffled())] {
            for columns in [false, true] {
                let title = format!("{name} {order} columns={columns}");
                // For a look with a profiler at one of them.
                if std::env::var("SPEED").is_ok_and(|only| !title.contains(&only)) {
                    continue;
                }
                let start = Instant::now();
                let dataset = open(&[&made], options.clone());
                let opened = start.elapsed();
                let mut rates: Vec<f64> = (0..6).map(|_| pass(&dataset, columns)).collect();
                rates.sort_by(f64::total_cmp);
                println!(
                    "{title}: {:.2} M/s (best {:.2}), open {opened:?}",
                    rates[3], rates[5]
                );
            }
        }
        let dataset = open(&[&made], ordered());
        for _ in 0..3 {
            let start = Instant::now();
            let exported = dataset.export().unwrap();
            let time = start.elapsed();
            let start = Instant::now();
            dataset.update(&exported, 0).unwrap();
            println!("{name} export {time:?}, update {:?}", start.elapsed());
        }
    }
}
