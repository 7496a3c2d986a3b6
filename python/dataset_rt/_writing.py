"""One call of the writer: from sources to results."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from dataset_rt import _native
from dataset_rt._arguments import absolute_path, describe
from dataset_rt.config import WriterConfig
from dataset_rt.errors import (
    ArgumentTypeError,
    DatasetRTError,
    InternalError,
    InvalidArgumentError,
    SourceNameError,
)
from dataset_rt.progress import WriteProgress
from dataset_rt.results import CacheWriteError, CacheWriteResult, CacheWriteSuccess

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dataset_rt._native import NativeOutcome, NativeRuntime

_logger = logging.getLogger("dataset_rt")


class _Job(NamedTuple):
    position: int
    name: str
    fingerprint: str | None
    source: object


class Written(NamedTuple):
    """What a call did: one result a source, and what the core says of those it was given."""

    results: list[CacheWriteResult]
    outcomes: Sequence[NativeOutcome]


def write(
    pool: NativeRuntime,
    sources: object,
    path: object,
    config: object,
    *,
    create_or_reuse: bool,
) -> Written:
    """Writes each source below `path`; failures of one are its own result.

    Raises:
        ArgumentTypeError: If `path` or `config` has the wrong type.
        InvalidArgumentError: If `path` is empty.
        DatasetRTError: If the base folder can't be used at all.
    """
    if not isinstance(config, WriterConfig):
        raise ArgumentTypeError(
            f"writer_config must be a WriterConfig, found {describe(config)}",
            argument="writer_config",
        )
    base = absolute_path(path, "path")
    profile = None
    if config.profiler.enabled:
        profile = absolute_path(config.profiler.path, "writer_config.profiler.path")
    listed = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    results: dict[int, CacheWriteResult] = {}
    jobs = _jobs(listed, results)
    outcomes: Sequence[NativeOutcome] = ()
    if jobs or profile is not None:
        outcomes = _run(pool, jobs, base, config, profile, create_or_reuse=create_or_reuse)
    for job, outcome in zip(jobs, outcomes, strict=True):
        results[job.position] = _result(job, outcome)
    return Written([results[position] for position in range(len(listed))], outcomes)


def _run(
    pool: NativeRuntime,
    jobs: list[_Job],
    base: Path,
    config: WriterConfig,
    profile: Path | None,
    *,
    create_or_reuse: bool,
) -> Sequence[NativeOutcome]:
    progress = WriteProgress(len(jobs)) if config.show_progress and jobs else None
    done = False
    try:
        outcomes = pool.write(
            [(job.name, job.fingerprint, job.source) for job in jobs],
            str(base),
            config._native_options(profile=profile),  # noqa: SLF001 - the package's own
            create_or_reuse=create_or_reuse,
            on_progress=None if progress is None else progress.update,
            on_wait=_log_wait,
        )
        done = True
    finally:
        if progress is not None:
            progress.close(finished=done)
    return outcomes


def _log_wait(name: str, what: str) -> None:
    _logger.warning("source %r: waiting for %s", name, what)


def _jobs(sources: Sequence[object], results: dict[int, CacheWriteResult]) -> list[_Job]:
    """Reads names and fingerprints; what can't be used gets its result here."""
    jobs = []
    taken: dict[str, str] = {}
    for position, source in enumerate(sources):
        label = f"source[{position}]"
        try:
            label = name = _name(source, label)
            _check_name(name, taken)
            jobs.append(_Job(position, name, _fingerprint(source, name), source))
        except Exception as error:  # noqa: BLE001 - reading an attribute runs the user's code
            results[position] = CacheWriteError(label, error_text(error), cause=error)
    return jobs


def _name(source: object, label: str) -> str:
    try:
        name = source.name  # type: ignore[attr-defined]
    except AttributeError as error:
        raise SourceNameError(
            f"{label} has no name: a source is an iterable with a str attribute `name`, found "
            f"{describe(source)}",
            reason="no name",
        ) from error
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"the name of {label} must be a str, found {describe(name)}", argument="name"
        )
    return str.__str__(name)


def _check_name(name: str, taken: dict[str, str]) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        reason = "it holds a lone surrogate, which is no text"
        raise SourceNameError(
            f"source name {name!r} is not allowed: {reason}", name=name, reason=reason
        ) from None
    _native.check_source_name(name)
    first = taken.setdefault(_native.fold_source_name(name), name)
    if first is not name:
        reason = (
            "an earlier source of this call has it"
            if first == name
            else f"it is equal to {first!r} of an earlier source but for case or Unicode form"
        )
        raise SourceNameError(
            f"source name {name!r} is not allowed twice: {reason}", name=name, reason=reason
        )


def _fingerprint(source: object, name: str) -> str | None:
    fingerprint = getattr(source, "fingerprint", None)
    if fingerprint is None:
        return None
    if not isinstance(fingerprint, str):
        raise ArgumentTypeError(
            f"the fingerprint of source {name!r} must be a str or None, found "
            f"{describe(fingerprint)}",
            argument="fingerprint",
        )
    try:
        fingerprint.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"the fingerprint of source {name!r} holds a lone surrogate, which is no text",
            argument="fingerprint",
        ) from None
    return str.__str__(fingerprint)


def _result(job: _Job, outcome: NativeOutcome) -> CacheWriteResult:
    status, path = outcome.status, outcome.path
    if status != "error" and path is not None:
        return CacheWriteSuccess(job.name, path, status=status, reason=outcome.reason)
    error = outcome.error or InternalError(f"the core reports {status!r} without an error")
    return CacheWriteError(job.name, error_text(error), reason=outcome.reason, cause=error)


def error_text(error: BaseException) -> str:
    """Returns one text for an error: our own messages say it all, others need their type."""
    if isinstance(error, DatasetRTError):
        return str(error)
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the class of a stranger
        text = "an error without a text"
    name = type(error).__name__
    return f"the source raised {name}: {text}" if text else f"the source raised {name}"
