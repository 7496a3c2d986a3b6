//! Prints what draws cost on one core. Not part of the suite:
//!
//!     cargo test -p dataset_rt_runtime speed -- --ignored --nocapture --test-threads 1

use std::sync::Arc;
use std::time::Instant;

use super::tickets::TicketTable;
use super::{Sampler, SamplerConfig};

const CALL: usize = 512;

fn uneven(rows: u32) -> Arc<[f64]> {
    (0..rows)
        .map(|i| f64::from(i.wrapping_mul(2_654_435_761) % 1000 + 1))
        .collect()
}

/// Nanoseconds a draw, in the best of many short rounds: other work on the machine spoils some of them.
fn per_draw(sampler: &Sampler) -> f64 {
    const DRAWS: usize = 64 * CALL;
    let mut out = [0; CALL];
    let mut start = 0;
    sampler.prepare(0);
    let mut round = || {
        let started = Instant::now();
        for _ in 0..DRAWS / CALL {
            sampler.fill(start, std::hint::black_box(&mut out));
            start += CALL as u64;
        }
        started.elapsed()
    };
    let best = (0..50).map(|_| round()).min().unwrap();
    best.as_secs_f64() * 1e9 / DRAWS as f64
}

fn sampler(replacement: bool, rows: u64, weights: Option<Arc<[f64]>>) -> Sampler {
    let config = SamplerConfig {
        shuffle: true,
        replacement,
        seed: 1,
        stream: 0,
    };
    Sampler::new(config, rows, weights).unwrap()
}

#[test]
#[ignore = "measures"]
fn speed_of_draws() {
    for rows in [20, 100, 1000, 1_000_000, 1_000_003, 10_000_000] {
        println!(
            "permutation of {rows:9}: {:6.1} ns",
            per_draw(&sampler(false, rows, None))
        );
    }
    println!(
        "equal weights:            {:6.1} ns",
        per_draw(&sampler(true, 1_000_000, None))
    );
    for rows in [1000, 1_000_000, 10_000_000] {
        let sampler = sampler(true, u64::from(rows), Some(uneven(rows)));
        println!("weighted of {rows:9}:    {:6.1} ns", per_draw(&sampler));
    }
}

#[test]
#[ignore = "measures"]
fn speed_of_orders() {
    for rows in [1_000_000, 10_000_000] {
        let sampler = sampler(false, u64::from(rows), Some(uneven(rows)));
        let started = Instant::now();
        sampler.prepare(0);
        println!("order of {rows:9}: {:?}", started.elapsed());
        println!("  look-up: {:.1} ns", per_draw(&sampler));
    }
}

#[test]
#[ignore = "measures, with 3 GB of memory"]
fn speed_of_tickets() {
    let weights = uneven(100_000_000);
    let started = Instant::now();
    let table = TicketTable::new(&weights);
    println!("tickets of {} rows: {:?}", weights.len(), started.elapsed());
    assert!(table.sum() > 0);
}
