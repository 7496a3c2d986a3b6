//! The specification's unit vectors of the sampling algorithm, through the runtime's own interface.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataset_rt_runtime::{
    LoaderPart, RankPart, RankPolicy, RowsDigest, Sampler, SamplerConfig, SavedPosition,
    WeightsDigest, caches_digest,
};
use serde_json::Value as Json;

/// `spec/vectors`, or another copy of it that the environment names.
fn vectors() -> PathBuf {
    std::env::var_os("DATASET_RT_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors"),
        PathBuf::from,
    )
}

/// Runs a check on input and output of each case of a unit, and says how many there were.
fn each(unit: &str, check: impl Fn(&Json, &Json) -> bool) -> usize {
    let path = vectors().join(format!("v1/units/{unit}.json"));
    let read: Json = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases = read["cases"].as_array().unwrap();
    for case in cases {
        assert!(check(&case["in"], &case["out"]), "{unit}: {case}");
    }
    cases.len()
}

fn texts(list: &Json) -> Vec<&str> {
    let values = list["values"].as_array().unwrap();
    values.iter().map(|value| value.as_str().unwrap()).collect()
}

fn numbers(list: &Json) -> Vec<u64> {
    texts(list)
        .iter()
        .map(|text| text.parse().unwrap())
        .collect()
}

fn number(value: &Json) -> u64 {
    value["value"].as_str().unwrap().parse().unwrap()
}

fn floats(list: &Json) -> Arc<[f64]> {
    let bits = |text: &&str| f64::from_bits(u64::from_str_radix(text, 16).unwrap());
    texts(list).iter().map(bits).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A sampler of the case's rows or weights. A seed or stream word that it doesn't name is 0.
fn sampler(given: &Json, shuffle: bool, replacement: bool) -> Sampler {
    let optional = |name: &str| given.get(name).map_or(0, number);
    let config = SamplerConfig {
        shuffle,
        replacement,
        seed: optional("seed"),
        stream: optional("stream").try_into().unwrap(),
    };
    let weights = given.get("weights").map(floats);
    let rows = weights
        .as_ref()
        .map_or_else(|| number(&given["rows"]), |weights| weights.len() as u64);
    Sampler::new(config, rows, weights).unwrap()
}

fn rows(sampler: &Sampler, positions: &[u64]) -> Vec<u64> {
    let row = |position: &u64| {
        let mut row = [0];
        sampler.fill(*position, &mut row);
        row[0]
    };
    positions.iter().map(row).collect()
}

/// The positions of whole passes or of single places.
fn pass(given: &Json, places: &[u64], rows: u64) -> Option<Vec<u64>> {
    let start = number(&given["pass"]).checked_mul(rows)?;
    let position = |place: &u64| start.checked_add(*place).filter(|at| *at < 1 << 63);
    places.iter().map(position).collect()
}

#[test]
fn rows_of_positions() {
    for (unit, shuffle, replacement) in [
        ("ordered", false, false),
        ("draws", true, true),
        ("draws-equal", true, true),
        ("permutation-positions", true, false),
        ("weighted-order-positions", true, false),
    ] {
        let count = each(unit, |given, expected| {
            let sampler = sampler(given, shuffle, replacement);
            rows(&sampler, &numbers(&given["positions"])) == numbers(expected)
        });
        assert!(count > 2, "{unit}");
    }
}

#[test]
fn permutations_forward_and_inverse() {
    for unit in ["permutation-small", "permutation-large"] {
        each(unit, |given, expected| {
            let sampler = sampler(given, true, false);
            let order = numbers(&expected["order"]);
            let places: Vec<u64> = (0..sampler.rows()).collect();
            // A pass that reaches past the last position has no rows here.
            let Some(positions) = pass(given, &places, sampler.rows()) else {
                return true;
            };
            let place = |row: &u64| sampler.place(number(&given["pass"]), *row).unwrap();
            rows(&sampler, &positions) == order
                && places.iter().map(place).collect::<Vec<u64>>() == numbers(&expected["inverse"])
        });
    }
    each("permutation-points", |given, expected| {
        let sampler = sampler(given, true, false);
        let places = numbers(&given["places"]);
        pass(given, &places, sampler.rows())
            .is_none_or(|positions| rows(&sampler, &positions) == numbers(&expected["rows"]))
    });
}

#[test]
fn weighted_orders() {
    each("weighted-order", |given, expected| {
        let sampler = sampler(given, true, false);
        // Equal weights make another mode.
        let weighted = sampler.mode().name() == "weighted_order";
        let places: Vec<u64> = (0..sampler.rows()).collect();
        let positions = pass(given, &places, sampler.rows()).filter(|_| weighted);
        positions.is_none_or(|positions| rows(&sampler, &positions) == numbers(&expected["order"]))
    });
}

#[test]
fn modes() {
    each("modes", |given, expected| {
        let is = |name: &str| given[name]["value"] == "true";
        let sampler = sampler(given, is("shuffle"), is("replacement"));
        expected["value"] == sampler.mode().name()
    });
}

#[test]
fn ranks_and_workers() {
    each("ranks", |given, expected| {
        let of = |name: &str| number(&given[name]);
        let policy = RankPolicy::from_name(given["policy"]["value"].as_str().unwrap()).unwrap();
        let (window, done) = ((of("start"), of("length")), of("delivered"));
        let Ok(part) = RankPart::new(window, done, of("rank"), of("ranks"), policy) else {
            return expected.get("positions").is_none();
        };
        let steps: Vec<_> = (0..part.steps()).map(|t| part.step(t).unwrap()).collect();
        let positions: Vec<u64> = steps.iter().map(|step| step.position).collect();
        let padding: Vec<String> = steps.iter().map(|step| step.padding.to_string()).collect();
        positions == numbers(&expected["positions"]) && padding == texts(&expected["padding"])
    });
    each("workers", |given, expected| {
        let of = |name: &str| number(&given[name]);
        let part = LoaderPart::new(of("worker"), of("workers"), of("batch")).unwrap();
        let steps: Vec<u64> = (0..of("steps")).filter(|step| part.takes(*step)).collect();
        steps == numbers(expected)
    });
}

#[test]
fn digests() {
    each("table-digest", |given, expected| {
        let (caches, samples) = (numbers(&given["cache"]), numbers(&given["sample"]));
        let rows = caches.into_iter().zip(samples);
        let digest = if let Some(weights) = given.get("weights") {
            let mut digest = WeightsDigest::new();
            for ((cache, sample), weight) in rows.zip(floats(weights).iter()) {
                digest.push(cache, sample, 1, *weight);
            }
            digest.finish()
        } else {
            let mut digest = RowsDigest::new();
            for (cache, sample) in rows {
                digest.push(cache, sample, 1);
            }
            digest.finish()
        };
        expected["digest"]["value"] == hex(&digest)
    });
    each("caches-digest", |given, expected| {
        let bytes = |text: &&str| -> [u8; 32] {
            std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
        };
        let identities: Vec<[u8; 32]> = texts(&given["identities"]).iter().map(bytes).collect();
        expected["value"] == hex(&caches_digest(&identities))
    });
}

#[test]
fn saved_positions() {
    for unit in ["position", "position-ranges"] {
        each(unit, |given, expected| {
            let read = SavedPosition::parse(&given["position"].to_string());
            expected["accepted"]["value"].as_str()
                == Some(if read.is_ok() { "true" } else { "false" })
        });
    }
}
