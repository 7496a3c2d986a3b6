"""Hugging Face datasets: one Arrow file, mapped. Row by row, and columns of many rows at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

os.environ["HF_DATASETS_OFFLINE"] = "1"

import datasets  # looks at the variable when it is imported
from datasets.arrow_writer import ArrowWriter

from .peer import MappingPeer
from .tables import column_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

FEATURES = {
    "data": "binary",
    "label": "int64",
    "score": "float64",
    "split": "string",
    "flag": "bool",
}


class Rows(MappingPeer):
    """Iteration over the dataset itself; shuffled through its own indices."""

    @property
    def _path(self) -> str:
        return str(self.folder / "data.arrow")

    def write(self) -> None:
        # Dataset.save_to_disk would copy what is in this file once more.
        features = datasets.Features(
            {name: datasets.Value(kind) for name, kind in FEATURES.items()}
        )
        rows = self.rows_at_once(1_000)
        with ArrowWriter(features=features, path=self._path, writer_batch_size=rows) as writer:
            for piece in column_lists(self.workload, rows):
                writer.write_batch(piece)
            writer.finalize()

    def open(self) -> None:
        self.dataset = datasets.Dataset.from_file(self._path)

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.dataset)

    def shuffled(self, seed: int) -> Iterator[Mapping[str, Any]]:
        return iter(self.dataset.shuffle(seed=seed, keep_in_memory=True))

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[Mapping[str, Any]]:
        return iter(self.dataset.select(rows, keep_in_memory=True))

    def one(self, row: int) -> Mapping[str, Any]:
        record: Mapping[str, Any] = self.dataset[row]
        return record


class Batches(Rows):
    """Up to 256 rows a call, turned from columns into rows."""

    def _turned(self, pieces: Iterator[slice | list[int]]) -> Iterator[Mapping[str, Any]]:
        for piece in pieces:
            columns = self.dataset[piece]
            names = tuple(columns)
            for values in zip(*columns.values(), strict=True):
                yield dict(zip(names, values, strict=True))

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        count, total = self.rows_at_once(256), self.workload.samples
        return self._turned(slice(at, min(at + count, total)) for at in range(0, total, count))

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[Mapping[str, Any]]:
        count = self.rows_at_once(256)
        return self._turned(rows[at : at + count].tolist() for at in range(0, len(rows), count))

    def shuffled(self, seed: int) -> Iterator[Mapping[str, Any]]:
        return super(Rows, self).shuffled(seed)
