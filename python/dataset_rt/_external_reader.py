"""The reader that Polars drives from 2.0 on: one file reader a cache, which reads metadata.

It knows of slices and row numbers. It takes no filters: Polars 2.1 panics when a reader that does
meets `sort(...).head(n)`, whose filter changes under way, and without payloads there is nothing to
spare by filtering earlier than Polars does. Payloads are a column that is computed from the ids,
row by row: Polars moves filters on other columns and slices before it, and leaves it out where it
isn't wanted.

Polars calls the interface unstable, and gives its methods more arguments over time: those that
nothing here depends on are taken and left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import polars as pl
from polars.io.external_reader import FileReader, FileReaderBuilder, ReaderCapabilities

from dataset_rt.errors import DatasetRTError
from dataset_rt.scan import CACHE_ID, PAYLOAD, SAMPLE_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataset_rt.scan import Source

__all__ = ["scan"]


def scan(source: Source) -> pl.LazyFrame:
    """Makes the lazy frame of a source."""
    caches = [str(cache_id) for cache_id in range(len(source.samples))]
    frame = pl.scan_external_reader(CacheScan(source), sources=caches, schema=source.stored)
    return frame.with_columns(_payloads(source)) if source.with_payload else frame


def _payloads(source: Source) -> pl.Expr:
    """The column of payloads. A Python function: native expressions can't raise our errors."""

    def read(ids: pl.Series) -> pl.Series:
        try:
            parts = [part.to_series() for part in source.payloads(ids.struct.unnest())]
        except DatasetRTError as error:
            raise _whole(error) from error
        return pl.concat(parts) if parts else pl.Series(PAYLOAD, dtype=pl.Binary)

    ids = pl.struct(CACHE_ID, SAMPLE_ID)
    payloads = ids.map_batches(read, return_dtype=pl.Binary, is_elementwise=True)
    return payloads.alias(PAYLOAD)


def _whole(error: DatasetRTError) -> DatasetRTError:
    """The error as one whose class knows its attributes.

    Polars raises another error instead, of the same class, which it makes of the message alone.
    """
    _, (kind, message, parts), _ = cast("Any", error.__reduce__())

    def init(self: DatasetRTError, message: str = "") -> None:
        kind.__init__(self, message, **parts)

    def reduce(self: DatasetRTError) -> Any:  # noqa: ANN401 - as of pickle
        rebuild, (_, message, parts), state = kind.__reduce__(self)
        return rebuild, (kind, message, parts), state

    methods = {"__init__": init, "__reduce__": reduce, "__module__": kind.__module__}
    whole: DatasetRTError = type(kind.__name__, (kind,), methods)(message)
    return whole


class CacheScan(FileReaderBuilder):
    """Makes the readers of the caches of a source, which Polars names by their cache ids."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def reader_capabilities(self) -> ReaderCapabilities:
        return ReaderCapabilities(row_index=True, pre_slice=True, negative_pre_slice=True)

    def build_file_reader(self, source: str | bytes, *_more: Any) -> CacheReader:  # noqa: ANN401
        return CacheReader(self._source, int(source))

    def explain_properties(self) -> dict[str, str]:
        return {"paths": ", ".join(str(path) for path in self._source.paths)}


class CacheReader(FileReader):
    """Reads one cache."""

    def __init__(self, source: Source, cache_id: int) -> None:
        self._source = source
        self._cache_id = cache_id

    def schema(self) -> dict[str, type[pl.DataType]]:
        return self._source.stored

    def n_rows_in_file(self, limit: int | None = None) -> int:
        samples = self._source.samples[self._cache_id]
        return samples if limit is None else min(limit, samples)

    def collect_batches(
        self,
        *,
        columns: Sequence[str] = (),
        row_index: tuple[str, int] | None = None,
        pre_slice: tuple[int, int] | None = None,
        **_more: Any,  # noqa: ANN401 - hints
    ) -> Iterator[pl.DataFrame]:
        rows = range(self._source.samples[self._cache_id])
        if pre_slice is not None:
            offset, length = pre_slice
            start = offset if offset >= 0 else max(0, len(rows) + offset)
            # Before the first row a slice loses what lies there.
            lost = 0 if offset >= 0 else max(0, -(len(rows) + offset))
            rows = rows[start : start + max(0, length - lost)]
        return self._source.batches(
            self._cache_id,
            rows,
            columns,
            row_index=row_index,
            # Both ids are asked for where payloads are.
            for_payloads=self._source.with_payload and {CACHE_ID, SAMPLE_ID} <= set(columns),
        )
