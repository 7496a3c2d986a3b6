"""Things that are done over and over, after which a process must be no larger than before.

Each scenario does a piece of work once and is then run many times. What the process holds is taken
after a warm-up and at the end: private dirty memory (what nobody shares and the system can't drop),
open files, threads.

The allowance is generous, since an allocator keeps freed memory in pieces: a leak of one small
object a round is not found by the short form, a leak of a block, a table or a file is. The long
form has so many rounds that a few hundred bytes a round are found too.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from dataset_rt import CachedDataset, CachedSample, CacheInput, DatasetRuntime, ReaderConfig

from tests import support

MIB = 1 << 20


@dataclass(frozen=True)
class Size:
    """What a process holds."""

    memory: int
    files: int
    threads: int

    def __str__(self) -> str:
        return f"{self.memory / MIB:7.1f} MiB, {self.files} files, {self.threads} threads"


def private_dirty() -> int:
    """Bytes that this process alone has changed."""
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    [line] = [line for line in text.splitlines() if line.startswith("Private_Dirty:")]
    return int(line.split()[1]) * 1024


def _entries(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir())


def measure() -> Size:
    """What this process holds once everything that nobody refers to is gone."""
    gc.collect()
    # Blocks that were in flight go when their workers are done with them.
    time.sleep(0.05)
    files = _entries("/proc/self/fd")
    return Size(private_dirty(), files, _entries("/proc/self/task"))


@dataclass(frozen=True)
class Scale:
    """How much is done."""

    name: str
    samples: int
    """Samples in the cache."""
    payload: int
    """Bytes a payload."""
    epochs: int
    drops: int
    updates: int
    open_rounds: int
    """How often 200 datasets are opened and closed."""
    early_stops: int
    kept_epochs: int
    large: int
    """Bytes of a large payload."""
    large_epochs: int
    writes: int
    allowance: int
    """Bytes of growth that are no leak."""


SHORT = Scale(
    name="short",
    samples=4000,
    payload=2000,
    epochs=15,
    drops=600,
    updates=60,
    open_rounds=3,
    early_stops=300,
    kept_epochs=4,
    large=20 * MIB,
    large_epochs=3,
    writes=20,
    allowance=24 * MIB,
)
LONG = Scale(
    name="long",
    samples=40_000,
    payload=4000,
    epochs=50,
    drops=10_000,
    updates=1000,
    open_rounds=20,
    early_stops=5000,
    kept_epochs=10,
    large=50 * MIB,
    large_epochs=10,
    writes=300,
    allowance=48 * MIB,
)


class World:
    """What the scenarios share: a runtime, a cache of small payloads and one of large ones."""

    def __init__(self, scale: Scale, base: Path) -> None:
        self.scale = scale
        self.base = base
        self.runtime = DatasetRuntime(num_workers=2)
        self.small = self._write("small", self._small_samples())
        self.large = self._write("large", self._large_samples())

    def _small_samples(self) -> Iterator[CacheInput]:
        for number in range(self.scale.samples):
            metadata: dict[str, int | float | str] = {
                "label": number % 7,
                "score": number / 3,
                "text": f"sample {number}",
            }
            yield CacheInput(number.to_bytes(8, "little") * (self.scale.payload // 8), metadata)

    def _large_samples(self) -> Iterator[CacheInput]:
        for number in range(6):
            yield CacheInput(bytes([number]) * self.scale.large, {"label": number})

    def _write(self, name: str, samples: Iterable[CacheInput]) -> Path:
        return support.write(self.runtime, self.base, samples, name)

    def open(self, *caches: Path, **options: Any) -> CachedDataset:
        return self.runtime.cached_dataset(caches, reader_config=ReaderConfig(seed=1, **options))


Scenario = Callable[[World], Iterator[int]]
"""Yields after each round how many bytes the caller still holds on purpose."""


def epochs(world: World) -> Iterator[int]:
    """Whole epochs, samples and batches in turn, with the metadata of each."""
    dataset = world.open(world.small)
    for number in range(world.scale.epochs):
        if number % 2:
            for batch in dataset.iter_batches(64):
                assert batch.metadata.height == len(batch.data)
        else:
            for sample in dataset:
                assert sample.metadata["label"] == sample.sample_id % 7
        yield 0


def orders(world: World) -> Iterator[int]:
    """Epochs in orders drawn by weight, each pass of which is a table of its own."""
    dataset = world.open(world.small, replacement=False, prefetch_size=4)
    dataset.update_metadata(dataset.get_metadata().with_columns(weight=pl.col("score") + 1.0))
    for _ in range(world.scale.epochs):
        assert sum(1 for _ in dataset) == world.scale.samples
        yield 0


def dropped_iterators(world: World) -> Iterator[int]:
    """Iterators that are given up after three samples, with blocks under way."""
    dataset = world.open(world.small)
    for number in range(world.scale.drops):
        iterator = iter(dataset) if number % 4 else dataset.iter_batches(50)
        for _ in range(3):
            next(iterator)
        yield 0


def updates(world: World) -> Iterator[int]:
    """Tables that change: filtered, weighted, with columns more and less."""
    dataset = world.open(world.small)
    table = dataset.get_metadata()
    for number in range(world.scale.updates):
        weights = (pl.col("sample_id") + number).cast(pl.Float64) + 1.0
        changed = table.filter(pl.col("label") != number % 7).with_columns(weight=weights)
        if number % 2:
            changed = changed.with_columns(further=pl.format("{} {}", "text", "label"))
        dataset.update_metadata(changed, stream=number)
        next(iter(dataset))
        assert dataset.get_metadata().width == changed.width
        yield 0


def open_datasets(world: World) -> Iterator[int]:
    """200 datasets at once, each in the middle of an epoch."""
    for _ in range(world.scale.open_rounds):
        datasets = [world.open(world.small, use_mmap=bool(i % 2)) for i in range(200)]
        iterators = [iter(dataset) for dataset in datasets]
        for iterator in iterators:
            assert next(iterator).metadata
        # Files are not held open by the number of datasets.
        assert _entries("/proc/self/fd") < 150
        del datasets, iterators, iterator
        yield 0


def early_stops(world: World) -> Iterator[int]:
    """Epochs that are left by an exception."""
    dataset = world.open(world.small)
    for number in range(world.scale.early_stops):
        with contextlib.suppress(LookupError):
            _stop_after(dataset, number % 300)
        yield 0


def _stop_after(dataset: CachedDataset, count: int) -> None:
    for place, sample in enumerate(dataset):
        if place == count:
            raise LookupError(sample.sample_id)


def kept_samples(world: World) -> Iterator[int]:
    """Every 100th sample is kept, which must not keep its block."""
    dataset = world.open(world.small)
    kept: list[CachedSample] = []
    for _ in range(world.scale.kept_epochs):
        for place, sample in enumerate(dataset):
            if place % 100 == 0:
                assert sample.metadata
                kept.append(sample)
        yield sum(len(sample.data) for sample in kept)


def large_payloads(world: World) -> Iterator[int]:
    """Payloads of which 64 blocks would be gigabytes: what is read ahead is bounded in bytes."""
    dataset = world.open(world.large, prefetch_size=64)
    dataset.set_epoch_len(24)
    gc.collect()
    before = private_dirty()
    ahead = 64 * MIB + world.scale.large
    for _ in range(world.scale.large_epochs):
        for sample in dataset:
            assert sample.data[:1] == sample.data[-1:] == bytes([sample.sample_id])
            # Read ahead, and the sample at hand, and the one that was at hand before it.
            grown = private_dirty() - before
            assert grown < ahead + 2 * world.scale.large + world.scale.allowance, grown
        del sample
        yield 0


def writes(world: World) -> Iterator[int]:
    """Caches that are written, read and removed, some of them by a source that fails."""
    for number in range(world.scale.writes):
        samples: Iterable[CacheInput] = support.plain(600, 3000)
        if number % 3 == 2:
            samples = _failing(samples)
        results = world.runtime.write_cache(
            support.Source("w", samples), world.base, writer_config=support.QUIET
        )
        if number % 3 != 2:
            cache = support.succeed(results).path
            assert sum(1 for _ in world.open(cache)) == 600
            shutil.rmtree(cache)
        yield 0


def _failing(samples: Iterable[CacheInput]) -> Iterator[CacheInput]:
    yield from samples
    raise ValueError("the end of it")


def pickles(world: World) -> Iterator[int]:
    """Datasets that are sent, batches that are copied and exported."""
    dataset = world.open(world.small)
    dataset.update_metadata(dataset.get_metadata().with_columns(further=pl.lit("x")))
    for _ in range(world.scale.updates):
        sent = pickle.loads(pickle.dumps(dataset))
        batch = pickle.loads(pickle.dumps(sent.rows[:200]))
        assert len(batch.data) == len(batch.data_arrow) == 200
        yield 0


SCENARIOS: list[Scenario] = [
    epochs,
    orders,
    dropped_iterators,
    updates,
    open_datasets,
    early_stops,
    kept_samples,
    large_payloads,
    writes,
    pickles,
]


def run(world: World, scenario: Scenario) -> tuple[Size, Size]:
    """Runs a scenario; the sizes after a fifth of its rounds and at the end.

    Raises:
        AssertionError: If the process has grown by more than what is held on purpose and the
            allowance, or has more files or threads than before.
    """
    total = _rounds(world.scale, scenario)
    warm = end = None
    held_then = held = 0
    for number, held in enumerate(scenario(world), start=1):
        if number == max(1, total // 5):
            warm, held_then = measure(), held
        if number == total:
            end = measure()
    assert warm is not None
    assert end is not None
    grown = end.memory - warm.memory - (held - held_then)
    assert grown <= world.scale.allowance, f"{scenario.__name__} leaks memory: {warm} -> {end}"
    assert end.files <= warm.files, f"{scenario.__name__} leaks files: {warm} -> {end}"
    assert end.threads == warm.threads, f"{scenario.__name__} leaks threads: {warm} -> {end}"
    return warm, end


def _rounds(scale: Scale, scenario: Scenario) -> int:
    return {
        "epochs": scale.epochs,
        "orders": scale.epochs,
        "dropped_iterators": scale.drops,
        "updates": scale.updates,
        "open_datasets": scale.open_rounds,
        "early_stops": scale.early_stops,
        "kept_samples": scale.kept_epochs,
        "large_payloads": scale.large_epochs,
        "writes": scale.writes,
        "pickles": scale.updates,
    }[scenario.__name__]
