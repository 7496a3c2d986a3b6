"""LMDB: a B+ tree in a map; keys are row numbers, the fields are packed in front of the payload."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import lmdb

from .peer import BytesPeer, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

KEY = struct.Struct(">Q")
ROWS_A_COMMIT = 10_000


class Lmdb(BytesPeer):
    """A read-only environment without locks, one transaction for all reads."""

    def write(self) -> None:
        work = self.workload
        room = 2 * work.total_bytes + 512 * work.samples + (256 << 20)
        with lmdb.open(str(self.folder), map_size=room, sync=False) as environment:
            transaction = environment.begin(write=True)
            for row, record in enumerate(work.made(pack)):
                transaction.put(KEY.pack(row), record, append=True)
                if row % ROWS_A_COMMIT == ROWS_A_COMMIT - 1:
                    transaction.commit()
                    transaction = environment.begin(write=True)
            transaction.commit()
            environment.sync(force=True)

    def open(self) -> None:
        environment = lmdb.open(str(self.folder), readonly=True, lock=False, readahead=False)
        self.transaction = environment.begin()

    def ordered(self) -> Iterator[bytes]:
        found: Iterator[bytes] = self.transaction.cursor().iternext(keys=False, values=True)
        return found

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[bytes]:
        return map(self.transaction.get, map(KEY.pack, rows.tolist()))

    def one(self, row: int) -> bytes:
        record: bytes = self.transaction.get(KEY.pack(row))
        return record
