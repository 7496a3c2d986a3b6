"""MosaicML Streaming: MDS shards on the local disk, uncompressed."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, ClassVar

from streaming import LocalDataset, MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory

from .peer import MappingPeer, Shuffle, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from benches.workloads import Fields

COLUMNS = {"data": "bytes", "label": "int64", "score": "float64", "split": "str", "flag": "uint8"}


def _row(data: bytes, fields: Fields) -> dict[str, Any]:
    return {"data": data, **fields, "flag": int(fields["flag"])}


class Local(MappingPeer):
    """`LocalDataset`: the plain reader of the shards, one call a sample."""

    def write(self) -> None:
        with MDSWriter(out=str(self.folder), columns=COLUMNS, size_limit=64 << 20) as writer:
            for row in self.workload.made(_row):
                writer.write(row)

    def open(self) -> None:
        self.dataset = LocalDataset(local=str(self.folder))

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return map(self.dataset.__getitem__, range(self.workload.samples))

    def by_rows(self, rows: NDArray[np.int64]) -> Iterator[Mapping[str, Any]]:
        return map(self.dataset.__getitem__, rows.tolist())

    def one(self, row: int) -> Mapping[str, Any]:
        record: Mapping[str, Any] = self.dataset[row]
        return record


class Streaming(Local):
    """`StreamingDataset` iterated in this process; shuffled with its default algorithm."""

    shuffle: ClassVar[Shuffle] = "blocks"

    def _opened(self, *, shuffle: bool, seed: int = 1) -> StreamingDataset:
        # A second one on the same folder is refused while the first one's shared memory stands.
        self.dataset = None
        gc.collect()
        clean_stale_shared_memory()
        self.dataset = StreamingDataset(
            local=str(self.folder), shuffle=shuffle, shuffle_seed=seed, batch_size=64
        )
        return self.dataset

    def open(self) -> None:
        self._opened(shuffle=False)

    def ordered(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._opened(shuffle=False))

    def shuffled(self, seed: int) -> Iterator[Mapping[str, Any]]:
        return iter(self._opened(shuffle=True, seed=seed))

    def weighted(self, seed: int) -> Iterator[Mapping[str, Any]]:  # noqa: ARG002
        raise UnsupportedError("weights choose between streams, not between samples")
