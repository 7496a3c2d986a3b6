"""Plain Python over the same bytes: a flat file read by `os.pread` and by map slices; a writer."""

from __future__ import annotations

import mmap
import os
import zlib
from typing import TYPE_CHECKING

import numpy as np

from .tally import Tally
from .workloads import CHUNK, SPLITS, Fields, Sample, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray


class FlatFile:
    """The payloads of a workload one after the other; offsets and columns stay in memory."""

    def __init__(self, workload: Workload, path: Path) -> None:
        if not path.exists() or path.stat().st_size != workload.total_bytes:
            with path.open("wb", buffering=1 << 20) as file:
                for sample in workload.inputs():
                    file.write(sample.data)
        self.columns = workload.columns
        self.lengths = workload.sizes
        self.starts = np.cumsum(self.lengths) - self.lengths
        self._file = path.open("rb")
        self.fd = self._file.fileno()
        self.map = mmap.mmap(self.fd, 0, prot=mmap.PROT_READ)

    def close(self) -> None:
        self.map.close()
        self._file.close()

    def _chunks(
        self, order: NDArray[np.int64] | None
    ) -> Iterator[tuple[slice | NDArray[np.int64], list[int]]]:
        """The order cut into pieces: as an index for NumPy, and as row numbers."""
        for first in range(0, len(self.starts) if order is None else len(order), CHUNK):
            if order is None:
                last = min(first + CHUNK, len(self.starts))
                yield slice(first, last), list(range(first, last))
            else:
                rows = order[first : first + CHUNK]
                yield rows, rows.tolist()

    def both_by_map(self, order: NDArray[np.int64] | None) -> Tally:
        """Builds bytes, dictionary and named tuple of each sample from slices of the map."""
        count = size = labels = 0
        view = self.map
        for index, rows in self._chunks(order):
            starts = self.starts[index]
            ends = (starts + self.lengths[index]).tolist()
            for row, start, end, label, score, split, flag in zip(
                rows, starts.tolist(), ends, *self.columns.lists(index), strict=True
            ):
                metadata: Fields = {"label": label, "score": score, "split": split, "flag": flag}
                sample = Sample(view[start:end], metadata, 0, row)
                count += 1
                size += len(sample.data)
                labels += label
        return Tally(count, size, labels)

    def both_by_pread(self, order: NDArray[np.int64] | None) -> Tally:
        """Builds the same objects with one positioned read a sample."""
        count = size = labels = 0
        fd, pread = self.fd, os.pread
        for index, rows in self._chunks(order):
            starts, lengths = self.starts[index].tolist(), self.lengths[index].tolist()
            for row, start, length, label, score, split, flag in zip(
                rows, starts, lengths, *self.columns.lists(index), strict=True
            ):
                metadata: Fields = {"label": label, "score": score, "split": split, "flag": flag}
                sample = Sample(pread(fd, length, start), metadata, 0, row)
                count += 1
                size += len(sample.data)
                labels += label
        return Tally(count, size, labels)

    def payload_by_map(self, order: NDArray[np.int64] | None) -> Tally:
        """Slices the map alone, no metadata."""
        count = size = 0
        view = self.map
        for index, _ in self._chunks(order):
            starts = self.starts[index]
            ends = (starts + self.lengths[index]).tolist()
            for start, end in zip(starts.tolist(), ends, strict=True):
                count += 1
                size += len(view[start:end])
        return Tally(count, size)

    def _metadata(self, row: int) -> Fields:
        columns = self.columns
        return {
            "label": int(columns.label[row]),
            "score": float(columns.score[row]),
            "split": SPLITS[columns.split[row]],
            "flag": bool(columns.flag[row]),
        }

    def one_by_map(self, row: int) -> Sample:
        start = int(self.starts[row])
        data = self.map[start : start + int(self.lengths[row])]
        return Sample(data, self._metadata(row), 0, row)

    def one_by_pread(self, row: int) -> Sample:
        data = os.pread(self.fd, int(self.lengths[row]), int(self.starts[row]))
        return Sample(data, self._metadata(row), 0, row)


def drain(workload: Workload) -> Tally:
    """A bare loop over the source: what any writer pays to be fed."""
    count = size = 0
    for sample in workload.inputs():
        count += 1
        size += len(sample.data)
    return Tally(count, size)


def plain_write(
    workload: Workload, path: Path, checksum: Callable[[bytes], int] = zlib.crc32
) -> Tally:
    """Payloads into one file and to the disk, a checksum each; the metadata is kept and dropped."""
    count = size = 0
    sums: list[int] = []
    columns: list[tuple[object, ...]] = []
    with path.open("wb", buffering=1 << 20) as file:
        for sample in workload.inputs():
            file.write(sample.data)
            sums.append(checksum(sample.data))  # type: ignore[arg-type]
            columns.append(tuple(sample.metadata.values()))
            count += 1
            size += len(sample.data)
        file.flush()
        os.fsync(file.fileno())
    return Tally(count, size)
