"""ArrayRecord, one record a group, read directly and through Grain; fields packed in front."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import grain
from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter

from .peer import BytesPeer, UnsupportedError, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

RANDOM_ACCESS = "readahead_buffer_size:0,max_parallelism:0"


class ArrayRecord(BytesPeer):
    """In order: runs of records with its own read-ahead. By row: seek and read."""

    @property
    def _path(self) -> str:
        return str(self.folder / "data.array_record")

    def write(self) -> None:
        writer = ArrayRecordWriter(self._path, "group_size:1,uncompressed")
        for record in self.workload.made(pack):
            writer.write(record)
        writer.close()

    def open(self) -> None:
        self.reader = ArrayRecordReader(self._path, RANDOM_ACCESS)

    def ordered(self) -> Iterator[bytes]:
        reader = ArrayRecordReader(self._path, "")
        count, total = self.rows_at_once(4_096, 8 << 20), self.workload.samples
        return chain.from_iterable(
            reader.read(first, min(first + count, total)) for first in range(0, total, count)
        )

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[bytes]:
        return map(self.one, rows.tolist())

    def one(self, row: int) -> bytes:
        self.reader.seek(row)
        record: bytes = self.reader.read()
        return record


class Grain(ArrayRecord):
    """`grain.MapDataset` over the same file, reading in the calling thread."""

    def open(self) -> None:
        self.source = grain.sources.ArrayRecordDataSource(self._path)

    def _iterated(self, dataset: grain.MapDataset) -> Iterator[bytes]:
        options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
        return iter(dataset.to_iter_dataset(options))

    def ordered(self) -> Iterator[bytes]:
        return self._iterated(grain.MapDataset.source(self.source))

    def shuffled(self, seed: int) -> Iterator[bytes]:
        return self._iterated(grain.MapDataset.source(self.source).shuffle(seed=seed))

    def weighted(self, seed: int) -> Iterator[bytes]:  # noqa: ARG002
        raise UnsupportedError("weights choose between datasets, not between samples")

    def one(self, row: int) -> bytes:
        record: bytes = self.source[row]
        return record
