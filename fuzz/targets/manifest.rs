//! `manifest.json`: any bytes are refused or understood, and what is understood is written the same way again.
#![no_main]

use dataset_rt_format::Manifest;
use dataset_rt_fuzz::{Bound, seal};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static BOUND: Bound = Bound;

fuzz_target!(|data: &[u8]| {
    look(data);
    let mut sealed = data.to_vec();
    seal::manifest(&mut sealed);
    look(&sealed);
});

fn look(bytes: &[u8]) {
    let Ok(manifest) = Manifest::parse(bytes) else {
        return;
    };
    assert_eq!(manifest.records_limits().len(), manifest.shards.len());
    let again = manifest.to_bytes();
    assert_eq!(Manifest::parse(&again).as_ref(), Ok(&manifest));
    assert_eq!(manifest.to_bytes(), again);
}
