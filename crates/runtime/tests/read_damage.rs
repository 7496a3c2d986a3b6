//! Whatever the bytes on disk are: right data or a typed error that names the file. Never wrong bytes, a crash or a
//! hang.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

mod reading;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use dataset_rt_format::{Codec, Value};
use dataset_rt_runtime::{
    BlockSizing, Cache, CacheOptions, Cancel, Error, Pool, ReaderOptions, SampleRef, VecBuffers,
    verify,
};
use rustix::fs::{CWD, FileType, Mode};

use reading::{
    Made, Spec, assert_payloads, make, next, of_block, open, open_with, ordered, read_all,
};

const OPTIONS: CacheOptions = CacheOptions {
    use_mmap: true,
    follow_links: false,
};

/// Path and code of an error about a file.
fn of(error: &Error) -> (PathBuf, &'static str) {
    match error {
        Error::Damaged { path, source, .. } => (path.clone(), source.code()),
        other => panic!("{other:?}"),
    }
}

fn files(made: &Made) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["manifest.json", "index.bin", "metadata.arrow"]
        .map(|name| made.path.join(name))
        .to_vec();
    let shards = fs::read_dir(made.path.join("shards")).unwrap();
    files.extend(shards.map(|entry| entry.unwrap().path()));
    files
}

/// Reads everything that a cache has: what comes is right, what does not come is an error about `file`.
fn read_everything(made: &Made, options: &ReaderOptions, pool: &Pool, file: &Path) -> usize {
    let dataset = match open_with(pool, &[made], options.clone()) {
        Ok(dataset) => dataset,
        Err(error) => {
            assert_eq!(of(&error).0, file, "{error}");
            return 1;
        }
    };
    let mut errors = 0;
    let mut stream =
        dataset.blocks::<VecBuffers>(dataset.take_window().unwrap(), BlockSizing::Exact(1000));
    while let Some(block) = next(&mut stream) {
        for (_, error) in &block.errors {
            assert_eq!(of(error).0, file, "{error}");
        }
        for (sample, payload) in of_block(block) {
            match payload {
                Ok(payload) => assert_eq!(payload, made.spec.payload(sample.sample)),
                Err(_) => errors += 1,
            }
        }
    }
    let cache = &dataset.caches()[0];
    for sample in 0..cache.samples() {
        for (at, field) in made.spec.fields.iter().enumerate() {
            let mut text = String::new();
            let wanted = made.spec.value(field.field_type, sample, &mut text);
            match (cache.value(at, sample), wanted) {
                (Ok(Value::Utf8(found)), _) => assert_eq!(found, text),
                (Ok(Value::Float64(a)), Value::Float64(b)) => assert_eq!(a.to_bits(), b.to_bits()),
                (Ok(found), wanted) => assert_eq!(found, wanted),
                (Err(error), _) => {
                    assert_eq!(of(&error).0, file, "{error}");
                    errors += 1;
                }
            }
        }
    }
    if let Err(error) = dataset.export() {
        assert_eq!(of(&error).0, file, "{error}");
        errors += 1;
    }
    errors
}

#[test]
fn a_whole_cache_verifies() {
    for codec in [Codec::None, Codec::Lz4] {
        let made = make(&Spec {
            codec,
            ..Spec::new(300)
        });
        for use_mmap in [true, false] {
            let options = CacheOptions {
                use_mmap,
                ..OPTIONS
            };
            let manifest = verify(&made.path, options, &Cancel::new()).unwrap();
            assert_eq!(manifest.samples, 300);
            let options = ReaderOptions {
                use_mmap,
                validate_cache: true,
                ..ordered()
            };
            open(&[&made], options);
        }
        let cancelled = Cancel::new();
        cancelled.cancel();
        let stopped = verify(&made.path, OPTIONS, &cancelled);
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }
}

