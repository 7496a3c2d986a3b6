"""Open caches as one dataset."""

from __future__ import annotations

import html
import logging
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from dataset_rt._arguments import MAX_I64, MAX_U32, describe, flag, integer
from dataset_rt._locks import ForkLock
from dataset_rt.active_table import (
    changed_columns,
    identity_and_weight,
    in_given_rows,
    lay_over,
    normalise,
    pack,
    unpack,
    without_zero_weights,
)
from dataset_rt.batch import BatchIterator
from dataset_rt.errors import (
    ArgumentTypeError,
    CacheMismatchError,
    InvalidArgumentError,
    MetadataTableError,
    UnknownSampleError,
)
from dataset_rt.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from typing_extensions import Self

    from dataset_rt._native import CachedSample, NativeDataset
    from dataset_rt.batch import SampleBatch
    from dataset_rt.config import ReaderConfig
    from dataset_rt.runtime import DatasetRuntime
    from dataset_rt.torch import SizedTorchIterableDataset

__all__ = ["CachedDataset"]

_logger = logging.getLogger("dataset_rt")

_Cursor = tuple[int, "int | None", int]


class CachedDataset:
    """One or more immutable caches, the table of their active samples, and a stream of draws.

    Made by `DatasetRuntime.cached_dataset` and `DatasetRuntime.from_cache_sources`.

    `for sample in dataset` takes the next window of the stream: `len(dataset)` samples, drawn by
    weight with `ReaderConfig.shuffle`, else in table order. The window and the table are those of
    the moment when `iter(dataset)` is called, whatever happens to the dataset later.

    It pickles as its paths and its state, an edited table included, and reads on from the same
    position where it arrives. Copies are independent of each other.
    """

    _runtime: DatasetRuntime
    _native: NativeDataset
    _paths: tuple[Path, ...]
    _config: ReaderConfig
    _lock: ForkLock

    def __init__(self, *_args: object, **_options: object) -> None:
        raise ArgumentTypeError(
            "a CachedDataset needs a runtime: use DatasetRuntime.cached_dataset(paths, "
            "reader_config=...) or DatasetRuntime.from_cache_sources(...)"
        )

    @classmethod
    def _open(cls, runtime: DatasetRuntime, paths: Sequence[Path], config: ReaderConfig) -> Self:
        self = object.__new__(cls)
        self._runtime = runtime
        self._paths = tuple(paths)
        self._config = config
        self._lock = ForkLock()
        self._native = runtime._pool.open(  # noqa: SLF001 - the pool is the package's
            [str(path) for path in paths],
            config._native_options(),  # noqa: SLF001 - same
        )
        return self

    @property
    def cache_paths(self) -> list[Path]:
        """Folders of the caches: `cache_paths[cache_id]` is the cache of that id."""
        return list(self._paths)

    @property
    def reader_config(self) -> ReaderConfig:
        """The configuration that the dataset was opened with."""
        return self._config

    @property
    def rows(self) -> Rows:
        """The active table as a sequence of samples, for access by row number."""
        return Rows(self)

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[CachedSample]:
        """Takes the next window and returns its iterator.

        The window is taken now and whole, also if the iterator is dropped half way. A sample that
        can't be read raises, and the next call of `next` gives the following one.
        """
        return self._native.iterate()

    def iter_batches(self, n: int, drop_last: bool = False) -> Iterator[SampleBatch]:
        """Takes the next window, like `iter(dataset)`, and returns it in batches.

        Args:
            n: Samples a batch, at least 1. Batches don't reach over the end of the window.
            drop_last: Whether a last batch of fewer samples is left out. Its samples count as
                taken.

        Returns:
            An iterator of `SampleBatch`.

        Raises:
            InvalidArgumentError: If `n` is below 1.
            ArgumentTypeError: If an argument has another type.
        """
        size = integer(n, "n", 1, MAX_U32)
        return BatchIterator(self._native.iterate_batches(size, flag(drop_last, "drop_last")))

    def get_item(self, cache_id: int, sample_id: int) -> CachedSample:
        """Returns one sample by its identity, also when it is not active.

        Args:
            cache_id: Position in `cache_paths`.
            sample_id: Row in that cache, from 0.

        Raises:
            UnknownSampleError: If there is no such sample.
            ArgumentTypeError: If an id is no integer.
            CacheDamagedError: If the sample can't be read.
        """
        if type(cache_id) is int and type(sample_id) is int:
            # What programs pass nearly always, without the manners of the other kinds.
            try:
                return self._native.get_item(cache_id, sample_id)
            except OverflowError:
                pass
        try:
            cache = integer(cache_id, "cache_id", 0, MAX_I64)
            sample = integer(sample_id, "sample_id", 0, MAX_I64)
        except InvalidArgumentError as error:
            raise UnknownSampleError(
                f"there is no sample ({cache_id}, {sample_id}): {error}",
                cache_id=int(cache_id),
                sample_id=int(sample_id),
            ) from None
        return self._native.get_item(cache, sample)

    def set_epoch_len(self, epoch_len: int) -> None:
        """Sets how many samples each future iterator emits; it stays through updates.

        Iterators that exist keep their window. The stream goes on where it is.

        Args:
            epoch_len: At least 1, also beyond the number of active rows.

        Raises:
            InvalidArgumentError: If it is below 1.
            ArgumentTypeError: If it is no integer.
        """
        self._native.set_epoch_len(integer(epoch_len, "epoch_len", 1, MAX_I64))

    def get_metadata(self) -> pl.DataFrame:
        """Returns a copy of the active table, one row an active row.

        Returns:
            cache_id and sample_id (UInt64), the stored fields in the order of their writer
            (Boolean, Int64, Float64 or String; null where a cache lacks the field), weight
            (Float64, 1.0 at first), then the further columns of the last `update_metadata`.
        """
        with self._lock.own():
            return self._table()

    @property
    def _overlay(self) -> pl.DataFrame | None:
        """The table of the last update, in our form; None while unedited."""
        overlay: pl.DataFrame | None = self._native.overlay
        return overlay

    def _table(self) -> pl.DataFrame:
        overlay = self._overlay
        fields = [name for name, _, _ in self._native.schema()]
        if overlay is not None and set(overlay.columns).issuperset(fields):
            return overlay.clone()
        exported = pl.DataFrame(self._native.export())
        return exported if overlay is None else lay_over(exported, overlay)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Gives the active table, as `get_metadata` would, to whatever reads Arrow streams.

        Among them are `pyarrow.table(dataset)`, `polars.DataFrame(dataset)`,
        `pandas.DataFrame.from_arrow(dataset)` and DuckDB's `FROM dataset`.

        Args:
            requested_schema: What the consumer would like; it gets the table's own types.

        Returns:
            A capsule of the Arrow C stream interface.
        """
        with self._lock.own():
            if self._overlay is None:
                return self._native.export().__arrow_c_stream__(requested_schema)
            return self._table().__arrow_c_stream__(requested_schema)

    def samples_metadata(self) -> pl.DataFrame:
        """Returns what `get_metadata` returns; the older name of it."""
        return self.get_metadata()

    def update_metadata(
        self,
        metadata: object,
        *,
        stream: int = 0,
        zero_weights: Literal["error", "drop"] = "error",
    ) -> None:
        """Replaces the active table. Future iterators use it, from position 0 of the stream.

        Rows may be left out, repeated and put in another order. cache_id and sample_id say which
        sample a row is, weight how often it is drawn; edited stored fields are kept and returned
        by `get_metadata`, and samples go on showing the stored values. Further columns are kept as
        they are. The files are not touched, and a length set by `set_epoch_len` stays.

        The numbers of kept, repeated and left out samples are logged (INFO).

        Args:
            metadata: A Polars DataFrame or LazyFrame, a pandas DataFrame, or anything with
                `__arrow_c_stream__`, with cache_id, sample_id (integers of up to 64 bits), every
                stored field in its type, and weight (an integer or float of up to 64 bits, finite
                and above 0). For stored fields narrower integers do for Int64, Categorical and
                Enum for String. Columns may stand in any order.
            stream: Which of 2^32 independent streams of random numbers follows. A loop that
                re-weights each epoch passes the number of the epoch: without it every update
                starts the same numbers again.
            zero_weights: What becomes of rows of weight 0. "error" refuses the table, "drop"
                leaves the rows out; one row must stay.

        Raises:
            InvalidArgumentError: If `stream` is out of range or `zero_weights` is unknown.
            MetadataTableError: If a column, a row or a value is missing or not allowed, or a row
                names a sample that is not in the caches.
            MetadataTableTypeError: If the table or a column has the wrong type.

        After an error everything is as it was.
        """
        self._update(metadata, stream, zero_weights, stacklevel=3)

    def set_samples_metadata(self, metadata: object) -> None:
        """Does what `update_metadata` does; the older name of it."""
        self._update(metadata, 0, "error", stacklevel=3)

    def _update(
        self, metadata: object, stream: int, zero_weights: object, *, stacklevel: int
    ) -> None:
        word = integer(stream, "stream", 0, MAX_U32)
        if zero_weights not in ("error", "drop"):
            raise InvalidArgumentError(
                f"zero_weights must be 'error' or 'drop', found {describe(zero_weights)}",
                argument="zero_weights",
            )
        given = normalise(metadata, self._native.schema(), stacklevel=stacklevel)
        frame = without_zero_weights(given) if zero_weights == "drop" else given
        try:
            with self._lock.own():
                kept, repeated, dropped = self._native.update(
                    identity_and_weight(frame), word, frame
                )
        except MetadataTableError as error:
            raise in_given_rows(error, given, frame) from None
        _logger.info(
            "active table: %d rows, %d samples kept, %d rows repeat one, %d samples left out",
            frame.height,
            kept,
            repeated,
            dropped,
        )

    def to_torch_iterable_dataset(self) -> SizedTorchIterableDataset:
        """Returns a live view of the dataset for `torch.utils.data.DataLoader(..., num_workers=0)`.

        Returns:
            A `torch.utils.data.IterableDataset` with a length: each `iter` of it takes the next
            window.

        Raises:
            ImportError: If PyTorch is not installed.
        """
        from dataset_rt.torch import SizedTorchIterableDataset  # noqa: PLC0415 - torch is optional

        return SizedTorchIterableDataset(self)

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock.own():
            cursor = self._native.cursor()
            packed = None
            overlay = self._overlay
            if overlay is not None:
                exported = pl.DataFrame(self._native.export())
                table = lay_over(exported, overlay)
                packed = pack(changed_columns(table, exported))
        identities = [info["identity"] for info in self._native.cache_info()]
        return _restore, (self._runtime, self._paths, identities, self._config, cursor, packed)

    def __repr__(self) -> str:
        caches = len(self._paths)
        length = self._native.epoch_len
        return (
            f"<CachedDataset: {caches} {'cache' if caches == 1 else 'caches'}, "
            f"{self._native.active_rows:,} active rows, {len(self):,} samples an epoch"
            f"{'' if length is None else ' (set)'}, {self._native.mode()}, "
            f"seed {self._config.seed}>"
        )

    def _repr_html_(self) -> str:
        head = ("cache_id", "name", "samples", "payload MB", "created", "path")
        lines = [
            (
                cache_id,
                info["name"],
                f"{info['samples']:,}",
                f"{info['payload_bytes'] / 1e6:,.1f}",
                info["created"],
                path,
            )
            for cache_id, (info, path) in enumerate(
                zip(self._native.cache_info(), self._paths, strict=True)
            )
        ]
        limit = 20
        more = len(lines) - limit
        cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(str(value))}</td>' for value in line)}</tr>"
            for line in lines[:limit]
        )
        rest = f"<p>and {more:,} more caches</p>" if more > 0 else ""
        fields = ", ".join(f"{name}: {kind}" for name, kind, _ in self._native.schema()) or "none"
        return (
            f"<p>{html.escape(repr(self)[1:-1])}<br>fields: {html.escape(fields)}</p>"
            f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{rest}"
        )


def _restore(
    runtime: DatasetRuntime,
    paths: tuple[Path, ...],
    identities: list[Any],
    config: ReaderConfig,
    cursor: _Cursor,
    packed: bytes | None,
) -> CachedDataset:
    """Opens a pickled dataset where it arrived."""
    dataset = CachedDataset._open(runtime, paths, config)  # noqa: SLF001 - one module
    native = dataset._native  # noqa: SLF001 - one module
    for path, identity, info in zip(paths, identities, native.cache_info(), strict=True):
        if info["identity"] != identity:
            raise CacheMismatchError(
                f"the cache at {path} has other content than when the dataset was pickled "
                f"(identity {info['identity']}, expected {identity})",
                path=path,
            )
    next_position, epoch_len, stream = cursor
    if packed is not None:
        overlay = unpack(packed)
        native.update(identity_and_weight(overlay), stream, overlay)
    native.set_cursor(next_position, epoch_len, stream)
    return dataset
