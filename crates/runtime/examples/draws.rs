//! What draws cost on one core, as lines of JSON: `cargo run --release --example draws [weights ...]`.
//!
//! Every number given builds a sampler over so many weights and times it; 10^8 need 3 GB.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use dataset_rt_runtime::{Sampler, SamplerConfig};

const CALL: usize = 512;
const CALLS: usize = 64;
const ROUNDS: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    for rows in [1_000_000, 10_000_000] {
        let drawn = per_draw(&Sampler::new(config(false), rows, None)?);
        tell("permutation", rows, "ns", drawn);
    }
    for rows in [1_000_000, 10_000_000] {
        let sampler = Sampler::new(config(true), rows, Some(uneven(rows)))?;
        tell("weighted", rows, "ns", per_draw(&sampler));
    }
    for argument in std::env::args().skip(1) {
        let rows = argument.parse()?;
        let weights = uneven(rows);
        let started = Instant::now();
        let sampler = Sampler::new(config(true), rows, Some(weights))?;
        sampler.prepare(0);
        tell("weights built", rows, "s", started.elapsed().as_secs_f64());
        tell("weighted", rows, "ns", per_draw(&sampler));
    }
    Ok(())
}

fn config(replacement: bool) -> SamplerConfig {
    SamplerConfig {
        shuffle: true,
        replacement,
        seed: 1,
        stream: 0,
    }
}

#[allow(clippy::cast_precision_loss)] // below 1001
fn uneven(rows: u64) -> Arc<[f64]> {
    (0..rows)
        .map(|row| (row.wrapping_mul(2_654_435_761) % 1000 + 1) as f64)
        .collect()
}

/// Nanoseconds a draw in the best of many short rounds: other work on the machine spoils some of them.
#[allow(clippy::cast_precision_loss)] // a few thousand
fn per_draw(sampler: &Sampler) -> f64 {
    let mut out = [0; CALL];
    let mut start = 0;
    sampler.prepare(0);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS {
            sampler.fill(start, black_box(&mut out));
            start += CALL as u64;
        }
        best = best.min(started.elapsed().as_secs_f64());
    }
    best * 1e9 / (CALL * CALLS) as f64
}

fn tell(work: &str, rows: u64, unit: &str, value: f64) {
    println!(r#"{{"work": "{work}", "rows": {rows}, "unit": "{unit}", "value": {value}}}"#);
}
