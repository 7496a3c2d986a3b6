"""Lazy scans of caches: metadata and payloads as a Polars LazyFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dataset_rt import _native
from dataset_rt._arguments import flag, path_list
from dataset_rt.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dataset_rt._native import NativeScan

__all__ = ["scan_cache"]

CACHE_ID: Final = "cache_id"
SAMPLE_ID: Final = "sample_id"
PAYLOAD: Final = "payload"

BATCH_ROWS: Final = 65_536
"""Rows whose metadata is read at once."""
BATCH_BYTES: Final = 32 << 20
"""Bytes of payloads that are read at once, but for one payload that is longer."""

_TYPES: Final[dict[str, type[pl.DataType]]] = {
    "bool": pl.Boolean,
    "int64": pl.Int64,
    "float64": pl.Float64,
    "utf8": pl.String,
}


def scan_cache(paths: Sequence[str | Path], payload: bool = False) -> pl.LazyFrame:
    """Scans caches lazily: a query reads the columns and rows that it needs.

    Filters are applied to the metadata first, and of payloads only those of the rows that are left
    are read, each checked. Filters on the payload itself come last. From Polars 2.0 on slices from
    either end read their own rows alone, before that `head` does. Metadata is read 65,536 rows at a
    time, payloads 32 MiB at a time (or one, if it is longer); Polars holds a few such batches until
    they are used. Its in-memory engine holds whole columns instead, those of payloads too, where a
    filter on them follows.

    All samples are scanned, in the order of the paths and of the samples: no table of weights and
    no stream has a part in it, and there are no worker threads of ours.

    The caches are opened now and stay open as long as the frame is alive. A query runs on threads
    of Polars, which don't live on in a forked child: collect in the parent, or start processes by
    spawn. The frame does not pickle.

    Args:
        paths: Cache folders; their order gives the cache ids. Relative paths are resolved now; `~`
            is not expanded.
        payload: Whether there is a column of payloads.

    Returns:
        cache_id and sample_id (UInt64), the stored fields (Boolean, Int64, Float64 or String; null
        where a cache lacks the field), and payload (Binary) last, if it is wanted.

    Raises:
        ArgumentTypeError: If `paths` is a single path, or a type is wrong.
        InvalidArgumentError: If there are no paths, or payloads are wanted and a field has their
            column's name.
        CacheNotFoundError: If there is no cache at one of them.
        CacheDamagedError: If a cache is damaged. Damage that shows only when rows are read is
            raised by `collect`, before Polars 2.0 as a ComputeError with the same text.
        CacheVersionError: If a cache is too new.
        CacheFeatureError: If a cache needs something that this release doesn't know.
        SchemaConflictError: If a field has two types.
        StorageError: If the operating system refuses to read.

    Examples:
        >>> import polars as pl
        >>> from dataset_rt import scan_cache
        >>> frame = scan_cache(["caches/train"], payload=True)  # doctest: +SKIP
        >>> frame.filter(pl.col("label") == 3).head(10).collect()  # doctest: +SKIP
    """
    folders = path_list(paths, "paths")
    source = Source(folders, with_payload=flag(payload, "payload"))
    if hasattr(pl, "scan_external_reader"):
        from dataset_rt._external_reader import scan  # noqa: PLC0415 - Polars has it from 2.0

        return scan(source)
    return _register(source)


class Source:
    """Open caches, and the schema and batches of their rows."""

    def __init__(self, paths: Sequence[Path], *, with_payload: bool) -> None:
        self.paths = list(paths)
        self.native: NativeScan = _native.NativeScan([str(path) for path in paths])
        self.samples: list[int] = self.native.samples()
        fields = self.native.schema()
        self.fields = {name: place for place, (name, _, _) in enumerate(fields)}
        self.with_payload = with_payload
        self.stored: dict[str, type[pl.DataType]] = {CACHE_ID: pl.UInt64, SAMPLE_ID: pl.UInt64}
        self.stored.update((name, _TYPES[kind]) for name, kind, _ in fields)
        self.schema = dict(self.stored)
        if with_payload:
            if PAYLOAD in self.fields:
                raise InvalidArgumentError(
                    'payload must be False where a field is called "payload", as the column of '
                    "payloads would be; dataset_rt.expr.payload reads them under another name",
                    argument="payload",
                )
            self.schema[PAYLOAD] = pl.Binary

    def batches(
        self,
        cache_id: int,
        rows: range,
        columns: Sequence[str],
        filters: Sequence[pl.Expr] = (),
        row_index: tuple[str, int] | None = None,
        *,
        for_payloads: bool = False,
    ) -> Iterator[pl.DataFrame]:
        """Reads rows of one cache.

        Args:
            cache_id: Which cache.
            rows: Sample ids.
            columns: Columns to give, in this order, after that of `row_index`.
            filters: Conditions on columns of the scan; a row that fails one is left out.
            row_index: Name of a column that numbers the samples of the cache, and the number of
                the first one.
            for_payloads: Whether the payloads of a batch are to fit in one of theirs.
        """
        early = [item for item in filters if PAYLOAD not in self._roots(item)]
        late = [item for item in filters if PAYLOAD in self._roots(item)]
        needed = {*columns, *(name for item in filters for name in item.meta.root_names())}
        fields = [place for name, place in self.fields.items() if name in needed]
        wanted = [*([] if row_index is None else [row_index[0]]), *columns]
        next_start = rows.start
        while next_start < rows.stop:
            start, count = next_start, min(BATCH_ROWS, rows.stop - next_start)
            if for_payloads:
                count = self.native.fitting(cache_id, start, count, BATCH_BYTES)
            next_start += count
            frame = pl.DataFrame(self.native.metadata(cache_id, start, count, fields))
            if row_index is not None:
                name, first = row_index
                frame = frame.with_row_index(name, first + start)
            if early:
                frame = frame.filter(early)
            if self.with_payload and PAYLOAD in needed:
                for part in self._with_payloads(frame):
                    yield _select(part.filter(late) if late else part, wanted)
            else:
                yield _select(frame, wanted)

    def _roots(self, item: pl.Expr) -> list[str]:
        return item.meta.root_names() if self.with_payload else []

    def _with_payloads(self, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        done = 0
        for payloads in self.payloads(frame.select(CACHE_ID, SAMPLE_ID)):
            yield frame.slice(done, payloads.height).hstack(payloads)
            done += payloads.height

    def payloads(self, ids: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Reads the payloads of samples, in frames of one column and 32 MiB at most, or one row.

        Args:
            ids: Their cache_id and sample_id.
        """
        for table in self.native.payloads(ids, BATCH_BYTES):
            yield pl.DataFrame(table)


