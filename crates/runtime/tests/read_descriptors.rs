//! Threads that open shards at the same time share the last file descriptors of the process. In a process of its own,
//! whose limit it lowers.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

mod reading;

use dataset_rt_runtime::{BlockSizing, ReaderOptions};
use reading::{Spec, assert_payloads, make, open, window};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn openers_that_hold_folders_give_way_to_each_other() {
    let cache = make(&Spec {
        max_shard: 1,
        ..Spec::new(300)
    });
    // Three for the opening of one file, and a few more for those that are kept: four threads at once can't all have
    // theirs.
    let used = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
    let limit = Rlimit {
        current: Some(used + 7),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let options = ReaderOptions {
        use_mmap: false,
        ..ReaderOptions::new(4)
    };
    let dataset = open(&[&cache], options);
    for _ in 0..100 {
        assert_payloads(&window(&dataset, BlockSizing::Exact(3)), &[&cache]);
    }
}
