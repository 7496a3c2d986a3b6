"""The package, and the earlier implementation of the same name and interface on PyPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import dataset_rt as drt
import polars as pl

from benches import tally

from .peer import Peer, Shuffle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benches.tally import Tally
    from benches.workloads import Fields, Workload

WORKERS = 2
NAME = "cache"


class _Source:
    name = NAME

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def __iter__(self) -> Iterator[drt.CacheInput]:
        return self.workload.inputs()


class Earlier(Peer[drt.CachedSample]):
    """The interface that both have. Its shuffle draws with replacement."""

    shuffle: ClassVar[Shuffle] = "draws"
    draws: ClassVar[str] = "own"
    writer: ClassVar[dict[str, Any]] = {}

    def write(self) -> None:
        config = drt.WriterConfig(show_progress=False, **self.writer)
        runtime = drt.DatasetRuntime(num_workers=WORKERS)
        [result] = runtime.write_cache(_Source(self.workload), self.folder, writer_config=config)
        if isinstance(result, drt.CacheWriteError):
            raise TypeError(result.message)

    def open(self) -> None:
        self.runtime = drt.DatasetRuntime(num_workers=WORKERS)
        self.in_order = self._dataset(drt.ReaderConfig(seed=1, shuffle=False))
        self.cache_id: int | None = None

    def _dataset(self, config: drt.ReaderConfig) -> drt.CachedDataset:
        return self.runtime.cached_dataset([self.folder / NAME], reader_config=config)

    def ordered(self) -> Iterator[drt.CachedSample]:
        return iter(self._dataset(drt.ReaderConfig(seed=1, shuffle=False)))

    def shuffled(self, seed: int) -> Iterator[drt.CachedSample]:
        return iter(self._dataset(drt.ReaderConfig(seed=seed)))

    def weighted(self, seed: int) -> Iterator[drt.CachedSample]:
        dataset = self._dataset(drt.ReaderConfig(seed=seed))
        weight = pl.Series("weight", self.workload.weights)
        dataset.update_metadata(dataset.get_metadata().with_columns(weight))
        return iter(dataset)

    def one(self, row: int) -> drt.CachedSample:
        if self.cache_id is None:
            self.cache_id = next(self.ordered()).cache_id
        return self.in_order.get_item(self.cache_id, row)

    @staticmethod
    def count(records: Iterable[drt.CachedSample]) -> Tally:
        return tally.both(records)

    @classmethod
    def touch(cls, record: drt.CachedSample) -> object:
        return record.data, record.metadata["label"]

    @staticmethod
    def plain(record: drt.CachedSample) -> tuple[bytes, Fields]:
        return record.data, dict(record.metadata)


class Ours(Earlier):
    """Shuffled by permutations; a single sample by its row."""

    shuffle: ClassVar[Shuffle] = "all"

    def shuffled(self, seed: int) -> Iterator[drt.CachedSample]:
        return iter(self._dataset(drt.ReaderConfig(seed=seed, replacement=False)))

    def one(self, row: int) -> drt.CachedSample:
        return self.in_order.rows[row]


class OursLz4(Ours):
    """Payloads compressed one by one."""

    writer: ClassVar[dict[str, Any]] = {"shard_compression": drt.ShardCompression(algo="lz4")}
