"""LitData: `optimize` with one worker process, `StreamingDataset` on the local chunks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import litdata

from .peer import MappingPeer, Shuffle, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benches.workloads import Workload

ROWS_AN_INPUT = 1_000


def _rows(workload: Workload, piece: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Top-level, since it goes to the worker process."""
    for row in range(*piece):
        yield {"data": workload.payload(row), **workload.fields(row)}


class LitData(MappingPeer):
    """Iterated in this process. Its payloads are views of the map, which are copied to be kept."""

    shuffle: ClassVar[Shuffle] = "blocks"

    def write(self) -> None:
        samples = self.workload.samples
        litdata.optimize(
            fn=partial(_rows, self.workload),
            inputs=[
                (first, min(first + ROWS_AN_INPUT, samples))
                for first in range(0, samples, ROWS_AN_INPUT)
            ],
            output_dir=str(self.folder),
            chunk_bytes="64MB",
            num_workers=1,
            start_method="fork",
            keep_data_ordered=True,
            reorder_files=False,
            verbose=False,
        )

    def open(self) -> None:
        self.dataset = litdata.StreamingDataset(str(self.folder), shuffle=False)

    @staticmethod
    def _copied(dataset: litdata.StreamingDataset) -> Iterator[Mapping[str, Any]]:
        for record in dataset:
            record["data"] = bytes(record["data"])
            yield record

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return self._copied(litdata.StreamingDataset(str(self.folder), shuffle=False))

    def shuffled(self, seed: int) -> Iterator[Mapping[str, Any]]:
        return self._copied(litdata.StreamingDataset(str(self.folder), shuffle=True, seed=seed))

    def weighted(self, seed: int) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002
        raise UnsupportedError("weights choose between datasets, not between samples")

    def one(self, row: int) -> Mapping[str, Any]:
        record: Mapping[str, Any] = self.dataset[row]
        return record
