//! Writing sources: pulls each under the interpreter, hands blocks to the runtime, waits without it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use dataset_rt_runtime::{
    Begin, Cancel, Error, InputBlock, Pool, SourceWriter, Stage, WriteSession,
};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::config::write_options;
use crate::ending::{call, survive};
use crate::error::{CallError, IntoPyResult, to_py};
use crate::interrupt::{SIGNAL_INTERVAL, interruptible};
use crate::payload::release_abandoned;
use crate::source::Puller;

/// Name, fingerprint, source.
pub(crate) type Job<'py> = (String, Option<String>, Bound<'py, PyAny>);

/// How often progress is told.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How long an interrupted write may take to clean up behind itself before the interrupt is raised all the same: a disk
/// that hangs must not hang the caller. Workers then finish the cleaning when the disk answers.
const CLEAN_UP_LIMIT: Duration = Duration::from_secs(5);

/// Sources that were read and are not stored yet, at most: each holds a few descriptors.
const MAX_FINISHING: usize = 16;

/// Python functions to call meanwhile.
pub(crate) struct Callbacks<'py> {
    pub(crate) on_progress: Option<Bound<'py, PyAny>>,
    pub(crate) on_wait: Option<Bound<'py, PyAny>>,
}

/// What became of one source.
#[pyclass(frozen, module = "dataset_rt._native")]
pub(crate) struct NativeOutcome {
    #[pyo3(get)]
    status: &'static str,
    #[pyo3(get)]
    path: Option<PathBuf>,
    #[pyo3(get)]
    reason: String,
    #[pyo3(get)]
    created: Option<String>,
    #[pyo3(get)]
    unproven: bool,
    #[pyo3(get)]
    error: Option<Py<PyAny>>,
}

impl NativeOutcome {
    fn failed(py: Python<'_>, error: PyErr) -> Self {
        let value = error.into_value(py).into_any();
        let reason = value
            .bind(py)
            .str()
            .map_or_else(|_| String::new(), |text| text.to_string());
        Self {
            status: "error",
            path: None,
            reason,
            created: None,
            unproven: false,
            error: Some(value),
        }
    }
}

#[pymethods]
impl NativeOutcome {
    fn __repr__(&self) -> String {
        format!("<outcome {}: {}>", self.status, self.reason)
    }
}

