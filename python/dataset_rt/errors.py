"""Every error and warning that DatasetRT raises on purpose.

`DatasetRTError` is the base; each subclass is also the builtin exception that fits, so that code
which knows nothing of DatasetRT can catch it. The parts of a message are attributes beside it: an
attribute is None when it doesn't apply. All of them pickle and copy.
"""

from __future__ import annotations

import errno as _errno
import os
from pathlib import Path
from typing import Any, ClassVar

__all__ = [
    "ArgumentTypeError",
    "CacheDamagedError",
    "CacheExistsError",
    "CacheFeatureError",
    "CacheMismatchError",
    "CacheNotFoundError",
    "CacheReuseWarning",
    "CacheVersionError",
    "DatasetRTError",
    "DatasetRTWarning",
    "EmptySourceError",
    "InternalError",
    "InvalidArgumentError",
    "MetadataTableError",
    "MetadataTableTypeError",
    "PolarsVersionError",
    "SampleIndexError",
    "SampleTypeError",
    "SampleValueError",
    "SchemaConflictError",
    "SourceNameError",
    "StorageError",
    "UnknownSampleError",
    "WorkerProcessError",
]


class DatasetRTError(Exception):
    """Base of all errors of DatasetRT.

    Args:
        message: What was found, what is allowed, and where.
        **parts: The attributes of the class, by name.

    Raises:
        TypeError: If a part is not an attribute of the class.
    """

    _parts: ClassVar[tuple[str, ...]] = ()

    message: str
    """The whole message, also given by `str`."""

    def __init__(self, message: str = "", **parts: Any) -> None:  # noqa: ANN401 - typed a class
        unknown = sorted(parts.keys() - set(self._parts))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no attribute {unknown[0]!r}")
        if parts.get("path") is not None:
            parts["path"] = Path(parts["path"])
        super().__init__(*self._builtin_arguments(message, parts))
        self.message = message
        for name in self._parts:
            setattr(self, name, parts.get(name))

    def _builtin_arguments(self, message: str, _parts: dict[str, Any]) -> tuple[Any, ...]:
        """What the builtin class beside us is given."""
        return (message,)

    def __str__(self) -> str:
        # KeyError would show the quoted message, OSError a text of its own.
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {name: getattr(self, name) for name in self._parts}
        # Notes and whatever a user attached travel in the state.
        return _rebuild, (type(self), self.message, parts), self.__dict__.copy()


def _rebuild(cls: type[DatasetRTError], message: str, parts: dict[str, Any]) -> DatasetRTError:
    return cls(message, **parts)


class _DiskError(DatasetRTError, OSError):
    """An error about a path: `errno` and `filename` are those of OSError."""

    _default_errno: ClassVar[int] = _errno.EIO
    _parts: ClassVar[tuple[str, ...]] = ("path",)

    path: Path | None
    """The file or folder the error is about."""

    def _builtin_arguments(self, message: str, parts: dict[str, Any]) -> tuple[Any, ...]:
        path = parts.get("path")
        return self._default_errno, message, None if path is None else os.fspath(path)


class InvalidArgumentError(DatasetRTError, ValueError):
    """An argument has the right type and a value that is not allowed."""

    _parts = ("argument",)
    argument: str | None
    """Name of the argument."""


class ArgumentTypeError(DatasetRTError, TypeError):
    """An argument has a type that is not allowed."""

    _parts = ("argument",)
    argument: str | None
    """Name of the argument."""


class PolarsVersionError(DatasetRTError, ImportError):
    """The installed Polars refuses native expressions; everything else works."""

    _parts = ("installed", "needed")
    installed: str | None
    """Version of the installed Polars."""
    needed: str | None
    """Versions that take the expressions."""


class SourceNameError(DatasetRTError, ValueError):
    """A source's name can't name a cache, or another source of the call has it."""

    _parts = ("name", "reason")
    name: str | None
    """The name as the source gave it."""
    reason: str | None
    """Which rule it breaks."""


class EmptySourceError(DatasetRTError, ValueError):
    """A source yielded no samples."""

    _parts = ("source",)
    source: str | None
    """Name of the source."""


class SampleValueError(DatasetRTError, ValueError):
    """A sample of a source holds a value that can't be stored."""

    _parts = ("source", "sample", "field", "expected", "found")
    source: str | None
    """Name of the source."""
    sample: int | None
    """Number of the sample in its source, from 0."""
    field: str | None
    """Metadata field, or "data" for the payload."""
    expected: str | None
    """What is allowed."""
    found: str | None
    """What the sample holds."""


