"""Parquet through pyarrow (block by block) and through Polars (the whole file in memory)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from .peer import MappingPeer, Shuffle, UnsupportedError
from .tables import SCHEMA, column_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

ROW_GROUP_BYTES = 8 << 20


class _Parquet(MappingPeer):
    compression: ClassVar[Literal["NONE", "ZSTD"]] = "NONE"

    @property
    def _path(self) -> str:
        return str(self.folder / "data.parquet")

    def write(self) -> None:
        rows = self.rows_at_once(10_000, ROW_GROUP_BYTES)
        with pq.ParquetWriter(
            self._path, SCHEMA, compression=self.compression, use_dictionary=["split"]
        ) as writer:
            for piece in column_lists(self.workload, rows):
                writer.write_table(pa.table(piece, schema=SCHEMA), row_group_size=rows)


class PyArrow(_Parquet):
    """Row groups in turn, each as rows; shuffled: row groups permuted, and the rows of each."""

    shuffle: ClassVar[Shuffle] = "blocks"

    def open(self) -> None:
        self.file = pq.ParquetFile(self._path, memory_map=True)
        self.rows = self.file.metadata.row_group(0).num_rows

    def _group(self, number: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.file.read_row_group(number).to_pylist()
        return rows

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return chain.from_iterable(map(self._group, range(self.file.num_row_groups)))

    def shuffled(self, seed: int) -> Iterator[Mapping[str, Any]]:
        random = np.random.default_rng(seed)
        for number in random.permutation(self.file.num_row_groups).tolist():
            rows = self._group(number)
            for place in random.permutation(len(rows)).tolist():
                yield rows[place]

    def weighted(self, seed: int) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002
        raise UnsupportedError("no access by row")

    def one(self, row: int) -> Mapping[str, Any]:
        group, place = divmod(row, self.rows)
        [found] = self.file.read_row_group(group).slice(place, 1).to_pylist()
        record: Mapping[str, Any] = found
        return record


class PyArrowZstd(PyArrow):
    """The same with compressed pages."""

    compression: ClassVar[Literal["NONE", "ZSTD"]] = "ZSTD"


class Polars(_Parquet):
    """The file read into one frame when it is opened; rows gathered in pieces."""

    def open(self) -> None:
        self.frame = pl.read_parquet(self._path)

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return self.frame.iter_rows(named=True)

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[Mapping[str, Any]]:
        count = self.rows_at_once(4_096)
        for first in range(0, len(rows), count):
            yield from self.frame[rows[first : first + count]].iter_rows(named=True)

    def one(self, row: int) -> Mapping[str, Any]:
        return self.frame.row(row, named=True)
