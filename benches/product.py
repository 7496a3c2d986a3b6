"""The product, through its public API."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Literal

import dataset_rt as drt
import polars as pl

from .tally import Tally, both, payload_only
from .workloads import Source, Workload

if TYPE_CHECKING:
    from pathlib import Path

Order = Literal["ordered", "shuffled", "weighted"]
ORDERS: tuple[Order, ...] = ("ordered", "shuffled", "weighted")
QUIET = drt.WriterConfig(show_progress=False)


class Product:
    """One runtime, writing and opening caches under one folder."""

    def __init__(self, workers: int, folder: Path) -> None:
        self.runtime = drt.DatasetRuntime(num_workers=workers)
        self.folder = folder

    def write(self, workload: Workload, name: str, config: drt.WriterConfig = QUIET) -> Path:
        """Writes the workload as the cache `name`; it is on the disk when this returns."""
        [result] = self.runtime.write_cache(
            Source(workload, name), self.folder, writer_config=config
        )
        if isinstance(result, drt.CacheWriteError):
            raise TypeError(result.message) from result.cause
        return result.path

    def write_tally(self, workload: Workload, name: str) -> Tally:
        self.write(workload, name)
        return Tally(workload.samples, workload.total_bytes)

    def remove(self, name: str) -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def open(self, path: Path, order: Order = "ordered") -> drt.CachedDataset:
        config = drt.ReaderConfig(
            seed=7, shuffle=order != "ordered", replacement=order == "weighted"
        )
        return self.runtime.cached_dataset([path], reader_config=config)

    def open_reading(self, workload: Workload, path: Path, order: Order) -> drt.CachedDataset:
        """A dataset that reads in that order; "weighted" ones carry the workload's weights."""
        dataset = self.open(path, order)
        if order == "weighted":
            dataset.update_metadata(reweighted(workload, dataset.get_metadata()))
        return dataset


def reweighted(workload: Workload, table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(weight=pl.Series(workload.weights))


def first_sample(product: Product, path: Path) -> drt.CachedSample:
    """Opens a cache and reads its first sample."""
    return next(iter(product.open(path)))


def read_both(dataset: drt.CachedDataset) -> Tally:
    return both(dataset)


def read_payload_only(dataset: drt.CachedDataset) -> Tally:
    return payload_only(dataset)


def batches_as_buffer(dataset: drt.CachedDataset, size: int) -> Tally:
    """Each batch as one buffer with offsets, the labels as one column."""
    count = total = labels = 0
    for batch in dataset.iter_batches(size):
        _, offsets = batch.data_numpy()
        count += len(batch)
        total += int(offsets[-1])
        labels += int(batch.metadata["label"].sum())
    return Tally(count, total, labels)


def batches_as_list(dataset: drt.CachedDataset, size: int) -> Tally:
    """Each batch as a list of bytes, the labels as one column."""
    count = total = labels = 0
    for batch in dataset.iter_batches(size):
        payloads = batch.data
        count += len(payloads)
        total += sum(map(len, payloads))
        labels += int(batch.metadata["label"].sum())
    return Tally(count, total, labels)


def batches_payload_only(dataset: drt.CachedDataset, size: int) -> Tally:
    """Each batch as one buffer, no metadata."""
    count = total = 0
    for batch in dataset.iter_batches(size):
        _, offsets = batch.data_numpy()
        count += len(batch)
        total += int(offsets[-1])
    return Tally(count, total)
