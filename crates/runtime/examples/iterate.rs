//! Iterates over a cache in order on one worker thread, checks every payload and touches every metadata value, and
//! prints records a second of each epoch: what the readers of `spec/readers` are measured against.
//!
//! ```text
//! cargo run --release -p dataset_rt_runtime --example iterate -- CACHE [EPOCHS]
//! ```
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures and prints"
)]

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dataset_rt_format::Value;
use dataset_rt_runtime::{BlockSizing, Cancel, Dataset, Poll, Pool, ReaderOptions, VecBuffers};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let cache = arguments.next().ok_or("usage: iterate CACHE [EPOCHS]")?;
    let epochs: u32 = match arguments.next() {
        Some(text) => text.to_string_lossy().parse()?,
        None => 1,
    };
    let options = ReaderOptions {
        shuffle: false,
        ..ReaderOptions::new(0)
    };
    let paths = vec![PathBuf::from(cache)];
    let dataset = Dataset::open(Pool::new(1)?, paths, options, &Cancel::new())?;
    for epoch in 0..epochs {
        let begin = Instant::now();
        let (records, bytes) = iterate(&dataset)?;
        let seconds = begin.elapsed().as_secs_f64();
        let rate = records as f64 / seconds;
        println!(
            "epoch {epoch}: {records} records, {bytes} payload bytes, {seconds:.3} s, {rate:.0} records/s"
        );
    }
    Ok(())
}

fn iterate(dataset: &Dataset) -> Result<(u64, u64), Box<dyn Error>> {
    let mut stream = dataset.blocks(dataset.take_window()?, BlockSizing::Samples);
    let (mut records, mut bytes) = (0, 0);
    let fields = dataset.caches()[0].fields().len();
    loop {
        let mut allocate =
            |lengths: &[u32]| Ok::<_, dataset_rt_runtime::Error>(VecBuffers::allocate(lengths));
        match stream.poll(&mut allocate)? {
            Poll::Ready(block) => {
                if let Some((_, error)) = block.errors.into_iter().next() {
                    return Err(error.into());
                }
                for payload in &block.buffers.0 {
                    bytes += black_box(payload).len() as u64;
                }
                for sample in records..records + block.samples.len() as u64 {
                    for field in 0..fields {
                        let value = dataset.caches()[0].value(field, sample)?;
                        black_box(matches!(value, Value::Null));
                    }
                }
                records += block.samples.len() as u64;
            }
            Poll::Pending(waiter) => {
                waiter.wait(Duration::from_secs(1));
            }
            Poll::Done => return Ok((records, bytes)),
        }
    }
}
