//! Order, bounds and liveness of the block stream, over a source without files.
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::{BlockSizing, BlockSource, Filled, MAX_PREFETCH_BYTES, Polled, Stream};
use crate::error::Error;
use crate::pool::Pool;
use crate::reader::slots::{PayloadBuffers, Slots, VecBuffers};

struct Numbers {
    len: u32,
    resident: bool,
    pause: Duration,
    panic_at: u64,
    planned_to: AtomicU64,
    prepared: Mutex<Vec<u64>>,
}

/// Positions after which [`Numbers`] wants something prepared.
const PASS: u64 = 1000;

impl Numbers {
    fn new(len: u32) -> Self {
        Self {
            len,
            resident: true,
            pause: Duration::ZERO,
            panic_at: u64::MAX,
            planned_to: AtomicU64::new(0),
            prepared: Mutex::default(),
        }
    }
}

struct Work {
    first: u64,
    lengths: Vec<u32>,
    resident: bool,
    failed: bool,
}

impl BlockSource for Numbers {
    type Work = Work;

    fn plan(&self, first: u64, count: u64, _columns: bool) -> Work {
        self.planned_to.fetch_max(first + count, Ordering::SeqCst);
        let lengths = vec![self.len; usize::try_from(count).unwrap()];
        Work {
            first,
            lengths,
            resident: self.resident,
            failed: false,
        }
    }

    fn ahead_of(&self, position: u64) -> Option<u64> {
        let next = (position / PASS + 1) * PASS;
        let prepared = self.prepared.lock().unwrap();
        (position % PASS >= PASS / 2 && !prepared.contains(&next)).then_some(next)
    }

    fn prepare(&self, position: u64) {
        self.prepared.lock().unwrap().push(position);
    }

    fn plans_quickly(&self, _first: u64, _count: u64) -> bool {
        self.resident
    }

    fn lengths(work: &Work) -> &[u32] {
        &work.lengths
    }

    fn is_resident(work: &Work) -> bool {
        work.resident
    }

    fn fill(&self, work: &mut Work, buffers: &mut dyn PayloadBuffers, _stop: &AtomicBool) {
        if (work.first..work.first + work.lengths.len() as u64).contains(&self.panic_at) {
            panic!("a source of a test");
        }
        std::thread::sleep(self.pause);
        let mut slots = Slots::new(buffers, &work.lengths).unwrap();
        for (i, position) in (work.first..).take(work.lengths.len()).enumerate() {
            let mut slot = slots.get(i);
            let bytes = position.to_le_bytes().repeat(slot.len().div_ceil(8));
            slot.append(&bytes);
        }
    }

    fn fail(&self, work: &mut Work, _message: &str) {
        work.failed = true;
    }
}

type Block = Filled<Work, VecBuffers>;

fn next(stream: &mut Stream<Numbers, VecBuffers>) -> Option<Block> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut allocate = |lengths: &[u32]| Ok::<_, Error>(VecBuffers::allocate(lengths));
        match stream.poll(&mut allocate).unwrap() {
            Polled::Ready(block) => return Some(block),
            Polled::Pending(waiter) => waiter.wait(Duration::from_millis(100)),
            Polled::Done => return None,
        }
        assert!(Instant::now() < deadline, "the stream hangs");
    }
}

fn positions(blocks: impl IntoIterator<Item = Block>) -> Vec<u64> {
    let mut positions = Vec::new();
    for block in blocks {
        for payload in &block.buffers.0 {
            positions.push(u64::from_le_bytes(payload[..8].try_into().unwrap()));
        }
    }
    positions
}

#[test]
fn the_order_does_not_depend_on_workers_prefetch_or_block_size() {
    for workers in [1, 3] {
        let pool = Pool::new(workers).unwrap();
        for prefetch in [1, 2, 64] {
            for sizing in [
                BlockSizing::Samples,
                BlockSizing::Exact(7),
                BlockSizing::Exact(5000),
                BlockSizing::Batches(7),
            ] {
                for resident in [true, false] {
                    let source = Numbers {
                        resident,
                        ..Numbers::new(16)
                    };
                    let mut stream =
                        Stream::new(&pool, Arc::new(source), 5..2005, sizing, 100, prefetch);
                    let blocks = std::iter::from_fn(|| next(&mut stream));
                    assert!(positions(blocks).into_iter().eq(5..2005));
                }
            }
        }
    }
}

