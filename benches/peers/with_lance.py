"""Lance: columns in fragments; scans in batches, random rows by `take`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import lance

from .peer import MappingPeer
from .tables import reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray


class Lance(MappingPeer):
    """Up to 1,024 rows a call."""

    @property
    def _path(self) -> str:
        return str(self.folder / "data.lance")

    def write(self) -> None:
        lance.write_dataset(reader(self.workload, self.rows_at_once(10_000)), self._path)

    def open(self) -> None:
        self.dataset = lance.dataset(self._path)
        self.rows = self.rows_at_once(1_024)

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        batches = self.dataset.to_batches(batch_size=self.rows)
        return chain.from_iterable(batch.to_pylist() for batch in batches)

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[Mapping[str, Any]]:
        numbers = rows.tolist()
        pieces = (numbers[at : at + self.rows] for at in range(0, len(numbers), self.rows))
        return chain.from_iterable(self.dataset.take(piece).to_pylist() for piece in pieces)

    def one(self, row: int) -> Mapping[str, Any]:
        [found] = self.dataset.take([row]).to_pylist()
        record: Mapping[str, Any] = found
        return record
