//! The fixed worker pool: exactly as many threads as asked for, shared by reads and writes.
//!
//! A job never waits for another job, so that one worker is enough for everything. Workers never touch Python.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::error::{Error, Result};

/// The most workers a pool may have; beyond it a thread count is a mistake, not a wish.
pub const MAX_WORKERS: usize = 4096;

type Job = Box<dyn FnOnce() + Send>;

/// A handle on a fixed set of worker threads. Clones share the threads; they end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool {
    num_workers: usize,
    threads: Arc<Threads>,
}

/// The threads of one process. After a fork the child finds another process id, and appends its own set to the
/// chain: threads don't survive a fork, and the parent's queue may have been locked at that moment.
struct Threads {
    pid: u32,
    /// Dropped in its own process alone: hanging up takes a lock, which a thread of the parent may have held.
    jobs: ManuallyDrop<Sender<Job>>,
    after_fork: OnceLock<Arc<Threads>>,
}

impl Pool {
    /// Starts `num_workers` threads.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `1 <= num_workers <= MAX_WORKERS`; [`Error::Io`] when a thread can't be started.
    pub fn new(num_workers: usize) -> Result<Self> {
        if num_workers == 0 || num_workers > MAX_WORKERS {
            return Err(Error::Argument {
                argument: "num_workers",
                message: format!("num_workers must be 1 to {MAX_WORKERS}, found {num_workers}"),
            });
        }
        Ok(Self {
            num_workers,
            threads: Arc::new(Threads::start(num_workers)?),
        })
    }

    /// Number of worker threads.
    pub fn num_workers(&self) -> usize {
        self.num_workers
    }

    /// Queues a job. A job that panics ends alone: the worker goes on, and whoever waits for the job's result must
    /// learn of it from the job's own drop guards.
    ///
    /// # Errors
    /// [`Error::Io`] when this is the first job after a fork and a thread can't be started.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let pid = std::process::id();
        let mut threads = &self.threads;
        while threads.pid != pid {
            if threads.after_fork.get().is_none() {
                let started = Arc::new(Threads::start(self.num_workers)?);
                // A racing thread of the child may have been first; its set serves as well.
                let _ = threads.after_fork.set(started);
            }
            match threads.after_fork.get() {
                Some(next) => threads = next,
                None => return Err(Error::Internal("pool chain lost after fork".to_owned())),
            }
        }
        threads
            .jobs
            .send(Box::new(job))
            .map_err(|_| Error::Internal("the worker pool has ended".to_owned()))
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("num_workers", &self.num_workers)
            .finish_non_exhaustive()
    }
}

impl Threads {
    fn start(num_workers: usize) -> Result<Self> {
        let (jobs, queue) = unbounded::<Job>();
        for worker in 0..num_workers {
            let queue = queue.clone();
            thread::Builder::new()
                .name(format!("dataset_rt-{worker}"))
                .spawn(move || work(&queue))
                .map_err(|source| Error::io("start a thread", "worker pool", source))?;
        }
        Ok(Self {
            pid: std::process::id(),
            jobs: ManuallyDrop::new(jobs),
            after_fork: OnceLock::new(),
        })
    }
}

impl Drop for Threads {
    #[allow(unsafe_code)] // The one way to keep a field from being dropped in a child.
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            // SAFETY: not used again, this is the drop.
            unsafe { ManuallyDrop::drop(&mut self.jobs) };
        }
    }
}

fn work(queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        // The payload of the panic is dropped: the job's own guard has told its owner already.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::Pool;

    #[test]
    fn refuses_no_workers() {
        assert!(Pool::new(0).is_err());
    }

    #[test]
    fn runs_every_job_and_survives_a_panic() {
        let pool = Pool::new(2).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let (done, wait) = mpsc::channel();
        for i in 0..100 {
            let (ran, done) = (ran.clone(), done.clone());
            pool.submit(move || {
                if i == 50 {
                    done.send(()).unwrap();
                    panic!("a job of a test");
                }
                ran.fetch_add(1, Ordering::SeqCst);
                done.send(()).unwrap();
            })
            .unwrap();
        }
        for _ in 0..100 {
            wait.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        assert_eq!(ran.load(Ordering::SeqCst), 99);
    }
}
