//! Caches without a pool: runs of metadata, payloads of rows, and what is kept open.
#![allow(
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by them"
)]

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use dataset_rt_runtime::expr::{Unreadable, payload_heads, payloads};
use dataset_rt_runtime::{CacheOptions, Caches, Cancel, Error, SampleRef, WriteOptions};

#[path = "write_support/mod.rs"]
mod support;

use support::{lz4, payload, scratch, write, write_small};

const OPTIONS: CacheOptions = CacheOptions {
    use_mmap: true,
    follow_links: false,
};

fn sample(cache: u32, sample: u64) -> SampleRef {
    SampleRef { cache, sample }
}

#[test]
fn metadata_has_the_fields_asked_for() {
    let base = scratch();
    let first = write_small(base.path(), "a", 1).unwrap().path;
    let second = write(base.path(), lz4(), 1, "b", None, 2, 70_000, &[5_000]).unwrap();
    let paths = [first, second.path];
    let caches = Caches::open(&paths, OPTIONS, &Cancel::new()).unwrap();
    // Over the border of two stored batches.
    let batches = caches.metadata(sample(1, 65_000), 2_000, &[1]).unwrap();
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 2_000);
    let mut next = 65_000;
    for batch in &batches {
        assert_eq!(batch.num_columns(), 3);
        let caches = batch.column(0).as_primitive::<UInt64Type>();
        let samples = batch.column(1).as_primitive::<UInt64Type>();
        let numbers = batch.column(2).as_primitive::<Int64Type>();
        for at in 0..batch.num_rows() {
            assert_eq!((caches.value(at), samples.value(at)), (1, next));
            assert_eq!(numbers.value(at), -(next as i64));
            next += 1;
        }
    }
    assert!(caches.metadata(sample(0, 0), 100, &[]).is_ok());
    let past = caches.metadata(sample(0, 1), 100, &[]);
    assert!(matches!(past, Err(Error::UnknownSample { .. })));
    assert!(matches!(
        caches.metadata(sample(0, 0), 1, &[9]),
        Err(Error::Internal(_))
    ));
}

#[test]
fn payloads_come_in_the_order_of_the_rows() {
    let base = scratch();
    for (salt, options) in [(3, WriteOptions::default()), (4, lz4())] {
        let name = format!("s{salt}");
        let written = write(base.path(), options, 1, &name, None, salt, 900, &[100]).unwrap();
        let caches = Caches::open(&[written.path], OPTIONS, &Cancel::new()).unwrap();
        let wanted: Vec<u64> = (0..20_000).map(|i| i * 7_919 % 900).collect();
        let mut rows: Vec<_> = wanted.iter().map(|&i| Some((0, i128::from(i)))).collect();
        rows[11] = None;
        let mut at = 0;
        payloads(&caches, &rows, u64::MAX, Unreadable::Error, |found| {
            let expected = (at != 11).then(|| payload(salt, wanted[at]));
            assert_eq!(found, expected.as_deref());
            at += 1;
        })
        .unwrap();
        assert_eq!(at, rows.len());

        let bytes: usize = (0..10).map(|i| payload(salt, i).len()).sum();
        let ten: Vec<_> = (0..10).map(|i| Some((0, i))).collect();
        let (bytes, fail) = (bytes as u64, Unreadable::Error);
        assert!(payloads(&caches, &ten, bytes, fail, |_| ()).is_ok());
        let refused = payloads(&caches, &ten, bytes - 1, fail, |_| panic!("read"));
        assert!(matches!(refused, Err(Error::Argument { .. })));

        let unknown = [
            Some((0, 5)),
            Some((0, 900)),
            Some((1, 0)),
            Some((-1, 0)),
            None,
        ];
        let heads = payload_heads(&caches, unknown.into_iter(), 3, Unreadable::Null);
        let heads: Vec<_> = heads.map(Result::unwrap).collect();
        let start = payload(salt, 5).into_iter().take(3).collect();
        assert_eq!(heads, [Some(start), None, None, None, None]);
        let mut heads = payload_heads(&caches, unknown.into_iter().skip(1), 3, fail);
        assert!(matches!(
            heads.next(),
            Some(Err(Error::UnknownSample { .. }))
        ));
    }
}

#[test]
fn samples_whose_payloads_fit() {
    let base = scratch();
    let small = write_small(base.path(), "a", 1).unwrap().path;
    let compressed = write(base.path(), lz4(), 1, "b", None, 2, 9_000, &[5_000]).unwrap();
    let caches = Caches::open(&[small, compressed.path], OPTIONS, &Cancel::new()).unwrap();
    let lens: Vec<u64> = (0..9_000).map(|i| payload(2, i).len() as u64).collect();
    for (first, count) in [(0, 9_000), (4_990, 20), (8_999, 1)] {
        let samples: Vec<_> = (first..first + count).map(|i| sample(1, i)).collect();
        let lens = &lens[first as usize..(first + count) as usize];
        for fits in [1, count / 3, count - 1, count] {
            let fits = fits.max(1) as usize;
            let bytes: u64 = lens[..fits].iter().sum();
            // Empty payloads that follow fit too.
            let fits = fits + lens[fits..].iter().take_while(|&&len| len == 0).count();
            assert_eq!(caches.fitting(&samples, bytes).unwrap(), fits);
            let found = caches.fitting_from(samples[0], count, bytes).unwrap();
            assert_eq!(found, fits);
        }
        assert!(caches.fitting(&samples, 0).unwrap() >= 1);
        assert!(caches.fitting_from(samples[0], count, 0).unwrap() >= 1);
    }
    let both = [sample(0, 7), sample(1, 7), sample(0, 8)];
    let bytes = (payload(1, 7).len() + payload(2, 7).len()) as u64;
    assert_eq!(caches.fitting(&both, bytes).unwrap(), 2);
    assert_eq!(caches.fitting(&both, bytes - 1).unwrap(), 1);
    assert_eq!(caches.fitting(&both, u64::MAX).unwrap(), 3);
    assert_eq!(caches.fitting(&[], 5).unwrap(), 0);
    assert_eq!(caches.fitting_from(sample(1, 0), 0, 5).unwrap(), 0);
    for unknown in [sample(1, 9_000), sample(2, 0)] {
        let error = caches.fitting(&[unknown], 5);
        assert!(matches!(error, Err(Error::UnknownSample { .. })));
        let error = caches.fitting_from(unknown, 1, 5);
        assert!(matches!(error, Err(Error::UnknownSample { .. })));
    }
}

#[test]
fn kept_caches_are_the_ones_that_stand_there() {
    let base = scratch();
    let path = write_small(base.path(), "a", 1).unwrap().path;
    let paths = [path.clone()];
    let caches = Caches::kept(&paths).unwrap();
    let before = caches.facts(sample(0, 7)).unwrap();
    assert_eq!(before.len as usize, payload(1, 7).len());
    std::fs::remove_dir_all(&path).unwrap();
    assert!(matches!(Caches::kept(&paths), Err(Error::NotFound { .. })));
    write_small(base.path(), "a", 2).unwrap();
    let after = Caches::kept(&paths).unwrap().facts(sample(0, 7)).unwrap();
    assert_eq!(after.len as usize, payload(2, 7).len());
    assert_ne!(before, after);
}
