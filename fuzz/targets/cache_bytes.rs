//! Whole caches in memory: every changed, missing or additional byte is noticed by the whole check; with checksums
//! that fit, the check still ends in a verdict.
#![no_main]

use std::sync::LazyLock;

use dataset_rt_format::{MetadataLayout, verify};
use dataset_rt_fuzz::{Bound, Cache, Files, InMemory, damaged, load_all, seal};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static BOUND: Bound = Bound;

static CACHES: LazyLock<Vec<Cache>> = LazyLock::new(load_all);

fuzz_target!(|data: &[u8]| {
    let Some((&[cache, how], operations)) = data.split_first_chunk::<2>() else {
        return;
    };
    let cache = &CACHES[usize::from(cache) % CACHES.len()];
    let mut files = damaged(cache.files.clone(), operations);
    if how & 1 == 0 {
        let verdict = verify(&InMemory(&files));
        assert_eq!(
            verdict.is_ok(),
            files == cache.files,
            "{}: {verdict:?}",
            cache.name
        );
    } else {
        seal::cache(&mut files);
        if let Ok(manifest) = verify(&InMemory(&files)) {
            sound(&files, &manifest);
        }
    }
});

/// What the check lets pass can be read.
fn sound(files: &Files, manifest: &dataset_rt_format::Manifest) {
    let find = |path: &str| {
        files
            .iter()
            .find(|(name, _)| name == path)
            .and_then(|(_, b)| b.as_deref())
    };
    let metadata = find("metadata.arrow").expect("a file that was checked");
    let layout =
        MetadataLayout::parse_bytes(metadata, &manifest.schema, manifest.samples).expect("checked");
    layout.check_values(metadata).expect("checked");
}
