"""The compiled core of DatasetRT. Private: use the names of the `dataset_rt` package."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, final

import polars as pl
from typing_extensions import Self

__all__ = [
    "CachedSample",
    "NativeBatch",
    "NativeBatchIterator",
    "NativeBinary",
    "NativeBlockTable",
    "NativeDataset",
    "NativeIterator",
    "NativeOutcome",
    "NativePayloads",
    "NativeRuntime",
    "NativeScan",
    "NativeTable",
    "__version__",
    "build_profile",
    "check_source_name",
    "fold_source_name",
    "large_binary",
    "repair",
    "verify",
]
__version__: Final[str]
build_profile: Final[str]
"""`"release"` or `"debug"`: how the module was compiled."""

@final
class CachedSample:
    """One sample: payload bytes, its metadata, and its identity.

    Behaves like a named tuple of four fields (unpacking, indexing, comparison, `_asdict`, `_replace`), without being
    a tuple. The metadata dictionary is made when first asked for and then kept.
    """

    __match_args__: Final = ("data", "metadata", "cache_id", "sample_id")
    _fields: Final = ("data", "metadata", "cache_id", "sample_id")
    def __new__(cls, data: Any, metadata: Any, cache_id: Any, sample_id: Any) -> Self: ...
    @property
    def data(self) -> bytes: ...
    @property
    def metadata(self) -> dict[str, bool | int | float | str]: ...
    @property
    def cache_id(self) -> int: ...
    @property
    def sample_id(self) -> int: ...
    @classmethod
    def _make(cls, iterable: Any) -> Self: ...
    def _asdict(self) -> dict[str, Any]: ...
    def _replace(self, **changes: Any) -> Self: ...
    def count(self, value: Any, /) -> int: ...
    def index(self, value: Any, start: int = ..., stop: int = ..., /) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __contains__(self, value: Any, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class NativeTable:
    """An Arrow table on its way to Polars."""

    @property
    def num_rows(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class NativeBinary:
    """The payloads of a batch as one Arrow LargeBinary array."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class NativeBatch:
    """Several samples: one payload buffer with offsets, and the metadata as Arrow columns."""

    def __len__(self) -> int: ...
    @property
    def buffer(self) -> bytes:
        """All payloads, one after the other."""
    @property
    def offsets(self) -> bytes:
        """`len + 1` native-endian int64 values: payload i is `buffer[offsets[i]:offsets[i + 1]]`."""
    def payload(self, index: int) -> bytes: ...
    def payloads(self) -> list[bytes]: ...
    def binary(self) -> NativeBinary: ...
    def sample(self, index: int) -> CachedSample: ...
    def cache_ids(self) -> NativeTable:
        """One UInt64 column named cache_id."""
    def sample_ids(self) -> NativeTable:
        """One UInt64 column named sample_id."""
    def gathered(self) -> tuple[NativeBlockTable, int] | None:
        """The table that has the metadata, and the first sample's row; None where nobody gathered it."""
    def metadata(self) -> NativeTable:
        """The stored fields of all caches, in the table's order, null where a cache lacks one."""

