//! Lengths that files claim never decide how much memory is asked for: opening and checking a cache takes a small
//! multiple of what its files have.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::undocumented_unsafe_blocks,
    reason = "code of tests"
)]

mod reading;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use dataset_rt_format::{Codec, Manifest, crc32c};
use dataset_rt_runtime::{Cache, CacheOptions, Cancel, examine, verify};

use reading::{Made, Spec, make};

/// The system's allocator, which keeps the most that was asked for at once and in all.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(size: usize) {
    let now = IN_USE.fetch_add(size, Ordering::SeqCst) + size;
    PEAK.fetch_max(now, Ordering::SeqCst);
}

// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::SeqCst);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most memory in use at once during `work`, above what was in use before.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = IN_USE.load(Ordering::SeqCst);
    PEAK.store(before, Ordering::SeqCst);
    work();
    PEAK.load(Ordering::SeqCst) - before
}

/// Opens, checks and examines the cache, with and without maps.
fn everything(made: &Made) -> usize {
    peak_of(|| {
        for use_mmap in [true, false] {
            let options = CacheOptions {
                use_mmap,
                follow_links: false,
            };
            if let Ok(cache) = Cache::open(&made.path, options) {
                for sample in 0..cache.samples().min(10) {
                    let _any = cache.value(3, sample);
                }
            }
            let _any = verify(&made.path, options, &Cancel::new());
            let _any = examine(&made.path, options, &Cancel::new());
        }
    })
}

/// Gives the manifest the checksums of the other files, so that what lies behind them is looked at.
fn seal(made: &Made) {
    let path = made.path.join("manifest.json");
    let Ok(mut manifest) = Manifest::parse(&fs::read(&path).unwrap()) else {
        return;
    };
    let index = fs::read(made.path.join("index.bin")).unwrap();
    manifest.index.crc32c = crc32c(&index);
    let metadata = fs::read(made.path.join("metadata.arrow")).unwrap();
    manifest.metadata.crc32c = crc32c(&metadata);
    fs::write(path, manifest.to_bytes()).unwrap();
}

// One test: the counter is the whole process's.
#[test]
fn claimed_lengths_do_not_decide_memory() {
    let long = std::env::var_os("DATASET_RT_LONG").is_some();
    let step = if long { 4 } else { 44 };
    for codec in [Codec::None, Codec::Lz4] {
        let made = make(&Spec {
            codec,
            max_shard: 2000,
            ..Spec::new(40)
        });
        let names = [
            "manifest.json",
            "index.bin",
            "metadata.arrow",
            "shards/000000.bin",
        ];
        let sizes = names.map(|name| fs::metadata(made.path.join(name)).unwrap().len() as usize);
        let whole: usize = sizes.iter().sum::<usize>() * 4;
        let usual = everything(&made);
        assert!(usual > 0);
        // Of LZ4 a record may become 255 times as long.
        let most = 16 * whole + (256 << 10) + if codec == Codec::Lz4 { 255 * 2000 } else { 0 };
        assert!(usual < most, "{usual} bytes of {most}");

        for name in names {
            let path = made.path.join(name);
            let manifest = fs::read(made.path.join("manifest.json")).unwrap();
            let good = fs::read(&path).unwrap();
            for at in (0..good.len() - 8).step_by(step) {
                for claim in [u64::MAX, (1 << 40) - 64, 0x7FFF_FFF8_7FFF_FFF8] {
                    let mut bad = good.clone();
                    bad[at..at + 8].copy_from_slice(&u64::to_le_bytes(claim));
                    if name == "index.bin" {
                        // The head's own checksum too.
                        let count = u32::from_le_bytes(bad[40..44].try_into().unwrap()) as usize;
                        if let Some(table) = bad.get(128..128 + count.min(1000) * 32) {
                            let crc = crc32c(&[&bad[..124], table].concat());
                            bad[124..128].copy_from_slice(&crc.to_le_bytes());
                        }
                    }
                    fs::write(&path, &bad).unwrap();
                    seal(&made);
                    let found = everything(&made);
                    assert!(found < most, "{name} at {at}: {found} bytes of {most}");
                    fs::write(made.path.join("manifest.json"), &manifest).unwrap();
                }
            }
            fs::write(&path, &good).unwrap();
        }

        // Numbers in a manifest that is otherwise sound.
        let path = made.path.join("manifest.json");
        let good = Manifest::parse(&fs::read(&path).unwrap()).unwrap();
        let huge = (1_u64 << 53) - 1;
        let mut claims = vec![good.clone(); 5];
        claims[0].samples = huge;
        claims[0].shards[0].samples = huge - good.samples + good.shards[0].samples;
        claims[1].index.size = huge;
        claims[2].metadata.size = huge;
        claims[3].shards[0].size = (1 << 40) - 64;
        claims[4].payload_bytes = huge;
        for claim in claims {
            fs::write(&path, claim.to_bytes()).unwrap();
            let found = everything(&made);
            assert!(found < most, "{claim:?}: {found} bytes of {most}");
        }
    }
}
