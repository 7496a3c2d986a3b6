"""Bagz: an offset table and records of bytes in one file; the fields are packed in front."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import bagz
import numpy as np

from .peer import BytesPeer, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class Bagz(BytesPeer):
    """One call a record."""

    suffix: ClassVar[str] = "bag"

    def write(self) -> None:
        with bagz.Writer(self._path) as writer:
            for record in self.workload.made(pack):
                writer.write(record)

    @property
    def _path(self) -> str:
        return str(self.folder / f"data.{self.suffix}")

    def open(self) -> None:
        self.reader = bagz.Reader(self._path)

    def ordered(self) -> Iterator[bytes]:
        return iter(self.reader)

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[bytes]:
        return map(self.reader.__getitem__, rows.tolist())

    def one(self, row: int) -> bytes:
        record: bytes = self.reader[row]
        return record


class BagzMany(Bagz):
    """Up to 512 records a call, which its own threads read."""

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[bytes]:
        count = self.rows_at_once(512, 8 << 20)
        pieces = (rows[first : first + count] for first in range(0, len(rows), count))
        return chain.from_iterable(
            self.reader.read_indices(np.ascontiguousarray(piece)) for piece in pieces
        )


class BagzZstd(Bagz):
    """Each record compressed by itself."""

    suffix: ClassVar[str] = "bagz"