#[test]
fn every_changed_byte_is_met_by_right_data_or_an_error_with_its_file() {
    for codec in [Codec::None, Codec::Lz4] {
        let made = make(&Spec {
            codec,
            max_shard: 700,
            batch_rows: 3,
            ..Spec::new(7)
        });
        let pool = Pool::new(1).unwrap();
        let mut unnoticed = 0;
        for file in files(&made) {
            let good = fs::read(&file).unwrap();
            for (at, &byte) in good.iter().enumerate() {
                // In place: rewriting the file would wait for the disk.
                let change = |byte: u8| {
                    let open = File::options().write(true).open(&file).unwrap();
                    open.write_all_at(&[byte], at as u64).unwrap();
                };
                change(byte ^ 1 << (at % 8));
                let use_mmap = at % 2 == 0;
                let options = ReaderOptions {
                    use_mmap,
                    ..ordered()
                };
                let errors = read_everything(&made, &options, &pool, &file);
                // The whole check finds what reading had no need of.
                let cache_options = CacheOptions {
                    use_mmap,
                    ..OPTIONS
                };
                let checked = verify(&made.path, cache_options, &Cancel::new());
                let error = checked.unwrap_err();
                let in_file = of(&error).0 == file;
                assert!(in_file, "{} byte {at}: {error}", file.display());
                change(byte);
                if errors == 0 {
                    unnoticed += 1;
                    let name = file.file_name().unwrap().to_string_lossy().into_owned();
                    // Padding between index sections; headers, padding and footers of shards.
                    let allowed = name.starts_with("000") || name == "index.bin";
                    assert!(allowed, "{name} byte {at} went unnoticed");
                }
            }
            fs::write(&file, &good).unwrap();
        }
        assert!(unnoticed > 0);
        assert_eq!(read_everything(&made, &ordered(), &pool, Path::new("")), 0);
    }
}

#[test]
fn every_length_but_the_right_one_is_an_error() {
    let made = make(&Spec {
        max_shard: 700,
        ..Spec::new(5)
    });
    let pool = Pool::new(1).unwrap();
    for file in files(&made) {
        let good = fs::read(&file).unwrap();
        for len in [0, 1, good.len() / 2, good.len() - 1, good.len() + 1] {
            let mut bad = good.clone();
            bad.resize(len, 0);
            fs::write(&file, &bad).unwrap();
            let error = open_with(&pool, &[&made], ordered()).unwrap_err();
            assert_eq!(of(&error).0, file);
        }
        fs::remove_file(&file).unwrap();
        let error = open_with(&pool, &[&made], ordered()).unwrap_err();
        assert_eq!(of(&error), (file.clone(), "file_missing"));
        fs::write(&file, &good).unwrap();
    }
}

#[test]
fn what_is_no_regular_file_in_the_folder_is_refused_without_waiting() {
    let made = make(&Spec {
        max_shard: 700,
        ..Spec::new(5)
    });
    let pool = Pool::new(1).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for file in files(&made) {
        let moved = elsewhere.path().join("moved");
        fs::rename(&file, &moved).unwrap();

        rustix::fs::mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let error = open_with(&pool, &[&made], ordered()).unwrap_err();
        assert!(error.to_string().contains("FIFO"), "{error}");
        fs::remove_file(&file).unwrap();

        fs::create_dir(&file).unwrap();
        let error = open_with(&pool, &[&made], ordered()).unwrap_err();
        assert!(error.to_string().contains("folder"), "{error}");
        fs::remove_dir(&file).unwrap();

        symlink(&moved, &file).unwrap();
        let error = open_with(&pool, &[&made], ordered()).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        let options = ReaderOptions {
            follow_links: true,
            ..ordered()
        };
        let dataset = open_with(&pool, &[&made], options).unwrap();
        let mut stream = dataset.blocks(dataset.take_window().unwrap(), BlockSizing::Samples);
        assert_payloads(&read_all(&mut stream), &[&made]);
        fs::remove_file(&file).unwrap();
        fs::rename(&moved, &file).unwrap();
    }
    let link = elsewhere.path().join("alias");
    symlink(&made.path, &link).unwrap();
    Cache::open(&link, OPTIONS).unwrap();
}

