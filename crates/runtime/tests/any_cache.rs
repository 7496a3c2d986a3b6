//! Caches of any schema, payloads, codec and shard size: what is written is read, and whatever happens to the files then
//! is met by the same data or a typed error.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

mod write_support;

use std::fs;
use std::path::{Path, PathBuf};

use dataset_rt_format::{Codec, Columns, Field, FieldType, Schema, Value};
use dataset_rt_runtime::{
    CacheOptions, Cancel, Dataset, Error, InputBlock, Pool, ReaderOptions, SampleRef, VecBuffers,
    WriteOptions, examine, repair, verify,
};
use proptest::prelude::*;

use write_support::{begin, outcome, scratch, session};

/// Cases of each test; the environment's PROPTEST_CASES stands above it.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|text| text.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Bool(bool),
    Int64(i64),
    /// By its bits.
    Float64(u64),
    Utf8(String),
}

impl Cell {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int64(value) => Value::Int64(*value),
            Self::Float64(bits) => Value::Float64(f64::from_bits(*bits)),
            Self::Utf8(text) => Value::Utf8(text),
        }
    }

    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => panic!("a writer makes no nulls"),
            Value::Bool(value) => Self::Bool(value),
            Value::Int64(value) => Self::Int64(value),
            Value::Float64(value) => Self::Float64(value.to_bits()),
            Value::Utf8(text) => Self::Utf8(text.to_owned()),
        }
    }
}

#[derive(Clone, Debug)]
struct Contents {
    fields: Vec<Field>,
    samples: Vec<(Vec<u8>, Vec<Cell>)>,
    codec: Codec,
    max_shard_bytes: u64,
    cuts: Vec<usize>,
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => proptest::collection::vec(any::<u8>(), 0..40),
        2 => (any::<u8>(), 0..3000_usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => (proptest::collection::vec(any::<u8>(), 1..20), 0..90_usize)
            .prop_map(|(part, times)| part.repeat(times)),
        1 => Just(Vec::new()),
    ]
}

fn cell(field_type: FieldType) -> BoxedStrategy<Cell> {
    match field_type {
        FieldType::Bool => any::<bool>().prop_map(Cell::Bool).boxed(),
        FieldType::Int64 => any::<i64>().prop_map(Cell::Int64).boxed(),
        FieldType::Float64 => any::<u64>().prop_map(Cell::Float64).boxed(),
        _ => any::<String>().prop_map(Cell::Utf8).boxed(),
    }
}

fn contents() -> impl Strategy<Value = Contents> {
    let types = proptest::collection::vec(0..4_usize, 0..5);
    let codec = prop_oneof![Just(Codec::None), Just(Codec::Lz4)];
    let shape = (
        types,
        codec,
        1..6000_u64,
        proptest::collection::vec(1..30_usize, 1..4),
    );
    shape.prop_flat_map(|(types, codec, max_shard_bytes, cuts)| {
        let all = [
            FieldType::Bool,
            FieldType::Int64,
            FieldType::Float64,
            FieldType::Utf8,
        ];
        let types: Vec<FieldType> = types.into_iter().map(|at| all[at]).collect();
        let fields: Vec<Field> = types
            .iter()
            .enumerate()
            .map(|(at, field_type)| Field::new(format!("f{at} ä"), *field_type))
            .collect();
        let row: Vec<BoxedStrategy<Cell>> = types.into_iter().map(cell).collect();
        proptest::collection::vec((payload(), row), 1..60).prop_map(move |samples| Contents {
            fields: fields.clone(),
            samples,
            codec,
            max_shard_bytes,
            cuts: cuts.clone(),
        })
    })
}

impl Contents {
    fn write(&self, base: &Path) -> PathBuf {
        let options = WriteOptions {
            codec: self.codec,
            max_shard_bytes: self.max_shard_bytes,
            ..WriteOptions::default()
        };
        let schema = Schema::new(self.fields.clone()).unwrap();
        let session = session(base, options, 2);
        let writer = begin(&session, "any", None);
        writer.start(schema.clone()).unwrap();
        let mut rest = &self.samples[..];
        for cut in self.cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (part, after) = rest.split_at((*cut).min(rest.len()));
            rest = after;
            let mut columns = Columns::new(&schema);
            for (_, row) in part {
                let row: Vec<Value<'_>> = row.iter().map(Cell::value).collect();
                columns.push_row(&row).unwrap();
            }
            let payloads: Vec<Vec<u8>> = part.iter().map(|(payload, _)| payload.clone()).collect();
            let payloads = Box::new(payloads);
            writer.submit(InputBlock { payloads, columns }).unwrap();
        }
        writer.finish();
        outcome(&writer).unwrap().path
    }

    /// Reads the cache; every sample is right, or an error about a file of it. Returns how many are right.
    fn read(&self, path: &Path, use_mmap: bool) -> Result<u64, Error> {
        let typed = |error: &Error| match error {
            Error::Damaged { path: file, .. } => assert!(file.starts_with(path), "{error}"),
            other => panic!("{other:?}"),
        };
        let options = ReaderOptions {
            use_mmap,
            shuffle: false,
            ..ReaderOptions::new(0)
        };
        let pool = Pool::new(1).unwrap();
        let paths = vec![path.to_path_buf()];
        let dataset = Dataset::open(pool, paths, options, &Cancel::new()).inspect_err(typed)?;
        let cache = &dataset.caches()[0];
        assert_eq!(cache.samples(), self.samples.len() as u64);
        let all = (0..cache.samples()).map(|sample| SampleRef { cache: 0, sample });
        let plan = dataset.read(all.collect(), true).unwrap();
        let buffers = VecBuffers::allocate(plan.lengths());
        let block = plan.fill(buffers);
        let mut right = vec![true; self.samples.len()];
        for (place, error) in &block.errors {
            typed(error);
            right[*place as usize] = false;
        }
        for (at, (payload, row)) in self.samples.iter().enumerate() {
            if right[at] {
                assert_eq!(&block.buffers.0[at], payload);
            }
            for (field, cell) in row.iter().enumerate() {
                match cache.value(field, at as u64) {
                    Ok(value) => assert_eq!(Cell::of(value), *cell),
                    Err(error) => {
                        typed(&error);
                        right[at] = false;
                    }
                }
            }
        }
        Ok(right.iter().filter(|right| **right).count() as u64)
    }
}

