//! What a dataset delivers: right payloads and metadata, in an order that depends on nothing but its definition.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "code of tests"
)]

mod reading;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dataset_rt_format::{Codec, Field, FieldType, Value};
use dataset_rt_runtime::{
    BlockSizing, Cursor, Error, MAX_BLOCK_SAMPLES, Poll, Pool, ReaderOptions, SampleRef, Sampler,
    SamplerConfig, VecBuffers,
};

use reading::{
    Spec, assert_payloads, ids, make, next, of_block, open, open_with, ordered, read_all, table,
    window,
};

#[test]
fn payloads_are_those_written() {
    for codec in [Codec::None, Codec::Lz4] {
        let made = make(&Spec {
            codec,
            ..Spec::new(1000)
        });
        for use_mmap in [true, false] {
            for verify_payloads in [true, false] {
                let options = ReaderOptions {
                    use_mmap,
                    verify_payloads,
                    ..ordered()
                };
                let read = window(&open(&[&made], options), BlockSizing::Samples);
                assert!(ids(&read).into_iter().eq(0..1000));
                assert_payloads(&read, &[&made]);
            }
        }
    }
}

#[test]
fn large_payloads_are_checked_in_pieces() {
    for codec in [Codec::None, Codec::Lz4] {
        let made = make(&Spec {
            stretch: 1000,
            codec,
            max_shard: 1 << 20,
            ..Spec::new(12)
        });
        let read = window(&open(&[&made], ordered()), BlockSizing::Samples);
        assert!(
            read.iter()
                .any(|(_, payload)| payload.as_ref().unwrap().len() > 200_000)
        );
        assert_payloads(&read, &[&made]);
        // A changed byte in the last piece is noticed.
        let path = made.path.join("shards/000000.bin");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - 500;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let read = window(&open(&[&made], ordered()), BlockSizing::Samples);
        assert_eq!(
            read.iter().filter(|(_, payload)| payload.is_err()).count(),
            1
        );
    }
}

fn block_of(plan: dataset_rt_runtime::ReadPlan) -> dataset_rt_runtime::Block<VecBuffers> {
    let buffers = VecBuffers::allocate(plan.lengths());
    plan.fill(buffers)
}

#[test]
fn the_order_is_that_of_the_sampler_whatever_reads_it() {
    let (a, b) = (
        make(&Spec::new(700)),
        make(&Spec {
            salt: 9,
            ..Spec::new(50)
        }),
    );
    for (shuffle, replacement) in [(false, true), (true, true), (true, false)] {
        let config = SamplerConfig {
            shuffle,
            replacement,
            seed: 5,
            stream: 0,
        };
        let sampler = Sampler::new(config, 750, None).unwrap();
        let mut rows = vec![0; 2 * 900];
        sampler.fill(0, &mut rows);
        let wanted: Vec<SampleRef> = rows
            .iter()
            .map(|&row| match row.checked_sub(700) {
                None => SampleRef {
                    cache: 0,
                    sample: row,
                },
                Some(sample) => SampleRef { cache: 1, sample },
            })
            .collect();
        for (workers, prefetch_size) in [(1, 1), (3, 2), (2, 64)] {
            let pool = Pool::new(workers).unwrap();
            for sizing in [
                BlockSizing::Samples,
                BlockSizing::Exact(1),
                BlockSizing::Exact(1000),
            ] {
                let options = ReaderOptions {
                    shuffle,
                    replacement,
                    prefetch_size,
                    ..ReaderOptions::new(5)
                };
                let dataset = open_with(&pool, &[&a, &b], options).unwrap();
                dataset.set_epoch_len(900).unwrap();
                let mut read = window(&dataset, sizing);
                read.extend(window(&dataset, sizing));
                assert!(
                    read.iter()
                        .map(|(sample, _)| *sample)
                        .eq(wanted.iter().copied())
                );
                assert_payloads(&read, &[&a, &b]);
            }
        }
    }
}