#[test]
fn the_next_pass_is_prepared_before_this_one_ends_and_once() {
    for workers in [1, 2] {
        let pool = Pool::new(workers).unwrap();
        let source = Arc::new(Numbers::new(8));
        let sizing = BlockSizing::Exact(100);
        let mut stream = Stream::new(&pool, source.clone(), 0..3000, sizing, 100, 8);
        let prepared = || source.prepared.lock().unwrap().clone();
        for _ in 0..5 {
            next(&mut stream).unwrap();
        }
        assert!(prepared().is_empty());
        next(&mut stream).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while prepared().is_empty() {
            assert!(Instant::now() < deadline, "nobody prepares the next pass");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(prepared(), [1000]);
        for _ in 6..16 {
            next(&mut stream).unwrap();
        }
        while prepared().len() < 2 {
            assert!(Instant::now() < deadline, "nobody prepares the next pass");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(prepared(), [1000, 2000]);
    }
}

#[test]
fn block_sizes() {
    let pool = Pool::new(1).unwrap();
    let sizes = |sizing, usual| {
        let mut stream = Stream::new(&pool, Arc::new(Numbers::new(8)), 0..1000, sizing, usual, 4);
        std::iter::from_fn(|| next(&mut stream))
            .map(|block| block.work.lengths.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(BlockSizing::Samples, 9999), [8, 32, 128, 512, 320]);
    assert_eq!(
        sizes(BlockSizing::Samples, 300),
        [8, 32, 128, 300, 300, 232]
    );
    assert_eq!(sizes(BlockSizing::Samples, 1)[..3], [1, 1, 1]);
    assert_eq!(sizes(BlockSizing::Exact(400), 1), [400, 400, 200]);
    assert_eq!(
        sizes(BlockSizing::Batches(50), 9999),
        [50, 100, 200, 400, 250]
    );
    assert_eq!(
        sizes(BlockSizing::Batches(100), 350),
        [100, 200, 300, 300, 100]
    );
    assert_eq!(sizes(BlockSizing::Batches(400), 1), [400, 400, 200]);
}

#[test]
fn nothing_is_planned_past_the_window_or_beyond_prefetch() {
    let pool = Pool::new(2).unwrap();
    let source = Arc::new(Numbers::new(8));
    let mut stream = Stream::new(&pool, source.clone(), 0..3, BlockSizing::Samples, 512, 64);
    assert_eq!(positions(next(&mut stream)), [0, 1, 2]);
    assert!(next(&mut stream).is_none());
    assert_eq!(source.planned_to.load(Ordering::SeqCst), 3);

    let source = Arc::new(Numbers::new(8));
    let mut stream = Stream::new(&pool, source.clone(), 0..1000, BlockSizing::Exact(1), 1, 2);
    next(&mut stream).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(source.planned_to.load(Ordering::SeqCst) <= 3);
}

#[test]
fn memory_in_flight_is_bounded_and_large_blocks_pass_alone() {
    // Each block is over half of the bound: so one at a time has memory, or one more where it is the front.
    let pool = Pool::new(2).unwrap();
    let len = u32::try_from(MAX_PREFETCH_BYTES / 2 + 1).unwrap();
    struct Counted(Vec<u8>, Arc<AtomicUsize>);
    // SAFETY: one payload a block in this test, the vector's own bytes.
    #[allow(unsafe_code)]
    unsafe impl PayloadBuffers for Counted {
        fn slot(&self, _: usize) -> *mut u8 {
            self.0.as_ptr().cast_mut()
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let mut most = 0;
    let mut stream = Stream::<_, Counted>::new(
        &pool,
        Arc::new(Numbers {
            resident: false,
            ..Numbers::new(len)
        }),
        0..6,
        BlockSizing::Exact(1),
        1,
        64,
    );
    let mut delivered = 0;
    loop {
        let mut allocate = |lengths: &[u32]| {
            most = most.max(alive.fetch_add(1, Ordering::SeqCst) + 1);
            Ok::<_, Error>(Counted(vec![0; lengths[0] as usize], alive.clone()))
        };
        match stream.poll(&mut allocate).unwrap() {
            Polled::Ready(_) => delivered += 1,
            Polled::Pending(waiter) => waiter.wait(Duration::from_millis(100)),
            Polled::Done => break,
        }
    }
    assert_eq!(delivered, 6);
    assert!(most <= 2, "{most} large blocks had memory at once");
}

/// A pool whose one worker is at something else until the sender is dropped.
fn busy_pool() -> (Pool, mpsc::Sender<()>) {
    let pool = Pool::new(1).unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    pool.submit(move || assert!(blocked.recv().is_err()))
        .unwrap();
    (pool, release)
}

#[test]
fn a_busy_pool_does_not_stop_a_stream_out_of_memory() {
    let (pool, _release) = busy_pool();
    let source = Arc::new(Numbers::new(8));
    let mut stream = Stream::new(&pool, source, 0..100, BlockSizing::Exact(30), 1, 4);
    assert!(
        positions(std::iter::from_fn(|| next(&mut stream)))
            .into_iter()
            .eq(0..100)
    );
}

#[test]
fn a_consumer_never_reads_from_the_disk_itself() {
    // A consumer that hung in such a read could not be interrupted. Who plans and fills is told by the thread.
    for plans_quickly in [false, true] {
        let (pool, release) = busy_pool();
        let source = Arc::new(Cold {
            numbers: Numbers {
                resident: false,
                ..Numbers::new(8)
            },
            plans_quickly,
            consumer: std::thread::current().id(),
        });
        let mut stream = Stream::new(&pool, source, 0..100, BlockSizing::Exact(30), 1, 4);
        let mut allocate = |lengths: &[u32]| Ok::<_, Error>(VecBuffers::allocate(lengths));
        for _ in 0..20 {
            match stream.poll(&mut allocate).unwrap() {
                Polled::Pending(waiter) => waiter.wait(Duration::from_millis(2)),
                Polled::Ready(_) | Polled::Done => panic!("read without a worker"),
            }
        }
        drop(release);
        let mut read = 0;
        loop {
            match stream.poll(&mut allocate).unwrap() {
                Polled::Pending(waiter) => waiter.wait(Duration::from_secs(30)),
                Polled::Ready(block) => read += block.work.lengths.len(),
                Polled::Done => break,
            }
        }
        assert_eq!(read, 100);
    }
}

/// A source on a slow disk, which no consumer may touch.
struct Cold {
    numbers: Numbers,
    plans_quickly: bool,
    consumer: std::thread::ThreadId,
}

impl BlockSource for Cold {
    type Work = Work;

    fn plan(&self, first: u64, count: u64, columns: bool) -> Work {
        assert!(self.plans_quickly || std::thread::current().id() != self.consumer);
        self.numbers.plan(first, count, columns)
    }

    fn ahead_of(&self, _position: u64) -> Option<u64> {
        None
    }

    fn prepare(&self, _position: u64) {}

    fn plans_quickly(&self, _first: u64, _count: u64) -> bool {
        self.plans_quickly
    }

    fn lengths(work: &Work) -> &[u32] {
        &work.lengths
    }

    fn is_resident(work: &Work) -> bool {
        work.resident
    }

    fn fill(&self, work: &mut Work, buffers: &mut dyn PayloadBuffers, stop: &AtomicBool) {
        assert_ne!(std::thread::current().id(), self.consumer);
        self.numbers.fill(work, buffers, stop);
    }

    fn fail(&self, _work: &mut Work, message: &str) {
        panic!("{message}");
    }
}

#[test]
fn dropping_a_stream_in_flight_is_prompt() {
    let pool = Pool::new(2).unwrap();
    let source = Numbers {
        pause: Duration::from_millis(300),
        resident: false,
        ..Numbers::new(8)
    };
    let mut stream = Stream::new(
        &pool,
        Arc::new(source),
        0..1000,
        BlockSizing::Exact(1),
        1,
        8,
    );
    let mut allocate = |lengths: &[u32]| Ok::<_, Error>(VecBuffers::allocate(lengths));
    for _ in 0..3 {
        if let Polled::Pending(waiter) = stream.poll(&mut allocate).unwrap() {
            waiter.wait(Duration::from_millis(1));
        }
    }
    let start = Instant::now();
    drop(stream);
    assert!(start.elapsed() < Duration::from_millis(200));
}

#[test]
fn a_panic_of_the_source_loses_its_block_alone() {
    let pool = Pool::new(2).unwrap();
    let source = Numbers {
        panic_at: 15,
        resident: false,
        ..Numbers::new(8)
    };
    let mut stream = Stream::new(&pool, Arc::new(source), 0..40, BlockSizing::Exact(10), 1, 4);
    let failed: Vec<bool> = std::iter::from_fn(|| next(&mut stream))
        .map(|block| block.work.failed)
        .collect();
    assert_eq!(failed, [false, true, false, false]);
}

#[test]
fn a_failed_allocation_can_be_tried_again() {
    let pool = Pool::new(1).unwrap();
    let mut stream = Stream::new(
        &pool,
        Arc::new(Numbers::new(8)),
        0..10,
        BlockSizing::Exact(10),
        1,
        1,
    );
    let mut failures = 0;
    for _ in 0..1000 {
        let mut refuse = |_: &[u32]| Err::<VecBuffers, _>(Error::Interrupted);
        match stream.poll(&mut refuse) {
            Ok(Polled::Pending(waiter)) => waiter.wait(Duration::from_millis(1)),
            Ok(_) => panic!("delivered without memory"),
            Err(_) => failures += 1,
        }
        if failures == 3 {
            break;
        }
    }
    assert!(positions(next(&mut stream)).into_iter().eq(0..10));
}

#[test]
fn a_forked_child_goes_on_from_the_first_undelivered_position() {
    let pool = Pool::new(2).unwrap();
    let source = Numbers {
        pause: Duration::from_millis(1),
        ..Numbers::new(8)
    };
    let mut stream = Stream::new(
        &pool,
        Arc::new(source),
        0..200,
        BlockSizing::Exact(10),
        1,
        8,
    );
    for _ in 0..3 {
        next(&mut stream).unwrap();
    }
    let shared = Arc::clone(&stream.shared);
    let held = shared.state.lock().unwrap();
    // SAFETY: the child reads the stream, which must work in a forked process, and leaves by _exit.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        std::mem::forget(held);
        let good = positions(std::iter::from_fn(|| next(&mut stream)))
            .into_iter()
            .eq(30..200);
        // SAFETY: ends the child without running anything of the parent's.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(!good));
        }
    }
    drop(held);
    assert!(
        positions(std::iter::from_fn(|| next(&mut stream)))
            .into_iter()
            .eq(30..200)
    );
    let mut status = 0;
    // SAFETY: waits for the child made above.
    #[allow(unsafe_code)]
    unsafe {
        libc::waitpid(child, &mut status, 0);
    }
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "{status}"
    );
}

#[test]
fn an_error_type_of_the_caller() {
    // `allocate` may fail in the caller's own type.
    #[derive(Debug)]
    struct Mine;
    impl From<Error> for Mine {
        fn from(_: Error) -> Self {
            Self
        }
    }
    let _: Option<Infallible> = None;
    let pool = Pool::new(1).unwrap();
    let mut stream = Stream::<_, VecBuffers>::new(
        &pool,
        Arc::new(Numbers::new(8)),
        0..0,
        BlockSizing::Samples,
        1,
        1,
    );
    let mut allocate = |_: &[u32]| Err::<VecBuffers, Mine>(Mine);
    assert!(matches!(stream.poll(&mut allocate), Ok(Polled::Done)));
}