const OPTIONS: CacheOptions = CacheOptions {
    use_mmap: true,
    follow_links: false,
};

fn all_files(path: &Path) -> Vec<PathBuf> {
    let tree = write_support::tree(path).into_iter();
    tree.filter(|(_, bytes)| bytes.is_some())
        .map(|(name, _)| path.join(name))
        .collect()
}

/// What happens to a file.
#[derive(Clone, Debug)]
enum Damage {
    Bytes(usize, Vec<u8>),
    Cut(usize),
    Longer(usize),
    Gone,
    Swapped(usize),
}

fn damage() -> impl Strategy<Value = (usize, Damage)> {
    let what = prop_oneof![
        4 => (any::<usize>(), proptest::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(at, bytes)| Damage::Bytes(at, bytes)),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => (1..100_usize).prop_map(Damage::Longer),
        1 => Just(Damage::Gone),
        1 => any::<usize>().prop_map(Damage::Swapped),
    ];
    (any::<usize>(), what)
}

fn apply(files: &[PathBuf], at: usize, damage: &Damage) {
    let file = &files[at % files.len()];
    let Ok(mut bytes) = fs::read(file) else {
        return;
    };
    match damage {
        Damage::Bytes(at, new) => {
            let at = at % bytes.len().max(1);
            let end = (at + new.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&new[..end - at]);
        }
        Damage::Cut(at) => bytes.truncate(at % bytes.len().max(1)),
        Damage::Longer(count) => bytes.extend(vec![0; *count]),
        Damage::Gone => return fs::remove_file(file).unwrap(),
        Damage::Swapped(other) => {
            let other = &files[other % files.len()];
            let Ok(theirs) = fs::read(other) else {
                return;
            };
            fs::write(other, &bytes).unwrap();
            bytes = theirs;
        }
    }
    fs::write(file, bytes).unwrap();
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn what_is_written_is_read(contents in contents()) {
        let base = scratch();
        let path = contents.write(base.path());
        let count = contents.samples.len() as u64;
        for use_mmap in [true, false] {
            prop_assert_eq!(contents.read(&path, use_mmap).unwrap(), count);
        }
        let manifest = verify(&path, OPTIONS, &Cancel::new()).unwrap();
        prop_assert_eq!(manifest.samples, count);
        // Index and manifest follow from the rest.
        let good = write_support::tree(&path);
        fs::remove_file(path.join("index.bin")).unwrap();
        let output = base.path().join("again");
        let report = repair(&path, &output, OPTIONS, &Cancel::new()).unwrap();
        prop_assert!(report.proven);
        prop_assert_eq!(write_support::tree(&output), good);
        fs::remove_file(path.join("manifest.json")).unwrap();
        let output = base.path().join("unproven");
        let report = repair(&path, &output, OPTIONS, &Cancel::new()).unwrap();
        prop_assert!(!report.proven);
        prop_assert_eq!(contents.read(&output, true).unwrap(), count);
    }

    #[test]
    fn damage_is_met_by_right_data_or_an_error(
        contents in contents(),
        damages in proptest::collection::vec(damage(), 1..4),
    ) {
        let base = scratch();
        let path = contents.write(base.path());
        let good = write_support::tree(&path);
        let files = all_files(&path);
        for (at, damage) in &damages {
            apply(&files, *at, damage);
        }
        let changed = write_support::tree(&path) != good;
        let checked = verify(&path, OPTIONS, &Cancel::new());
        prop_assert_eq!(checked.is_err(), changed, "{:?}", checked);
        let mut readable = 0;
        for use_mmap in [true, false] {
            readable = contents.read(&path, use_mmap).unwrap_or(0);
        }
        let report = examine(&path, OPTIONS, &Cancel::new());
        match report {
            Ok(report) => {
                prop_assert_eq!(report.problems.is_empty(), !changed);
                prop_assert_eq!(report.readable, readable);
                let output = base.path().join("again");
                let repaired = repair(&path, &output, OPTIONS, &Cancel::new()).unwrap();
                prop_assert_eq!(repaired.samples.is_some(), report.repairable);
                if repaired.samples.is_some() && repaired.proven {
                    prop_assert_eq!(contents.read(&output, true).unwrap(), contents.samples.len() as u64);
                }
            }
            Err(error) => prop_assert!(matches!(error, Error::NotFound { .. }), "{:?}", error),
        }
    }
}
