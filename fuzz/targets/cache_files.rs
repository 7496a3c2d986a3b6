//! Whole caches on the disk, through the reader: what is read equals what was written or is an error about a file; with
//! checksums that fit, what the whole check lets pass is readable.
#![no_main]

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use dataset_rt_format::Value;
use dataset_rt_fuzz::{Bound, Cache, Files, damaged, load_all, seal};
use dataset_rt_runtime::{
    CacheOptions, Cancel, Dataset, Error, Pool, ReaderOptions, SampleRef, VecBuffers, verify,
};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static BOUND: Bound = Bound;

/// What a dataset gives: a payload, or why not, and the row, or why not.
type Content = Vec<(Result<Vec<u8>, String>, Result<Vec<String>, String>)>;

struct Desk {
    pool: Pool,
    caches: Vec<(Cache, PathBuf, Content)>,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::new(Desk::new());
}

fuzz_target!(|data: &[u8]| {
    let Some((&[cache, how], operations)) = data.split_first_chunk::<2>() else {
        return;
    };
    DESK.with_borrow_mut(|desk| desk.attempt(usize::from(cache), how, operations));
});

impl Desk {
    fn new() -> Self {
        // tools/fuzz names a folder in memory, and removes it.
        let base =
            std::env::var_os("DATASET_RT_FUZZ_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let base = base.join(format!("dataset_rt-fuzz-{}", std::process::id()));
        let mut desk = Self {
            pool: Pool::new(1).expect("a pool"),
            caches: vec![],
        };
        for cache in load_all() {
            let folder = base.join(cache.name);
            fs::create_dir_all(folder.join("shards")).expect("a folder for the files");
            put(&folder, &cache.files, None);
            let content = desk.read(&folder, true).expect("a whole cache");
            assert!(
                content
                    .iter()
                    .all(|(payload, row)| payload.is_ok() && row.is_ok())
            );
            desk.caches.push((cache, folder, content));
        }
        desk
    }

    fn attempt(&mut self, at: usize, how: u8, operations: &[u8]) {
        let (cache, folder, right) = &self.caches[at % self.caches.len()];
        let use_mmap = how & 2 == 0;
        let mut files = damaged(cache.files.clone(), operations);
        let sealed = how & 1 == 1;
        if sealed {
            seal::cache(&mut files);
        }
        put(folder, &files, Some(&cache.files));
        let options = CacheOptions {
            use_mmap,
            follow_links: false,
        };
        let verdict = verify(folder, options, &Cancel::new());
        let content = self.read(folder, use_mmap);
        put(folder, &cache.files, Some(&files));
        match (&verdict, &content) {
            (Ok(_), Ok(content)) => {
                assert!(
                    content
                        .iter()
                        .all(|(payload, row)| payload.is_ok() && row.is_ok())
                );
            }
            (Ok(_), Err(error)) => panic!("checked, but not readable: {error}"),
            _ => {}
        }
        if sealed {
            return;
        }
        assert_eq!(verdict.is_ok(), files == cache.files, "{verdict:?}");
        for ((payload, row), (right_payload, right_row)) in content.into_iter().flatten().zip(right)
        {
            assert!(payload.is_err() || payload == *right_payload);
            assert!(row.is_err() || row == *right_row);
        }
    }

    /// Reads all that a cache has. An error must be about one of its files.
    fn read(&self, folder: &PathBuf, use_mmap: bool) -> Result<Content, String> {
        let typed = |error: Error| match error {
            Error::Damaged { ref path, .. } if path.starts_with(folder) => error.to_string(),
            Error::NotFound { .. } => error.to_string(),
            other => panic!("{other:?}"),
        };
        let options = ReaderOptions {
            use_mmap,
            shuffle: false,
            ..ReaderOptions::new(0)
        };
        let dataset = Dataset::open(
            self.pool.clone(),
            vec![folder.clone()],
            options,
            &Cancel::new(),
        )
        .map_err(typed)?;
        let cache = &dataset.caches()[0];
        let samples = cache.samples().min(300);
        let all: Vec<SampleRef> = (0..samples)
            .map(|sample| SampleRef { cache: 0, sample })
            .collect();
        let plan = dataset.read(all, true).map_err(typed)?;
        let buffers = VecBuffers::allocate(plan.lengths());
        let block = plan.fill(buffers);
        let mut payloads: Vec<Result<Vec<u8>, String>> =
            block.buffers.0.into_iter().map(Ok).collect();
        for (place, error) in block.errors {
            payloads[place as usize] = Err(typed(error));
        }
        let row = |sample| {
            (0..cache.fields().len())
                .map(|field| match cache.value(field, sample) {
                    Ok(Value::Float64(value)) => Ok(format!("{:x}", value.to_bits())),
                    Ok(value) => Ok(format!("{value:?}")),
                    Err(error) => Err(typed(error)),
                })
                .collect()
        };
        let content = payloads
            .into_iter()
            .zip(0..samples)
            .map(|(payload, sample)| (payload, row(sample)))
            .collect();
        if samples == cache.samples() {
            let _any = dataset.export().map_err(typed);
        }
        Ok(content)
    }
}

/// Brings files to the disk, those alone that differ from what stands there.
fn put(folder: &PathBuf, files: &Files, standing: Option<&Files>) {
    for (at, (path, bytes)) in files.iter().enumerate() {
        if standing.is_some_and(|standing| standing[at].1 == *bytes) {
            continue;
        }
        let path = folder.join(path);
        match bytes {
            Some(bytes) => fs::write(&path, bytes).expect("a file in memory"),
            None => fs::remove_file(&path).expect("a file that stands"),
        }
    }
}
