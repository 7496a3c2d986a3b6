"""Which cases there are: the work of each block, and the ways to do it."""

from __future__ import annotations

import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from . import surroundings
from .limit import Limit, LimitModule
from .loops import FlatFile, drain, plain_write
from .measure import Block, Case, Unit
from .product import (
    ORDERS,
    Order,
    Product,
    batches_as_buffer,
    batches_as_list,
    batches_payload_only,
    first_sample,
    read_both,
    read_payload_only,
    reweighted,
)
from .tally import Tally, median_microseconds, milliseconds, samples_per_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from .workloads import Workload

PRODUCT = "dataset_rt"
BATCH = 256
SINGLE_READS = 5_000


@dataclass(frozen=True)
class Bench:
    """What all blocks share."""

    product: Product
    limit: LimitModule | None
    folder: Path
    work: dict[str, Workload]
    keep_data: bool = False
    """Whether data of one workload stays when the next one comes, and serves later runs."""

    def blocks(self) -> list[Block]:
        """All blocks, those of one workload together."""
        found: list[Block] = []
        for name, workload in self.work.items():
            kinds = [("write", self._write), ("read", self._read)]
            if name in {"W1", "W3"}:
                kinds += [("batches", self._batches), ("one", self._one)]
            if name == "W3":
                kinds += [("open", self._open), ("table", self._table)]
            found += [
                Block(f"{name}.{kind}", f"{kind}, {workload}", partial(prepare, workload))
                for kind, prepare in kinds
            ]
            found += surroundings.blocks_of(self, workload)
        return found

    @contextmanager
    def cache(self, workload: Workload) -> Iterator[Path]:
        """The workload as a cache. It stays until another workload comes."""
        path = self.folder / workload.name
        if not path.exists():
            for other in () if self.keep_data else self.work:
                self.product.remove(other)
            self.product.write(workload, workload.name)
        yield path

    @contextmanager
    def _flat(self, workload: Workload) -> Iterator[FlatFile]:
        path = self.folder / f"{workload.name}.flat"
        flat = FlatFile(workload, path)
        try:
            yield flat
        finally:
            flat.close()
            if not self.keep_data:
                path.unlink()

    @contextmanager
    def _read(self, workload: Workload) -> Iterator[list[Case]]:
        with self.cache(workload) as path, self._flat(workload) as flat:
            cases: list[Case] = []
            for order in ORDERS:
                rows, labels = _plan(workload, order)
                # Draws by weight repeat some rows, so of unequal sizes the sum is not known.
                varies = workload.text and order == "weighted"
                size = -1 if varies else workload.total_bytes
                every = Tally(workload.samples, size, labels)
                dataset = self.product.open_reading(workload, path, order)
                ways: dict[str, Callable[[], Tally]] = {}
                payload_ways: dict[str, Callable[[], Tally]] = {}
                if self.limit is not None:
                    limit = Limit(self.limit, flat)
                    ways["limit"] = partial(limit.both, rows)
                    payload_ways["limit"] = partial(limit.payload_only, rows)
                ways["map loop"] = partial(flat.both_by_map, rows)
                ways["pread loop"] = partial(flat.both_by_pread, rows)
                ways[PRODUCT] = partial(read_both, dataset)
                payload_ways["map loop"] = partial(flat.payload_by_map, rows)
                payload_ways[PRODUCT] = partial(read_payload_only, dataset)
                cases += _cases(order, ways, every)
                full = (f"{order}/limit",) if self.limit is not None else ()
                cases += _cases(f"{order}, payload only", payload_ways, every, beside=full)
            yield cases

    @contextmanager
    def _write(self, workload: Workload) -> Iterator[list[Case]]:
        every = Tally(workload.samples, workload.total_bytes)
        checksum = getattr(self.limit, "crc32c", zlib.crc32)
        name = "crc32c" if checksum is not zlib.crc32 else "zlib.crc32"
        scratch = self.folder / f"{workload.name}.plain"

        def plain() -> float:
            rate = samples_per_second(partial(plain_write, workload, scratch, checksum), every)
            scratch.unlink()
            return rate

        def product() -> float:
            target = f"{workload.name}-written"
            self.product.remove(target)
            try:
                run = partial(self.product.write_tally, workload, target)
                return samples_per_second(run, every)
            finally:
                self.product.remove(target)

        writer = f"plain file with {name} and fsync"
        yield [
            Case(
                "write", "bare loop", partial(samples_per_second, partial(drain, workload), every)
            ),
            Case("write", writer, plain),
            Case("write", PRODUCT, product, beside=("bare loop", writer)),
        ]

    @contextmanager
    def _batches(self, workload: Workload) -> Iterator[list[Case]]:
        with self.cache(workload) as path:
            _, labels = _plan(workload, "shuffled")
            every = Tally(workload.samples, workload.total_bytes, labels)
            dataset = self.product.open_reading(workload, path, "shuffled")
            ways: dict[str, Callable[[], Tally]] = {
                "one by one": partial(read_both, dataset),
                f"batches of {BATCH}, one buffer": partial(batches_as_buffer, dataset, BATCH),
                f"batches of {BATCH}, list of bytes": partial(batches_as_list, dataset, BATCH),
                f"batches of {BATCH}, one buffer, payload only": partial(
                    batches_payload_only, dataset, BATCH
                ),
            }
            yield _cases("shuffled", ways, every, product="batches", references=("one by one",))

    @contextmanager
    def _one(self, workload: Workload) -> Iterator[list[Case]]:
        with self.cache(workload) as path, self._flat(workload) as flat:
            dataset = self.product.open(path)
            rows = workload.permutation[:SINGLE_READS].tolist()
            get = partial(dataset.get_item, 0)
            loops = ("map slice", "pread")
            yield [
                _single("map slice", partial(median_microseconds, flat.one_by_map, rows)),
                _single("pread", partial(median_microseconds, flat.one_by_pread, rows)),
                _single(
                    "rows[i]", partial(median_microseconds, dataset.rows.__getitem__, rows), loops
                ),
                _single("get_item", partial(median_microseconds, get, rows), loops),
            ]

    @contextmanager
    def _open(self, workload: Workload) -> Iterator[list[Case]]:
        with self.cache(workload) as path:
            run = partial(milliseconds, partial(first_sample, self.product, path))
            yield [Case("open and first sample", PRODUCT, run, Unit.MILLISECONDS)]

    @contextmanager
    def _table(self, workload: Workload) -> Iterator[list[Case]]:
        with self.cache(workload) as path:
            fresh = partial(self.product.open, path)
            whole = self.product.open(path)
            dataset = self.product.open(path, "weighted")
            weighted = reweighted(workload, dataset.get_metadata())
            kept = weighted.filter(weighted["flag"])

            def update_and_draw() -> None:
                dataset.update_metadata(weighted)
                next(iter(dataset))

            yield [
                _table_case("get_metadata, first", lambda: milliseconds(fresh().get_metadata)),
                _table_case("get_metadata, again", lambda: milliseconds(whole.get_metadata)),
                _table_case(
                    "update_metadata, new weights",
                    lambda: milliseconds(partial(dataset.update_metadata, weighted)),
                ),
                _table_case(
                    "update_metadata, half the rows",
                    lambda: milliseconds(partial(dataset.update_metadata, kept)),
                ),
                _table_case(
                    "update_metadata and first draw", lambda: milliseconds(update_and_draw)
                ),
            ]


def _plan(workload: Workload, order: Order) -> tuple[NDArray[np.int64] | None, int]:
    """The rows for limit and loops, and the sum of labels that a right pass has (-1: any)."""
    if order == "weighted":
        return workload.weighted_rows, -1
    rows = workload.permutation if order == "shuffled" else None
    return rows, int(workload.columns.label.sum())


def _cases(
    work: str,
    ways: dict[str, Callable[[], Tally]],
    every: Tally,
    *,
    product: str = PRODUCT,
    references: tuple[str, ...] = ("limit", "map loop", "pread loop"),
    beside: tuple[str, ...] = (),
) -> list[Case]:
    """Cases in samples/s. Those of the product name what they stand beside."""
    compared = (*(name for name in references if name in ways), *beside)
    return [
        Case(
            work,
            way,
            partial(samples_per_second, run, every),
            beside=compared if way.startswith(product) else (),
        )
        for way, run in ways.items()
    ]


def _single(way: str, run: Callable[[], float], beside: tuple[str, ...] = ()) -> Case:
    return Case("one sample, median", way, run, Unit.MICROSECONDS, beside)


def _table_case(work: str, run: Callable[[], float]) -> Case:
    return Case(work, PRODUCT, run, Unit.MILLISECONDS)
