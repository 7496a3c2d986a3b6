"""A filter of a scan that keeps one row of a hundred: its time, and the bytes it reads.

`python -m benches.expression_scan WAY CACHE` is a process that scans once and prints what was read:
bytes of the shards that are in its memory through maps, and bytes that the disk gave it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from dataset_rt import scan_cache

from .cold import NotColdError, drop
from .measure import Block, Case, Unit
from .product import Product
from .tally import milliseconds
from .targets import EXPRESSIONS, PRODUCT
from .workloads import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLES = 5_000
PAYLOAD_BYTES = 100 << 10
KEPT = pl.col("label") < 10
"""Of labels 0 to 999."""
WHOLE = "all read, filtered after"
TIME = "time, page cache warm"
MAPPED = "bytes of shards mapped into memory, with what the kernel maps around faults"
DISK = "bytes read from the disk into a cold page cache, with readahead"
FLOOR = "payloads of the rows kept"


def block(folder: Path, *, quick: bool) -> Block:
    workload = Workload("scan", SAMPLES // (10 if quick else 1), PAYLOAD_BYTES)
    name = f"{EXPRESSIONS}scan_cache, a filter that keeps 1 %, with payloads"
    return Block(name, str(workload), partial(_cases, workload, folder))


@contextmanager
def _cases(workload: Workload, folder: Path) -> Iterator[list[Case]]:
    with tempfile.TemporaryDirectory(prefix="scan-", dir=folder) as data:
        cache = Product(1, Path(data)).write(workload, "scan")
        kept = _scan(PRODUCT, cache)
        if not kept.equals(_scan(WHOLE, cache)):
            raise RuntimeError("a filter of a scan gives other rows than one after it")
        floor = float(kept["payload"].bin.size().sum())
        counts = {MAPPED: partial(_read, cache, "mapped")}
        if _is_cold(cache):
            counts[DISK] = partial(_read, cache, "disk")
        whole, ours = (partial(milliseconds, partial(_scan, way, cache)) for way in WAYS)
        cases = [
            Case(TIME, WHOLE, whole, Unit.MILLISECONDS),
            Case(TIME, PRODUCT, ours, Unit.MILLISECONDS, beside=(WHOLE,)),
        ]
        for work, count in counts.items():
            cases += [
                Case(work, FLOOR, lambda: floor, Unit.BYTES),
                Case(work, WHOLE, partial(count, WHOLE), Unit.BYTES),
                Case(work, PRODUCT, partial(count, PRODUCT), Unit.BYTES, beside=(FLOOR, WHOLE)),
            ]
        yield cases


WAYS: dict[str, Callable[[pl.LazyFrame], pl.DataFrame]] = {
    WHOLE: lambda scan: scan.collect().filter(KEPT),
    PRODUCT: lambda scan: scan.filter(KEPT).collect(),
}


def _scan(way: str, cache: Path) -> pl.DataFrame:
    return WAYS[way](scan_cache([cache], payload=True))


def _is_cold(cache: Path) -> bool:
    try:
        drop(cache.rglob("*"))
    except NotColdError:
        return False
    return True


def _read(cache: Path, count: str, way: str) -> float:
    if count == "disk":
        drop(cache.rglob("*"))
    command = [sys.executable, "-m", "benches.expression_scan", way, str(cache.resolve())]
    done = subprocess.run(  # noqa: S603
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(json.loads(done.stdout)[count])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("cache", type=Path)
    options = parser.parse_args()
    scan = scan_cache([options.cache], payload=True)
    # Code and libraries are in memory before the counting starts.
    scan.filter(pl.col("label") < 0).collect()
    before = _counts()
    WAYS[options.way](scan)
    # The scan still lives, and with it its maps.
    after = _counts()
    print(json.dumps({name: after[name] - before[name] for name in after}))


def _counts() -> dict[str, int]:
    return {"mapped": _mapped(), "disk": _from_disk()}


def _mapped() -> int:
    """Bytes of the shards in this process's memory."""
    total, shard = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        first = line.split(maxsplit=1)[0]
        if not first.endswith(":"):
            shard = "/shards/" in line
        elif shard and first == "Rss:":
            total += int(line.split()[1]) * 1024
    return total


def _from_disk() -> int:
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    [found] = (line for line in lines if line.startswith("read_bytes:"))
    return int(found.split()[1])


if __name__ == "__main__":
    main()
