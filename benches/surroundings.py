"""Blocks of what surrounds a pass: cold reads, memory, size, the import, draws, compression."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import dataset_rt as drt

from . import cold, memory, start
from .measure import Block, Case, Unit
from .product import read_both
from .tally import Tally, samples_per_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .blocks import Bench
    from .workloads import Workload

PRODUCT = "dataset_rt"
DRAWS = "DATASET_RT_DRAWS"
"""Names the program that `crates/runtime/examples/draws.rs` is built into."""
WRITTEN_SAMPLES = 1_000_000
MANY_WEIGHTS = 100_000_000


def blocks_of(bench: Bench, workload: Workload) -> list[Block]:
    """The blocks beside those that read and write one workload."""
    kinds: dict[str, Callable[[Bench, Workload], object]] = {}
    if workload.name in {"W1", "W2"} and bench.limit is not None:
        kinds["cold"] = _cold
    if workload.name == "W1T":
        kinds["lz4"] = _lz4
    if workload.name == "W3":
        kinds |= {"memory": _memory, "size": _size, "import": _import}
        if os.environ.get(DRAWS):
            kinds["draws"] = _draws
    return [
        Block(
            f"{workload.name}.{kind}",
            f"{kind}, {workload}",
            partial(prepare, bench, workload),  # type: ignore[arg-type]
        )
        for kind, prepare in kinds.items()
    ]


@contextmanager
def _cold(bench: Bench, workload: Workload) -> Iterator[list[Case]]:
    assert bench.limit is not None
    with bench.cache(workload) as path:
        flat = cold.ColdFile(workload, bench.folder / f"{workload.name}.cold")
        # A copy, since what blocks before this one keep mapped stays in the page cache.
        copy = bench.folder / f"{workload.name}.cold-cache"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        try:
            yield cold.cases(bench.product, workload, copy, flat, bench.limit)
        finally:
            flat.path.unlink()
            shutil.rmtree(copy)


@contextmanager
def _memory(bench: Bench, workload: Workload) -> Iterator[list[Case]]:
    target = bench.folder / "memory"
    samples = WRITTEN_SAMPLES * workload.samples // 1_000_000

    def write(count: int) -> float:
        try:
            return memory.peak("write", target, count)
        finally:
            bench.product.remove("memory")

    with bench.cache(workload) as path:
        yield [
            Case("shuffled pass", PRODUCT, partial(memory.peak, "read", path), Unit.MEBIBYTES),
            Case(
                f"write, {samples:,} x 64 B, 5 columns",
                PRODUCT,
                partial(write, samples),
                Unit.MEBIBYTES,
            ),
            Case(
                f"write, {samples // 4:,} x 64 B, 5 columns",
                PRODUCT,
                partial(write, samples // 4),
                Unit.MEBIBYTES,
            ),
        ]


@contextmanager
def _size(bench: Bench, workload: Workload) -> Iterator[list[Case]]:
    with bench.cache(workload) as path:

        def beside() -> float:
            stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            return (stored - workload.total_bytes) / workload.samples

        yield [Case("bytes a sample beside its payload", PRODUCT, beside, Unit.BYTES)]


@contextmanager
def _import(bench: Bench, workload: Workload) -> Iterator[list[Case]]:  # noqa: ARG001
    yield [
        Case("import", name, partial(start.import_milliseconds, name), Unit.MILLISECONDS)
        for name in ("polars", PRODUCT)
    ]


@contextmanager
def _draws(bench: Bench, workload: Workload) -> Iterator[list[Case]]:  # noqa: ARG001
    """One run of the program a round; it takes the best of many short rounds of its own."""
    program = os.environ[DRAWS]
    few = workload.samples < 1_000_000
    command = [program] if few else [program, str(MANY_WEIGHTS)]
    last: dict[str, tuple[float, str]] = {}

    def run() -> dict[str, tuple[float, str]]:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        lines = map(json.loads, done.stdout.splitlines())
        return {
            f"{line['work']}, {line['rows']:,} rows": (line["value"], line["unit"])
            for line in lines
        }

    def value(name: str, first: str) -> float:
        if name == first or not last:
            last.update(run())
        return last[name][0]

    found = run()
    names = list(found)
    yield [
        Case(name, "one core", partial(value, name, names[0]), Unit(found[name][1]))
        for name in names
    ]


@contextmanager
def _lz4(bench: Bench, workload: Workload) -> Iterator[list[Case]]:
    """Compressed beside plain: the same samples in two caches."""
    config = drt.WriterConfig(
        show_progress=False, shard_compression=drt.ShardCompression(algo="lz4")
    )
    name = f"{workload.name}-lz4"
    total = Tally(workload.samples, workload.total_bytes)

    scratch = f"{name}-written"

    def write() -> Tally:
        bench.product.remove(scratch)
        bench.product.write(workload, scratch, config)
        return total

    with bench.cache(workload) as plain:
        packed = bench.product.write(workload, name, config)
        try:
            cases = [Case("write", "LZ4", partial(samples_per_second, write, total))]
            for order in ("ordered", "shuffled"):
                for way, path in (("plain", plain), ("LZ4", packed)):
                    dataset = bench.product.open_reading(workload, path, order)
                    run = partial(samples_per_second, partial(read_both, dataset), total)
                    cases.append(Case(order, way, run, beside=("plain",) if way == "LZ4" else ()))
            cases.append(Case("stored", "LZ4", partial(_mebibytes, packed), Unit.MEBIBYTES))
            cases.append(Case("stored", "plain", partial(_mebibytes, plain), Unit.MEBIBYTES))
            yield cases
        finally:
            bench.product.remove(name)
            bench.product.remove(scratch)


def _mebibytes(path: Path) -> float:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 2**20
