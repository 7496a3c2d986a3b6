//! What an open cache takes from the system does not grow with the number of its shards.
#![allow(clippy::unwrap_used, reason = "code of tests")]

mod reading;

use std::fs;

use dataset_rt_runtime::{BlockSizing, ReaderOptions};

use reading::{Made, Spec, assert_payloads, make, open, ordered, read_all};

fn shards(made: &Made) -> usize {
    fs::read_dir(made.path.join("shards")).unwrap().count()
}

#[test]
fn many_shards_need_few_descriptors() {
    // More shards than descriptors are kept, in random order, twice.
    let made = make(&Spec {
        max_shard: 0,
        ..Spec::new(300)
    });
    assert_eq!(shards(&made), 300);
    let open_files = || fs::read_dir("/proc/self/fd").unwrap().count();
    for use_mmap in [true, false] {
        let options = ReaderOptions {
            use_mmap,
            replacement: false,
            ..ReaderOptions::new(1)
        };
        let dataset = open(&[&made], options);
        for _ in 0..2 {
            let mut stream = dataset.blocks(dataset.take_window().unwrap(), BlockSizing::Samples);
            assert_payloads(&read_all(&mut stream), &[&made]);
        }
        // Other tests of this process have files open too.
        assert!(open_files() < 64 + 100, "{}", open_files());
    }
}

#[test]
fn many_shards_need_few_maps() {
    let made = make(&Spec {
        max_shard: 0,
        batch_rows: 1000,
        fixed_len: Some(8),
        ..Spec::new(4500)
    });
    assert_eq!(shards(&made), 4500);
    let dataset = open(&[&made], ordered());
    let mut stream = dataset.blocks(dataset.take_window().unwrap(), BlockSizing::Samples);
    assert_payloads(&read_all(&mut stream), &[&made]);
    let folder = made.path.join("shards").to_str().unwrap().to_owned();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps.lines().filter(|line| line.contains(&folder)).count();
    assert!((4000..=4096).contains(&mapped), "{mapped}");
}
