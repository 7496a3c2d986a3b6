"""Vortex: compressed columns in one file; scans, random rows by a scan with sorted indices."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import vortex

from .peer import MappingPeer
from .tables import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray


class Vortex(MappingPeer):
    """Up to 4,096 rows a scan, put back into the order of the draws."""

    @property
    def _path(self) -> str:
        return str(self.folder / "data.vortex")

    def write(self) -> None:
        vortex.io.write(reader(self.workload, self.rows_at_once(10_000)), self._path)

    def open(self) -> None:
        self.file = vortex.open(self._path)
        self.rows = self.rows_at_once(4_096)

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        batches = self.file.to_arrow(batch_size=self.rows)
        return chain.from_iterable(batch.to_pylist() for batch in batches)

    def _take(self, rows: NDArray[np.uint64]) -> list[dict[str, Any]]:
        scan = self.file.scan(indices=vortex.array(pa.array(rows)))
        found: list[dict[str, Any]] = scan.read_all().to_arrow_array().to_pylist()
        return found

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[Mapping[str, Any]]:
        for first in range(0, len(rows), self.rows):
            distinct, places = np.unique(rows[first : first + self.rows], return_inverse=True)
            found = self._take(distinct.astype(np.uint64))
            yield from (found[place] for place in places.tolist())

    def one(self, row: int) -> Mapping[str, Any]:
        [found] = self._take(np.array([row], dtype=np.uint64))
        return found