@final
class NativeBlockTable:
    """The metadata of several batches that were read together."""

    def table(self) -> NativeTable: ...
    @property
    def frame(self) -> pl.DataFrame | None:
        """What `keep` was given first."""
    def keep(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Keeps the table as a frame for all batches, and returns the one that is kept."""

@final
class NativeIterator:
    """One window of samples. Safe to share between threads; refuses pickling."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> CachedSample: ...
    def __length_hint__(self) -> int: ...
    @property
    def remaining(self) -> int: ...

@final
class NativeBatchIterator:
    """One window of batches. Safe to share between threads; refuses pickling."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> NativeBatch: ...
    def __length_hint__(self) -> int: ...

@final
class NativeDataset:
    """Open caches, their active table and the sampling stream."""

    @property
    def cache_paths(self) -> list[Path]: ...
    def cache_info(self) -> list[dict[str, Any]]:
        """Per cache: path, name, fingerprint, created, writer, samples, payload_bytes, stored_bytes, codec, shards, identity, fields."""
    def schema(self) -> list[tuple[str, str, bool]]:
        """Merged fields in table order: name, type ("bool", "int64", "float64", "utf8"), may be null."""
    def __len__(self) -> int: ...
    @property
    def active_rows(self) -> int: ...
    @property
    def epoch_len(self) -> int | None: ...
    def set_epoch_len(self, epoch_len: int) -> None: ...
    def iterate(self) -> NativeIterator: ...
    def iterate_batches(self, batch_size: int, drop_last: bool) -> NativeBatchIterator: ...
    @property
    def overlay(self) -> Any:
        """What the last `update` was given to keep; None before."""

    def update(self, table: object, stream: int, overlay: object) -> tuple[int, int, int]:
        """Takes columns cache_id, sample_id, weight through `__arrow_c_stream__`.

        Returns how many distinct samples are active, how many rows repeat one, and how many samples are left out.
        """
    def export(self) -> NativeTable:
        """The active table: cache_id, sample_id, stored fields, weight."""
    def row(self, index: int) -> CachedSample:
        """Row of the active table, `0 <= index < active_rows`."""
    def get_item(self, cache_id: int, sample_id: int) -> CachedSample: ...
    def take(self, rows: object) -> NativeBatch:
        """Rows of the active table as one batch; `rows` is bytes of native-endian int64 values, each `0 <= row < active_rows`."""
    def cursor(self) -> tuple[int, int | None, int]:
        """Next position of the stream, epoch length if one was set, stream word."""
    def set_cursor(self, next_position: int, epoch_len: int | None, stream: int) -> None: ...
    def mode(self) -> str:
        """Sampling mode: "ordered", "weighted", "permutation" or "weighted_order"."""

@final
class NativeOutcome:
    """What became of one source."""

    @property
    def status(self) -> Literal["written", "reused", "rebuilt", "error"]:
        """One of "written", "reused", "rebuilt", "error"."""
    @property
    def path(self) -> Path | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def created(self) -> str | None:
        """Date of a reused cache."""
    @property
    def unproven(self) -> bool:
        """Reused by name alone, or in spite of a missing or different fingerprint."""
    @property
    def error(self) -> BaseException | None: ...

@final
class NativeRuntime:
    """A fixed pool of worker threads."""

    def __new__(cls, num_workers: int) -> Self: ...
    @property
    def num_workers(self) -> int: ...
    def open(self, paths: list[str], options: Mapping[str, Any]) -> NativeDataset:
        """Options: seed, prefetch_size, shuffle, replacement, validate_cache, verify_payloads, use_mmap, follow_links."""
    def write(
        self,
        jobs: list[tuple[str, str | None, object]],
        base: str,
        options: Mapping[str, Any],
        *,
        create_or_reuse: bool,
        on_progress: Callable[[dict[str, Any]], None] | None,
        on_wait: Callable[[str, str], None] | None,
    ) -> list[NativeOutcome]:
        """Writes each (name, fingerprint, source) under `base`.

        Options: prefetch_size, max_shard_bytes, codec ("none" or "lz4"), validate_cache, on_mismatch, profile (path or
        None). `on_progress` gets a snapshot about ten times a second: source (index), name, samples, payload_bytes,
        stored_bytes (committed, of all sources of the call), sources_done, sources_total, elapsed (seconds since the call began). `on_wait` gets the name and what is waited for, once.
        An exception of a source that is no `Exception` (KeyboardInterrupt) is raised after the clean-up.
        """

@final
class NativeScan:
    """Caches that scans read, without worker threads."""

    def __new__(cls, paths: list[str]) -> Self: ...
    def schema(self) -> list[tuple[str, str, bool]]:
        """Fields of all caches: name, type ("bool", "int64", "float64", "utf8"), nullable."""
    def samples(self) -> list[int]:
        """Samples of each cache."""
    def metadata(self, cache_id: int, first: int, count: int, fields: list[int]) -> NativeTable:
        """cache_id, sample_id and the fields at these places of `schema`, of samples that follow each other."""
    def fitting(self, cache_id: int, first: int, count: int, max_bytes: int) -> int:
        """How many of the samples from `first` on have payloads of at most `max_bytes` together; at least one."""
    def payloads(self, ids: object, max_bytes: int) -> NativePayloads:
        """The payloads of samples, whose cache_id and sample_id come through `__arrow_c_stream__`."""

@final
class NativePayloads:
    """Payloads in tables of one column `payload`, each of at most `max_bytes` bytes or of one row."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> NativeTable: ...

def large_binary(buffer: bytes, offsets: bytes) -> NativeBinary:
    """Payloads of a batch that went through a pickle: `NativeBatch.buffer` and `NativeBatch.offsets`."""

def check_source_name(name: str) -> None:
    """Raises SourceNameError unless `name` may name a cache."""

def fold_source_name(name: str) -> str:
    """Two names with one fold may be one folder on some file system."""

def verify(path: Path, follow_links: bool) -> dict[str, Any]:
    """Every byte of a cache looked at: path, samples (or None), readable, problems, omitted, repairable.

    A problem: path, code, message, offset (or None), lost (list of (first, end) of samples).
    """

def repair(path: Path, output: Path) -> dict[str, Any]:
    """A new cache with index and manifest made again.

    path, samples (None: nothing was written), problems, omitted, remade (names of files), lost (texts), proven.
    """
