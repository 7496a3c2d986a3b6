"""The worker pool and the operations that share it."""

from __future__ import annotations

import os
import uuid
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from dataset_rt import _native
from dataset_rt._arguments import describe, integer, path_list
from dataset_rt._locks import ForkLock
from dataset_rt._reuse import warn_unproven
from dataset_rt._writing import write
from dataset_rt.config import DEFAULT_WRITER_CONFIG, ReaderConfig, WriterConfig
from dataset_rt.dataset import CachedDataset
from dataset_rt.errors import ArgumentTypeError, DatasetRTError, DatasetRTWarning
from dataset_rt.results import (
    CacheSourcesDatasetError,
    CacheSourcesDatasetResult,
    CacheSourcesDatasetSuccess,
    CacheWriteError,
    CacheWriteResult,
    CacheWriteSuccess,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dataset_rt.sources import CacheSource

__all__ = ["DatasetRuntime"]

# The pool's own limit: beyond it a thread count is a mistake, not a wish.
_MAX_WORKERS = 4096

_lock = ForkLock()
# Runtimes that went through a pickle, so that all copies in a process are one.
_shared: weakref.WeakValueDictionary[str, DatasetRuntime]
_told_about_ranks = False


class DatasetRuntime:
    """A fixed pool of native worker threads, and the operations that use it.

    Make one a process or training job. Datasets opened through it keep it alive. It pickles as its
    worker count: all copies that arrive in one process share one pool.

    Args:
        num_workers: Number of threads, 1 to 4096. It is never taken from the machine.

    Raises:
        InvalidArgumentError: If `num_workers` is out of range.
        ArgumentTypeError: If it is no integer.
    """

    __slots__ = ("__weakref__", "_pool", "_token")

    def __init__(self, *, num_workers: int) -> None:
        self._pool = _native.NativeRuntime(integer(num_workers, "num_workers", 1, _MAX_WORKERS))
        self._token: str | None = None

    @property
    def num_workers(self) -> int:
        """Number of worker threads."""
        return self._pool.num_workers

    def write_cache(
        self,
        sources: CacheSource | Sequence[CacheSource],
        path: str | Path,
        *,
        writer_config: WriterConfig = DEFAULT_WRITER_CONFIG,
    ) -> list[CacheWriteResult]:
        """Writes one immutable cache a source, at `path / source.name`.

        A cache appears whole or not at all. A target that exists, whatever it is, is an error of
        its source and stays as it is.

        Args:
            sources: One source or a list of them.
            path: Base folder, made if it is missing. Relative paths are resolved now; `~` is not
                expanded.
            writer_config: How to write.

        Returns:
            One result a source, in their order: a failing source is a `CacheWriteError`, and the
            others are written.

        Raises:
            ArgumentTypeError: If `path` or `writer_config` has the wrong type.
            StorageError: If the base folder can't be made or used.
            KeyboardInterrupt: On Ctrl-C, after unfinished caches have been removed.
        """
        return write(self._pool, sources, path, writer_config, create_or_reuse=False).results

    def cached_dataset(
        self, paths: Sequence[str | Path], *, reader_config: ReaderConfig
    ) -> CachedDataset:
        """Opens one or more caches as one dataset.

        Caches may have different fields: the table has all of them, null where a cache lacks one.

        Args:
            paths: Cache folders; their order gives the cache ids. Relative paths are resolved now;
                `~` is not expanded.
            reader_config: How to read and sample.

        Returns:
            The dataset, with every sample active and of weight 1.

        Raises:
            ArgumentTypeError: If `paths` is a single path, or a type is wrong.
            InvalidArgumentError: If there are no paths.
            CacheNotFoundError: If there is no cache at one of them.
            CacheDamagedError: If a cache is damaged.
            CacheVersionError: If a cache is too new.
            CacheFeatureError: If a cache needs something that this release doesn't know.
            SchemaConflictError: If a field has two types.
            StorageError: If the operating system refuses to read.
        """
        _check_reader_config(reader_config)
        folders = path_list(paths, "paths")
        _tell_about_ranks(stacklevel=2)
        return CachedDataset._open(self, folders, reader_config)  # noqa: SLF001 - made here

    def from_cache_sources(
        self,
        sources: CacheSource | Sequence[CacheSource],
        path: str | Path,
        *,
        reader_config: ReaderConfig,
        writer_config: WriterConfig = DEFAULT_WRITER_CONFIG,
    ) -> CacheSourcesDatasetResult:
        """Reuses or writes the cache of each source, and opens all that there are as one dataset.

        A cache at `path / source.name` is reused if its fingerprint is the source's, or the source
        has none; else `writer_config.on_mismatch` decides. While another process writes the same
        cache, this call waits for it.

        Args:
            sources: One source or a list of them.
            path: Base folder, as in `write_cache`.
            reader_config: How to read and sample.
            writer_config: How to write what is missing.

        Returns:
            `CacheSourcesDatasetSuccess` if at least one cache was loaded, else
            `CacheSourcesDatasetError`; both with one result a source.

        Raises:
            ArgumentTypeError: If an argument has the wrong type.
            StorageError: If the base folder can't be made or used.
            KeyboardInterrupt: On Ctrl-C, after unfinished caches have been removed.

        Warns:
            CacheReuseWarning: If a cache was reused though nothing proves that it is up to date.
        """
        _check_reader_config(reader_config)
        written = write(self._pool, sources, path, writer_config, create_or_reuse=True)
        results = written.results
        warn_unproven(written.outcomes, stacklevel=2)
        caches = [result.path for result in results if isinstance(result, CacheWriteSuccess)]
        if not caches:
            return CacheSourcesDatasetError(results, _no_cache(results))
        _tell_about_ranks(stacklevel=2)
        try:
            dataset = CachedDataset._open(self, caches, reader_config)  # noqa: SLF001 - made here
        except DatasetRTError as error:
            message = f"the caches could not be loaded: {error}"
            return CacheSourcesDatasetError(results, message, cause=error)
        return CacheSourcesDatasetSuccess(dataset, results)

    def __reduce__(self) -> tuple[Any, ...]:
        with _lock.own():
            if self._token is None:
                self._token = uuid.uuid4().hex
                _shared[self._token] = self
        return _shared_runtime, (self._token, self.num_workers)

    def __repr__(self) -> str:
        return f"DatasetRuntime(num_workers={self.num_workers})"


_shared = weakref.WeakValueDictionary()


def _shared_runtime(token: str, num_workers: int) -> DatasetRuntime:
    """Returns this process's copy of a pickled runtime."""
    with _lock.own():
        runtime = _shared.get(token)
        if runtime is None:
            runtime = DatasetRuntime(num_workers=num_workers)
            runtime._token = token  # noqa: SLF001 - one module
            _shared[token] = runtime
        return runtime


def _check_reader_config(config: object) -> None:
    if not isinstance(config, ReaderConfig):
        raise ArgumentTypeError(
            f"reader_config must be a ReaderConfig, found {describe(config)}",
            argument="reader_config",
        )


def _no_cache(results: Sequence[CacheWriteResult]) -> str:
    if not results:
        return "no cache could be loaded: no sources were given"
    first = next(result for result in results if isinstance(result, CacheWriteError))
    count = "the only source" if len(results) == 1 else f"all {len(results)} sources"
    return (
        f"no cache could be loaded: {count} failed, the first ({first.source_name!r}) because "
        f"{first.message}"
    )


def _tell_about_ranks(*, stacklevel: int) -> None:
    """Says once a process that ranks don't share the samples among themselves."""
    global _told_about_ranks  # noqa: PLW0603 - once a process
    size = os.environ.get("WORLD_SIZE", "").strip()
    if _told_about_ranks or not size.isdecimal() or int(size) <= 1:
        return
    _told_about_ranks = True
    warnings.warn(
        f"WORLD_SIZE is {size}, and every process reads all samples: DatasetRT does not divide "
        "them among ranks yet",
        DatasetRTWarning,
        stacklevel=stacklevel + 1,
    )