#[test]
fn windows_are_taken_whole_and_in_turn() {
    let made = make(&Spec::new(10));
    let dataset = open(&[&made], ordered());
    assert_eq!((dataset.len(), dataset.active_rows()), (10, 10));
    dataset.set_epoch_len(4).unwrap();
    let first = dataset.take_window().unwrap();
    let second = dataset.take_window().unwrap();
    // What is changed afterwards does not reach windows that were taken.
    dataset.update(&[table(&[(0, 9, 1.0)])], 0).unwrap();
    let of = |window| ids(&read_all(&mut dataset.blocks(window, BlockSizing::Samples)));
    assert_eq!(of(second), [4, 5, 6, 7]);
    assert_eq!(of(first), [0, 1, 2, 3]);
    assert_eq!(dataset.len(), 4);
    assert_eq!(ids(&window(&dataset, BlockSizing::Samples)), [9, 9, 9, 9]);
    assert_eq!(
        dataset.cursor(),
        Cursor {
            next: 4,
            epoch_len: Some(4),
            stream: 0
        }
    );
}

#[test]
fn windows_end_with_the_stream() {
    let made = make(&Spec::new(10));
    let dataset = open(&[&made], ordered());
    let cursor = Cursor {
        next: (1 << 63) - 10,
        epoch_len: None,
        stream: 0,
    };
    dataset.set_cursor(cursor).unwrap();
    assert_eq!(window(&dataset, BlockSizing::Samples).len(), 10);
    assert!(matches!(dataset.take_window(), Err(Error::Argument { .. })));
    assert!(
        dataset
            .set_cursor(Cursor {
                next: (1 << 63) + 1,
                ..cursor
            })
            .is_err()
    );
    for bad in [0, 1 << 63, u64::MAX] {
        assert!(matches!(
            dataset.set_epoch_len(bad),
            Err(Error::Argument { .. })
        ));
    }
}

#[test]
fn a_cursor_restores_position_length_and_stream_word() {
    let made = make(&Spec::new(100));
    let options = ReaderOptions {
        replacement: false,
        ..ReaderOptions::new(3)
    };
    let dataset = open(&[&made], options.clone());
    let head: Vec<_> = (0..50).map(|i| (0, i * 2, 1.0)).collect();
    dataset.update(&[table(&head)], 7).unwrap();
    dataset.set_epoch_len(30).unwrap();
    let first = ids(&window(&dataset, BlockSizing::Samples));
    let cursor = dataset.cursor();
    let next = ids(&window(&dataset, BlockSizing::Samples));

    let other = open(&[&made], options);
    other.update(&dataset.export_rows().unwrap(), 0).unwrap();
    other.set_cursor(cursor).unwrap();
    assert_eq!(ids(&window(&other, BlockSizing::Samples)), next);
    assert_ne!(first, next);
    // Another stream word is another order of the same table.
    other
        .set_cursor(Cursor {
            next: 0,
            stream: 8,
            ..cursor
        })
        .unwrap();
    assert_ne!(ids(&window(&other, BlockSizing::Samples)), first);
    other
        .set_cursor(Cursor {
            next: 0,
            stream: 7,
            ..cursor
        })
        .unwrap();
    assert_eq!(ids(&window(&other, BlockSizing::Samples)), first);
}