/// Writes all jobs; one outcome each, in order.
pub(crate) fn write(
    py: Python<'_>,
    pool: &Pool,
    jobs: &[Job<'_>],
    base: PathBuf,
    options: &Bound<'_, PyDict>,
    create_or_reuse: bool,
    callbacks: &Callbacks<'_>,
) -> PyResult<Vec<NativeOutcome>> {
    let profile = match options.get_item("profile")? {
        Some(path) => path.extract::<Option<PathBuf>>()?,
        None => None,
    };
    let options = write_options(options, create_or_reuse, profile.is_some())?;
    let cancel = Cancel::new();
    let session = py
        .detach(|| WriteSession::new(pool.clone(), base, options, cancel.clone()))
        .into_py(py)?;
    let mut run = Run {
        session: &session,
        callbacks,
        profiled: profile.is_some(),
        outcomes: jobs.iter().map(|_| None).collect(),
        finishing: Vec::new(),
        started: Instant::now(),
        told: Instant::now(),
        current: 0,
        names: jobs.iter().map(|job| job.0.as_str()).collect(),
    };
    let result = run.all(py, jobs);
    let outcomes = std::mem::take(&mut run.outcomes);
    let finishing = std::mem::take(&mut run.finishing);
    drop(run);
    if result.is_err() {
        cancel.cancel();
        clean_up(py, &finishing);
    }
    release_abandoned(py);
    let written = match &profile {
        Some(path) => py.detach(|| session.write_profile(path)),
        None => Ok(()),
    };
    result?;
    written.into_py(py)?;
    outcomes
        .into_iter()
        .map(|outcome| {
            outcome.ok_or_else(|| to_py(py, Error::Internal("a source has no outcome".to_owned())))
        })
        .collect()
}

/// Gives up what is not stored yet, and waits until it has left nothing behind. A second interrupt ends the wait.
fn clean_up(py: Python<'_>, finishing: &[Finishing]) {
    for Finishing { writer, .. } in finishing {
        writer.abort("interrupted");
    }
    let deadline = Instant::now() + CLEAN_UP_LIMIT;
    for Finishing { writer, .. } in finishing {
        while py.detach(|| writer.wait(SIGNAL_INTERVAL)).is_none() {
            // The first interrupt is raised already; what a second one raises says no more.
            if py.check_signals().is_err() || Instant::now() >= deadline {
                return;
            }
        }
    }
}

struct Finishing {
    job: usize,
    writer: SourceWriter,
}

struct Run<'a, 'py> {
    session: &'a WriteSession,
    callbacks: &'a Callbacks<'py>,
    profiled: bool,
    outcomes: Vec<Option<NativeOutcome>>,
    /// Sources that were read to their end and are being stored; in order.
    finishing: Vec<Finishing>,
    started: Instant,
    told: Instant,
    current: usize,
    names: Vec<&'a str>,
}

impl Run<'_, '_> {
    /// # Errors
    /// Only what is no failure of one source: an interrupt, or a callback that raises.
    fn all<'py>(&mut self, py: Python<'py>, jobs: &[Job<'py>]) -> PyResult<()> {
        for (index, (name, fingerprint, source)) in jobs.iter().enumerate() {
            self.current = index;
            self.make_way(py)?;
            if let Some(writer) = self.begin(py, index, name, fingerprint.as_deref())? {
                match self.feed(py, name, source, &writer) {
                    Ok(()) => {
                        writer.finish();
                        self.finishing.push(Finishing { job: index, writer });
                    }
                    Err(error) => {
                        writer.abort(&error.to_string());
                        // An interrupt is no property of one source.
                        if !error.is_instance_of::<PyException>(py) {
                            self.finishing.push(Finishing { job: index, writer });
                            return Err(error);
                        }
                        // What a worker met came first and is the reason.
                        self.settle_failed(py, index, writer, error)?;
                    }
                }
            }
            self.collect(py, Duration::ZERO);
        }
        while !self.finishing.is_empty() {
            self.collect(py, SIGNAL_INTERVAL);
            py.check_signals()?;
            self.tell_progress(py, false)?;
        }
        self.tell_progress(py, true)
    }

    /// Waits while too many sources are being stored. While space is short, waits for all of them: until they are
    /// stored or have given back what they held.
    fn make_way(&mut self, py: Python<'_>) -> PyResult<()> {
        while self.finishing.len() >= MAX_FINISHING
            || !self.finishing.is_empty() && py.detach(|| self.session.is_short_of_space())
        {
            self.collect(py, SIGNAL_INTERVAL);
            py.check_signals()?;
            self.tell_progress(py, false)?;
        }
        Ok(())
    }

    /// Claims the target, or finds an outcome without reading the source.
    fn begin(
        &mut self,
        py: Python<'_>,
        index: usize,
        name: &str,
        fingerprint: Option<&str>,
    ) -> PyResult<Option<SourceWriter>> {
        let mut told = false;
        loop {
            // Comparing a whole cache with its checksums takes a while.
            let session = self.session;
            match interruptible(py, |cancel| session.begin_with(name, fingerprint, cancel)) {
                Ok(Begin::Write(writer)) => return Ok(Some(writer)),
                Ok(Begin::Reuse(reused)) => {
                    self.outcomes[index] = Some(NativeOutcome {
                        status: "reused",
                        path: Some(reused.path),
                        reason: reused.reason,
                        created: Some(reused.created),
                        unproven: reused.by_name_only || reused.mismatch,
                        error: None,
                    });
                    return Ok(None);
                }
                Ok(Begin::Wait { holder }) => {
                    if !told && let Some(on_wait) = &self.callbacks.on_wait {
                        let arguments = (name, holder).into_pyobject(py)?;
                        call(on_wait, &arguments, None)?;
                    }
                    told = true;
                    py.detach(|| std::thread::sleep(SIGNAL_INTERVAL));
                    py.check_signals()?;
                    self.collect(py, Duration::ZERO);
                }
                Err(CallError::Python(raised)) => return Err(raised),
                Err(CallError::Runtime(error)) => {
                    let error = to_py(py, error);
                    self.outcomes[index] = Some(NativeOutcome::failed(py, error));
                    return Ok(None);
                }
            }
        }
    }

    /// Reads a source to its end, or to the first failure.
    fn feed<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        source: &Bound<'py, PyAny>,
        writer: &SourceWriter,
    ) -> PyResult<()> {
        let mut puller = Puller::new(name, source, self.profiled)?;
        let mut started = false;
        loop {
            let waiting = self.profiled.then(Instant::now);
            self.make_way(py)?;
            while !py.detach(|| writer.wait_for_room(SIGNAL_INTERVAL)) {
                py.check_signals()?;
                self.tell_progress(py, false)?;
            }
            if let Some(waiting) = waiting {
                self.session
                    .profile_add(Stage::IngressWait, waiting.elapsed(), 1);
            }
            if writer.failed() {
                return Ok(());
            }
            let memory = writer.spare_buffer();
            let pulled = survive(|| puller.pull(memory));
            if self.profiled {
                let times = std::mem::take(&mut puller.times);
                self.session
                    .profile_add(Stage::PythonNext, times.python_next, times.samples);
                self.session
                    .profile_add(Stage::PythonExtract, times.python_extract, times.samples);
            }
            let Some(pulled) = pulled? else {
                return Ok(());
            };
            if let (false, Some(builder)) = (started, puller.builder()) {
                writer.start(builder.schema().clone()).into_py(py)?;
                started = true;
            }
            let block = InputBlock {
                payloads: Box::new(pulled.payloads),
                columns: pulled.columns,
            };
            writer.submit(block).into_py(py)?;
            if pulled.ended {
                return Ok(());
            }
            release_abandoned(py);
            py.check_signals()?;
            self.tell_progress(py, false)?;
        }
    }

    /// Waits until an aborted source has left nothing behind.
    fn settle_failed(
        &mut self,
        py: Python<'_>,
        index: usize,
        writer: SourceWriter,
        error: PyErr,
    ) -> PyResult<()> {
        while py.detach(|| writer.wait(SIGNAL_INTERVAL)).is_none() {
            if let Err(interrupt) = py.check_signals() {
                self.finishing.push(Finishing { job: index, writer });
                return Err(interrupt);
            }
        }
        self.outcomes[index] = Some(NativeOutcome::failed(py, error));
        Ok(())
    }

    /// Takes the outcomes of sources that are stored by now; waits for the first of them up to `patience`.
    fn collect(&mut self, py: Python<'_>, patience: Duration) {
        while let Some(first) = self.finishing.first() {
            let Some(result) = py.detach(|| first.writer.wait(patience)) else {
                break;
            };
            let outcome = match result {
                Ok(written) => NativeOutcome {
                    status: written.status.name(),
                    path: Some(written.path),
                    reason: written.reason,
                    created: Some(written.created),
                    unproven: written.by_name_only || written.mismatch,
                    error: None,
                },
                Err(error) => NativeOutcome::failed(py, to_py(py, error)),
            };
            let job = first.job;
            self.outcomes[job] = Some(outcome);
            self.finishing.remove(0);
        }
    }

    fn tell_progress(&mut self, py: Python<'_>, last: bool) -> PyResult<()> {
        let Some(on_progress) = &self.callbacks.on_progress else {
            return Ok(());
        };
        if !last && self.told.elapsed() < PROGRESS_INTERVAL {
            return Ok(());
        }
        self.told = Instant::now();
        // Sources commit in order, so the first unfinished one is the one whose samples arrive now.
        let active = self
            .finishing
            .first()
            .map_or(self.current, |finishing| finishing.job);
        let progress = self.session.progress();
        let snapshot = PyDict::new(py);
        snapshot.set_item("source", active)?;
        snapshot.set_item("name", self.names.get(active))?;
        snapshot.set_item("samples", progress.samples)?;
        snapshot.set_item("payload_bytes", progress.payload_bytes)?;
        snapshot.set_item("stored_bytes", progress.stored_bytes)?;
        snapshot.set_item(
            "sources_done",
            self.outcomes
                .iter()
                .filter(|outcome| outcome.is_some())
                .count(),
        )?;
        snapshot.set_item("sources_total", self.outcomes.len())?;
        snapshot.set_item("elapsed", self.started.elapsed().as_secs_f64())?;
        let arguments = PyTuple::new(py, [snapshot])?;
        call(on_progress, &arguments, None)?;
        Ok(())
    }
}
