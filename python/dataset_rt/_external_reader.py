"""The reader that Polars drives from 2.0 on: one file reader a cache, for scans without payloads.

It knows of slices and row numbers. It takes no filters: Polars 2.1 panics when a reader that does
meets `sort(...).head(n)`, whose filter changes under way. Without payloads there is nothing to
spare by filtering earlier than Polars does.

Polars calls the interface unstable, and gives its methods more arguments over time: those that
nothing here depends on are taken and left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.external_reader import FileReader, FileReaderBuilder, ReaderCapabilities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataset_rt.scan import Source

__all__ = ["scan"]


def scan(source: Source) -> pl.LazyFrame:
    """Makes the lazy frame of a source."""
    caches = [str(cache_id) for cache_id in range(len(source.samples))]
    return pl.scan_external_reader(CacheScan(source), sources=caches, schema=source.schema)


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
        return self._source.schema

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
        return self._source.batches(self._cache_id, rows, columns, row_index=row_index)