#[test]
fn caches_of_other_types_do_not_load_together() {
    let a = make(&Spec::new(3));
    let b = make(&Spec {
        fields: vec![Field::new("score", FieldType::Int64)],
        ..Spec::new(3)
    });
    let pool = Pool::new(1).unwrap();
    let message = open_with(&pool, &[&a, &b], ordered())
        .unwrap_err()
        .to_string();
    for part in ["score", "float64", "int64"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(message.contains(&a.path.display().to_string()), "{message}");
    assert!(message.contains(&b.path.display().to_string()), "{message}");
}

#[test]
fn a_cache_without_fields() {
    let made = make(&Spec {
        fields: vec![],
        ..Spec::new(20)
    });
    let dataset = open(&[&made], ordered());
    assert_payloads(&window(&dataset, BlockSizing::Samples), &[&made]);
    assert_eq!(dataset.export().unwrap()[0].num_columns(), 3);
    let none = dataset
        .export_samples(&[SampleRef {
            cache: 0,
            sample: 3,
        }])
        .unwrap();
    assert_eq!((none.num_columns(), none.num_rows()), (0, 1));
}

#[test]
fn blocks_bring_their_metadata_when_it_is_wanted() {
    let (a, b) = (
        make(&Spec::new(400)),
        make(&Spec {
            salt: 3,
            ..Spec::new(90)
        }),
    );
    for use_mmap in [true, false] {
        let dataset = open(
            &[&a, &b],
            ReaderOptions {
                use_mmap,
                ..ReaderOptions::new(2)
            },
        );
        let mut stream =
            dataset.blocks::<VecBuffers>(dataset.take_window().unwrap(), BlockSizing::Exact(50));
        stream.want_columns(true);
        let mut seen = 0;
        while let Some(block) = next(&mut stream) {
            let gathered = block.columns.as_ref().unwrap();
            for (row, sample) in block.samples.iter().enumerate() {
                let cache = &dataset.caches()[sample.cache as usize];
                for field in 0..4 {
                    let one = cache.value(field, sample.sample).unwrap();
                    let many = gathered.value(row, field).unwrap();
                    match (one, many) {
                        (Value::Float64(a), Value::Float64(b)) => {
                            assert_eq!(a.to_bits(), b.to_bits())
                        }
                        (a, b) => assert_eq!(a, b),
                    }
                }
                assert_eq!(gathered.value(row, 4), None);
                seen += 1;
            }
            assert_eq!(gathered.value(block.samples.len(), 0), None);
        }
        assert_eq!(seen, 490);
        let mut stream =
            dataset.blocks::<VecBuffers>(dataset.take_window().unwrap(), BlockSizing::Samples);
        assert!(next(&mut stream).unwrap().columns.is_none());
    }
}

#[test]
fn direct_reads_take_any_samples_and_refuse_unknown_ones() {
    let (a, b) = (
        make(&Spec::new(100)),
        make(&Spec {
            salt: 3,
            codec: Codec::Lz4,
            ..Spec::new(9)
        }),
    );
    let dataset = open(&[&a, &b], ReaderOptions::new(2));
    dataset.update(&[table(&[(0, 0, 1.0)])], 0).unwrap();
    let samples: Vec<_> = [(1, 8), (0, 99), (0, 5), (0, 5), (1, 0)]
        .map(|(cache, sample)| dataset.sample(cache, sample).unwrap())
        .to_vec();
    let block = block_of(dataset.read(samples.clone(), true).unwrap());
    assert_eq!(block.samples, samples);
    assert!(block.columns.is_some());
    assert_payloads(&of_block(block), &[&a, &b]);
    let mut stream = dataset
        .blocks_of::<VecBuffers>(samples, BlockSizing::Exact(2))
        .unwrap();
    assert_payloads(&read_all(&mut stream), &[&a, &b]);
    for (cache, sample) in [(0, 100), (1, 9), (2, 0), (u64::MAX, 0)] {
        match dataset.sample(cache, sample) {
            Err(Error::UnknownSample {
                cache_id,
                sample_id,
                ..
            }) => {
                assert_eq!((cache_id, sample_id), (cache, sample));
            }
            other => panic!("{other:?}"),
        }
    }
    let unknown = vec![SampleRef {
        cache: 1,
        sample: 9,
    }];
    assert!(dataset.read(unknown.clone(), false).is_err());
    assert!(dataset.export_samples(&unknown).is_err());
    assert!(
        dataset
            .blocks_of::<VecBuffers>(unknown, BlockSizing::Samples)
            .is_err()
    );
    assert!(matches!(
        dataset.active_sample(1),
        Err(Error::Index { index: 1, len: 1 })
    ));
}

#[test]
fn the_first_blocks_are_small_and_later_ones_bounded() {
    let made = make(&Spec {
        max_shard: 1 << 20,
        ..Spec::new(3000)
    });
    let dataset = open(&[&made], ordered());
    let mut stream =
        dataset.blocks::<VecBuffers>(dataset.take_window().unwrap(), BlockSizing::Samples);
    let mut sizes = Vec::new();
    while let Some(block) = next(&mut stream) {
        sizes.push(block.samples.len() as u64);
    }
    assert_eq!(sizes[..4], [8, 32, 128, MAX_BLOCK_SAMPLES]);
    assert!(sizes.iter().all(|&size| size <= MAX_BLOCK_SAMPLES));
}

#[test]
fn streams_share_one_worker_and_threads_share_one_stream() {
    let made = make(&Spec::new(500));
    let pool = Pool::new(1).unwrap();
    let dataset = Arc::new(open_with(&pool, &[&made], ordered()).unwrap());
    // Interleaved streams don't disturb each other.
    let mut streams: Vec<_> = (0..4)
        .map(|_| {
            let window = dataset.take_window().unwrap();
            dataset.blocks::<VecBuffers>(window, BlockSizing::Exact(30))
        })
        .collect();
    let mut read = vec![Vec::new(); 4];
    for turn in 0..17 {
        for (stream, read) in streams.iter_mut().zip(&mut read).skip(turn % 2) {
            if let Some(block) = next(stream) {
                read.extend(of_block(block));
            }
        }
    }
    for (stream, read) in streams.iter_mut().zip(&mut read) {
        read.extend(read_all(stream));
        assert!(ids(read).into_iter().eq(0..500));
        assert_payloads(read, &[&made]);
    }
    // Each position of a shared stream goes to one of the threads.
    let window = dataset.take_window().unwrap();
    let stream = Mutex::new(dataset.blocks::<VecBuffers>(window, BlockSizing::Exact(3)));
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let mut allocate =
                        |lengths: &[u32]| Ok::<_, Error>(VecBuffers::allocate(lengths));
                    // Waiting is done without the stream, so that others can have what is ready.
                    let polled = stream.lock().unwrap().poll(&mut allocate).unwrap();
                    match polled {
                        Poll::Ready(block) => seen.lock().unwrap().extend(of_block(block)),
                        Poll::Pending(waiter) => waiter.wait(Duration::from_millis(100)),
                        Poll::Done => return,
                    }
                }
            });
        }
    });
    let mut seen = ids(&seen.into_inner().unwrap());
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..500));
}