class SampleTypeError(DatasetRTError, TypeError):
    """A sample of a source, or one of its values, has a type that can't be stored."""

    _parts = ("source", "sample", "field", "expected", "found")
    source: str | None
    """Name of the source."""
    sample: int | None
    """Number of the sample in its source, from 0."""
    field: str | None
    """Metadata field, or "data" for the payload."""
    expected: str | None
    """What is allowed."""
    found: str | None
    """What the sample holds."""


class CacheExistsError(_DiskError, FileExistsError):
    """Something stands where a new cache was to be published."""

    _default_errno = _errno.EEXIST


class CacheMismatchError(DatasetRTError, ValueError):
    """An existing cache is not what its source describes now, and the policy says error."""

    _parts = ("path",)
    path: Path | None
    """Folder of the cache."""


class CacheNotFoundError(_DiskError, FileNotFoundError):
    """There is no cache at the path."""

    _default_errno = _errno.ENOENT


class CacheDamagedError(_DiskError):
    """Bytes of a cache are not what was written."""

    _parts = ("path", "code", "offset", "cache_id", "sample_id", "detail")
    code: str | None
    """Error code of the format's specification, such as "record_damaged"."""
    offset: int | None
    """Byte offset in the file."""
    cache_id: int | None
    """Position of the cache in its dataset."""
    sample_id: int | None
    """Row of the sample in its cache."""
    detail: str | None
    """What was found and what should be there."""


class CacheVersionError(DatasetRTError, ValueError):
    """A cache was written in a version of the format that this release can't read."""

    _parts = ("path", "found", "supported")
    path: Path | None
    """Folder of the cache."""
    found: int | None
    """Version of the cache."""
    supported: int | None
    """Newest version that this release reads."""


class CacheFeatureError(DatasetRTError, ValueError):
    """A cache requires features of the format that this release doesn't know."""

    _parts = ("path", "features")
    path: Path | None
    """Folder of the cache."""
    features: list[str] | None
    """The unknown features."""


class SchemaConflictError(DatasetRTError, ValueError):
    """Two caches of one dataset have a field of one name and two types."""

    _parts = ("field", "first", "second")
    field: str | None
    """Name of the field."""
    first: str | None
    """The first cache and its type."""
    second: str | None
    """The other cache and its type."""


class StorageError(_DiskError):
    """The operating system refused to read or write. `errno` and `filename` say what and where."""

    _parts = ("path", "errno", "filename")

    def _builtin_arguments(self, message: str, parts: dict[str, Any]) -> tuple[Any, ...]:
        if parts.get("errno") is None:
            parts["errno"] = self._default_errno
        if parts.get("filename") is None:
            parts["filename"] = super()._builtin_arguments(message, parts)[2]
        return parts["errno"], message, parts["filename"]


class MetadataTableError(DatasetRTError, ValueError):
    """A table given to `update_metadata` holds a value that is not allowed, or lacks a column."""

    _parts = ("column", "row")
    column: str | None
    """Name of the column."""
    row: int | None
    """First row concerned, from 0."""


class MetadataTableTypeError(DatasetRTError, TypeError):
    """A table given to `update_metadata`, or one of its columns, has a type that is not allowed."""

    _parts = ("column", "row")
    column: str | None
    """Name of the column."""
    row: int | None
    """First row concerned, from 0."""


class UnknownSampleError(DatasetRTError, KeyError):
    """No loaded cache has the sample."""

    _parts = ("cache_id", "sample_id")
    cache_id: int | None
    """Position of the cache that was asked for."""
    sample_id: int | None
    """Row that was asked for."""


class SampleIndexError(DatasetRTError, IndexError):
    """A row index lies outside the active table, or a mask has another length."""

    _parts = ("index", "length")
    index: int | None
    """What was asked for."""
    length: int | None
    """Number of active rows."""


class WorkerProcessError(DatasetRTError, RuntimeError):
    """The torch view was iterated in a worker process of a DataLoader."""


class InternalError(DatasetRTError, RuntimeError):
    """Something that can't happen happened: a bug of DatasetRT. Please report it."""


class DatasetRTWarning(UserWarning):
    """Base of all warnings of DatasetRT."""


class CacheReuseWarning(DatasetRTWarning):
    """A cache was reused though nothing proves that it still is what its source yields."""