def _select(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    # Without columns the height is what counts, and a frame of none has it from Polars 2.0 on.
    return frame.select(columns) if columns else frame.drop(frame.columns)


def _conjuncts(predicate: pl.Expr) -> Iterator[pl.Expr]:
    """The parts of a condition that must all hold; the whole, where it is no such thing."""
    parts = predicate.meta.pop()
    if len(parts) == 2:  # noqa: PLR2004 - both sides of an operator
        for left, right in (parts, parts[::-1]):
            if (left & right).meta.eq(predicate):
                yield from _conjuncts(left)
                yield from _conjuncts(right)
                return
    yield predicate


def _register(source: Source) -> pl.LazyFrame:
    """The scan as one stream of all caches, which is handed the filters of a query."""
    from polars.io.plugins import register_io_source  # noqa: PLC0415 - unstable in Polars

    def read(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001 - a hint
    ) -> Iterator[pl.DataFrame]:
        columns = list(source.schema) if with_columns is None else with_columns
        filters = [] if predicate is None else list(_conjuncts(predicate))
        # Polars counts rows before it filters them.
        left = sum(source.samples) if n_rows is None else n_rows
        for cache_id, samples in enumerate(source.samples):
            rows = range(min(left, samples))
            left -= len(rows)
            yield from source.batches(cache_id, rows, columns, filters)

    options: dict[str, Any] = {"schema": source.schema, "is_pure": True}
    return register_io_source(read, **options)