#[test]
fn samples_that_are_not_in_memory_come_from_the_disk() {
    let made = make(&Spec {
        stretch: 30,
        max_shard: 1 << 20,
        ..Spec::new(400)
    });
    for use_mmap in [true, false] {
        for shard in std::fs::read_dir(made.path.join("shards")).unwrap() {
            let file = std::fs::File::open(shard.unwrap().path()).unwrap();
            file.sync_all().unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
        let options = ReaderOptions {
            use_mmap,
            replacement: false,
            ..ReaderOptions::new(4)
        };
        let read = window(&open(&[&made], options), BlockSizing::Samples);
        assert_eq!(read.len(), 400);
        assert_payloads(&read, &[&made]);
    }
}

#[test]
fn options_and_paths_are_checked() {
    let made = make(&Spec::new(3));
    let pool = Pool::new(1).unwrap();
    let none = open_with(&pool, &[], ordered()).unwrap_err();
    assert!(matches!(
        none,
        Error::Argument {
            argument: "paths",
            ..
        }
    ));
    let options = ReaderOptions {
        prefetch_size: 0,
        ..ordered()
    };
    let zero = open_with(&pool, &[&made], options).unwrap_err();
    assert!(matches!(
        zero,
        Error::Argument {
            argument: "prefetch_size",
            ..
        }
    ));
}