#[test]
fn a_folder_without_a_cache_is_told_from_a_broken_one() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_path_buf(), dir.path().join("none")] {
        for result in [
            Cache::open(&path, OPTIONS).map(|_| ()),
            verify(&path, OPTIONS, &Cancel::new()).map(|_| ()),
        ] {
            match result {
                Err(Error::NotFound { path: found, .. }) => assert_eq!(found, path),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn truncate(path: &Path, len: u64) {
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(len)
        .unwrap();
}

#[test]
fn files_that_shrink_under_a_reader_are_errors() {
    for use_mmap in [true, false] {
        // One shard, one payload a page or so.
        let spec = Spec {
            stretch: 40,
            max_shard: 1 << 30,
            ..Spec::new(200)
        };
        let made = make(&spec);
        let options = ReaderOptions {
            use_mmap,
            prefetch_size: 1,
            ..ordered()
        };
        let dataset = open(&[&made], options);
        let mut stream = dataset.blocks(dataset.take_window().unwrap(), BlockSizing::Exact(10));
        let first = next(&mut stream).unwrap();
        assert_payloads(&of_block(first), &[&made]);
        let shard = made.path.join("shards/000000.bin");
        truncate(&shard, 300_000);
        let rest = read_all(&mut stream);
        assert_eq!(rest.len(), 190);
        let mut failed = 0;
        for (sample, payload) in rest {
            match payload {
                Ok(payload) => assert_eq!(payload, spec.payload(sample.sample)),
                Err(message) => {
                    assert!(message.contains("000000.bin"), "{message}");
                    failed += 1;
                }
            }
        }
        assert!(failed > 50, "{failed}");

        // Metadata and index, touched for the first time after they were cut off.
        let made = make(&Spec {
            batch_rows: 5000,
            ..Spec::new(30_000)
        });
        let dataset = open(
            &[&made],
            ReaderOptions {
                use_mmap,
                ..ordered()
            },
        );
        let cache = &dataset.caches()[0];
        assert!(cache.value(0, 3).is_ok());
        truncate(&made.path.join("metadata.arrow"), 8192);
        truncate(&made.path.join("index.bin"), 8192);
        let error = cache.value(3, 29_000).unwrap_err();
        assert_eq!(of(&error), (made.path.join("metadata.arrow"), "file_size"));
        assert_eq!(
            of(&dataset.export().unwrap_err()).0,
            made.path.join("metadata.arrow")
        );
        let samples = vec![SampleRef {
            cache: 0,
            sample: 29_000,
        }];
        let plan = dataset.read(samples, true).unwrap();
        let buffers = VecBuffers::allocate(plan.lengths());
        let block = plan.fill(buffers);
        assert!(block.columns.is_none());
        assert_eq!(
            of(&block.errors[0].1),
            (made.path.join("index.bin"), "file_size")
        );
    }
}

#[test]
fn zeros_of_a_lost_page_are_never_a_payload() {
    // Payloads that are zeros have the checksum of the zeros that the guard puts in place of a lost page.
    let made = make(&Spec {
        stretch: 100,
        max_shard: 1 << 30,
        ..Spec::new(1)
    });
    assert!(made.spec.payload(0).is_empty());
    let spec = Spec {
        salt: 300,
        stretch: 400,
        max_shard: 1 << 30,
        ..Spec::new(1)
    };
    let made = make(&spec);
    let payload = spec.payload(0);
    assert!(payload.len() > 100_000 && payload.iter().all(|&byte| byte == 0));
    for verify_payloads in [true, false] {
        let dataset = open(
            &[&made],
            ReaderOptions {
                verify_payloads,
                ..ordered()
            },
        );
        let sample = vec![SampleRef {
            cache: 0,
            sample: 0,
        }];
        let read = || {
            let plan = dataset.read(sample.clone(), false).unwrap();
            let buffers = VecBuffers::allocate(plan.lengths());
            plan.fill(buffers)
        };
        assert!(read().errors.is_empty());
        let shard = made.path.join("shards/000000.bin");
        let good = fs::read(&shard).unwrap();
        truncate(&shard, 50_000);
        assert_eq!(of(&read().errors[0].1), (shard.clone(), "file_size"));
        // A moment later the file is looked at again before it is touched.
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert_eq!(of(&read().errors[0].1), (shard.clone(), "file_size"));
        fs::write(&shard, &good).unwrap();
    }
}

#[test]
fn a_shard_cut_within_a_page_is_noticed_without_checksums_too() {
    // No page is gone, so nothing faults: the end of the last payload reads as zeros. Without checksums the size of
    // the file tells, which is looked at again before a map is used.
    let made = make(&Spec {
        fixed_len: Some(5000),
        max_shard: 1 << 30,
        ..Spec::new(2)
    });
    let payload = made.spec.payload(1);
    let shard = made.path.join("shards/000000.bin");
    let good = fs::read(&shard).unwrap();
    let end = good
        .windows(5000)
        .position(|bytes| bytes == payload)
        .unwrap()
        + 5000;
    for verify_payloads in [true, false] {
        let options = ReaderOptions {
            verify_payloads,
            ..ordered()
        };
        let dataset = open(&[&made], options);
        let read = || {
            let sample = SampleRef {
                cache: 0,
                sample: 1,
            };
            let plan = dataset.read(vec![sample], false).unwrap();
            let buffers = VecBuffers::allocate(plan.lengths());
            plan.fill(buffers)
        };
        assert!(read().errors.is_empty());
        truncate(&shard, end as u64 - 10);
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert_eq!(of(&read().errors[0].1), (shard.clone(), "file_size"));
        fs::write(&shard, &good).unwrap();
    }
}

#[test]
fn deleted_and_replaced_files_give_old_bytes_or_an_error() {
    for use_mmap in [true, false] {
        let spec = Spec::new(200);
        let made = make(&spec);
        let options = ReaderOptions {
            use_mmap,
            ..ordered()
        };
        let dataset = open(&[&made], options.clone());
        let mut stream = dataset.blocks(dataset.take_window().unwrap(), BlockSizing::Exact(20));
        assert_payloads(&of_block(next(&mut stream).unwrap()), &[&made]);

        // Another cache takes the place of this one.
        fs::remove_dir_all(&made.path).unwrap();
        let other = Spec {
            salt: 1,
            ..spec.clone()
        };
        other.write(&made.path);
        for (sample, payload) in read_all(&mut stream) {
            match payload {
                Ok(payload) => assert_eq!(payload, spec.payload(sample.sample)),
                Err(message) => assert!(message.contains("000"), "{message}"),
            }
        }
        // The next open sees the new one, and so does the whole of it.
        let dataset = open(&[&made], options);
        let mut stream = dataset.blocks(dataset.take_window().unwrap(), BlockSizing::Exact(20));
        for (sample, payload) in read_all(&mut stream) {
            assert_eq!(payload.unwrap(), other.payload(sample.sample));
        }
    }
}

#[test]
fn swapped_shards_are_told_apart() {
    // Equal sizes, so that ids alone tell.
    let made = make(&Spec {
        max_shard: 700,
        ..Spec::new(40)
    });
    let sizes: Vec<(u64, PathBuf)> = files(&made)[3..]
        .iter()
        .map(|path| (fs::metadata(path).unwrap().len(), path.clone()))
        .collect();
    let pair = sizes.iter().enumerate().find_map(|(i, (size, path))| {
        let other = sizes[i + 1..].iter().find(|(other, _)| other == size)?;
        Some((path.clone(), other.1.clone()))
    });
    let (first, second) = pair.unwrap();
    let (a, b) = (fs::read(&first).unwrap(), fs::read(&second).unwrap());
    fs::write(&first, b).unwrap();
    fs::write(&second, a).unwrap();
    let dataset = open(&[&made], ordered());
    let mut stream =
        dataset.blocks::<VecBuffers>(dataset.take_window().unwrap(), BlockSizing::Samples);
    let mut found = 0;
    while let Some(block) = next(&mut stream) {
        for (_, error) in &block.errors {
            assert_eq!(of(error).1, "shard_mismatch");
            found += 1;
        }
    }
    assert!(found > 1);
}
