//! A flag that asks running work to stop.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How often a probe is asked: often enough for a key press, seldom enough to cost nothing.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// A shared flag: once set it stays set.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    probe: Option<Probe>,
}

struct Probe {
    asks_to_stop: Box<dyn Fn() -> bool + Send + Sync>,
    last: Mutex<Instant>,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that sets itself when `asks_to_stop` says so. The probe runs on whatever thread calls [`check`], at most
    /// twenty times a second.
    ///
    /// [`check`]: Self::check
    pub fn with_probe(asks_to_stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let probe = Probe {
            asks_to_stop: Box::new(asks_to_stop),
            last: Mutex::new(Instant::now()),
        };
        Self(Arc::new(Shared {
            cancelled: AtomicBool::new(false),
            probe: Some(probe),
        }))
    }

    /// Asks everything that holds this flag to stop.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
    }

    /// Whether stopping was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// [`Error::Interrupted`] once stopping was asked for. Long work calls this between its steps.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and nothing else.
    pub fn check(&self) -> Result<()> {
        if !self.is_cancelled()
            && let Some(probe) = &self.0.probe
            && let Ok(mut last) = probe.last.try_lock()
            && last.elapsed() >= PROBE_INTERVAL
        {
            *last = Instant::now();
            drop(last);
            if (probe.asks_to_stop)() {
                self.cancel();
            }
        }
        if self.is_cancelled() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel")
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}
