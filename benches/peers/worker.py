"""One task of one library in a process of its own: `python -m benches.peers.worker TASK OUT`.

TASK is JSON (see `Task`); the answer goes to the file OUT, since libraries print what they like.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.metadata
import json
import math
import os
import random
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benches.tally import Tally
from benches.workloads import workloads

from .peer import Peer, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKED_IN_ORDER = 300
CHECKED_BY_ROW = 100
SINGLE_READS = 20_000
PIECE_SECONDS = 0.05


@dataclass(frozen=True)
class Task:
    """What the driver asks for."""

    adapter: str
    distribution: str
    phase: str
    """ "write" or "read"."""
    folder: str
    workload: str
    quick: bool
    seed: int
    cap: float
    """Seconds after which a pass is cut off; its rate is that of the part that was read."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("task")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    task = Task(**json.loads(options.task))
    answer = write(task) if task.phase == "write" else read(task)
    options.out.write_text(json.dumps(answer), encoding="utf-8")
    # Threads and helper processes of some libraries outlast the interpreter.
    os._exit(0)


def load(task: Task) -> tuple[Peer[Any], float]:
    """The adapter, and how many milliseconds the import took."""
    workload = workloads(quick=task.quick)[task.workload]
    module, name = task.adapter.split(":")
    start = time.perf_counter()
    kind = getattr(importlib.import_module(f"benches.peers.{module}"), name)
    seconds = time.perf_counter() - start
    peer: Peer[Any] = kind(Path(task.folder), workload)
    return peer, seconds * 1e3


def write(task: Task) -> dict[str, Any]:
    peer, _ = load(task)
    # Made before the clock starts: the pool, and what is computed once.
    _ = peer.workload.payload(0), peer.workload.fields(0)
    gc.collect()
    start = time.perf_counter()
    peer.write()
    closed = time.perf_counter()
    stored = sync(peer.folder)
    synced = time.perf_counter()
    return {
        "version": importlib.metadata.version(task.distribution),
        "samples": peer.workload.samples,
        "payload_bytes": peer.workload.total_bytes,
        "stored_bytes": stored,
        "write": peer.workload.samples / (closed - start),
        "write_synced": peer.workload.samples / (synced - start),
    }


def sync(folder: Path) -> int:
    """Brings all files to the disk; returns their size."""
    total = 0
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                total += path.stat().st_size
    return total


def read(task: Task) -> dict[str, Any]:
    peer, import_ms = load(task)
    answer: dict[str, Any] = {
        "version": importlib.metadata.version(task.distribution),
        "import_ms": import_ms,
        "shuffle_kind": peer.shuffle,
        "draws": peer.draws,
        "unsupported": {},
    }
    start = time.perf_counter()
    peer.open()
    first = next(iter(peer.ordered()))
    peer.count([first])
    answer["open_ms"] = (time.perf_counter() - start) * 1e3
    del first
    seeds = random.Random(task.seed)  # noqa: S311
    passes: dict[str, Callable[[], Iterator[Any]]] = {
        "ordered": peer.ordered,
        "shuffled": lambda: peer.shuffled(seeds.randrange(1 << 31)),
        "weighted": lambda: peer.weighted(seeds.randrange(1 << 31)),
    }
    for name, make in passes.items():
        whole = name == "ordered" or (name == "shuffled" and peer.shuffle != "draws")
        with unless_unsupported(answer, name):
            answer[name] = passed(peer, make, task.cap, whole=whole)
    with unless_unsupported(answer, "one"):
        answer["one_us"] = one(peer, task)
    check(peer, task, answer)
    return answer


@contextmanager
def unless_unsupported(answer: dict[str, Any], name: str) -> Iterator[None]:
    try:
        yield
    except UnsupportedError as reason:
        answer["unsupported"][name] = str(reason)


def passed(
    peer: Peer[Any], make: Callable[[], Iterator[Any]], cap: float, *, whole: bool
) -> dict[str, Any]:
    """Two passes, of which the second counts; one if the first takes half of the time allowed."""
    expected = Tally(
        peer.workload.samples,
        peer.workload.total_bytes,
        int(peer.workload.columns.label.sum()),
    )
    result: dict[str, Any] = {}
    for _ in range(2):
        gc.collect()
        start = time.perf_counter()
        found, complete = counted(peer, make(), cap)
        seconds = time.perf_counter() - start
        if complete and (found != expected if whole else found.samples != expected.samples):
            message = f"a pass delivered {found}, expected {expected}"
            raise RuntimeError(message)
        result = {"rate": found.samples / seconds, "complete": complete}
        if seconds > cap / 2:
            break
    return result


def counted(peer: Peer[Any], records: Iterator[Any], cap: float) -> tuple[Tally, bool]:
    """Counts in pieces of about a twentieth of a second, and looks at the clock between them."""
    start = before = time.perf_counter()
    total, piece = Tally(0, 0, 0), 64
    while True:
        part = peer.count(islice(records, piece))
        total = Tally(*(a + b for a, b in zip(total, part, strict=True)))
        now = time.perf_counter()
        if part.samples < piece:
            return total, True
        if now - start > cap:
            return total, total.samples == peer.workload.samples
        if now - before < PIECE_SECONDS:
            piece *= 2
        before = now


def one(peer: Peer[Any], task: Task) -> float:
    """The median time of one sample by its row, in microseconds, payload and metadata touched."""
    rows = np.random.default_rng(task.seed).integers(0, peer.workload.samples, SINGLE_READS)
    times: list[int] = []
    clock = time.perf_counter_ns
    touch = peer.touch
    touch(peer.one(0))
    end = time.perf_counter() + task.cap / 2
    for row in rows.tolist():
        start = clock()
        touch(peer.one(row))
        times.append(clock() - start)
        if time.perf_counter() > end:
            break
    return statistics.median(times) / 1e3


def check(peer: Peer[Any], task: Task, answer: dict[str, Any]) -> None:
    """Compares content: the first samples, some by their row; shuffled must not be ordered."""
    workload = peer.workload
    wrong: list[str] = []

    def compare(record: object, row: int) -> None:
        data, fields = peer.plain(record)
        known = workload.fields(row)
        if data != workload.payload(row):
            wrong.append(f"payload of row {row}")
        elif fields != known:
            near = math.isclose(float(fields["score"]), float(known["score"]), rel_tol=1e-6)
            if near and {**fields, "score": known["score"]} == known:
                # A property of the library rather than of this run: it is told beside its figures.
                answer["rounds_floats"] = True
            else:
                wrong.append(f"metadata of row {row}: {fields}, written {known}")

    for row, record in enumerate(islice(peer.ordered(), CHECKED_IN_ORDER)):
        compare(record, row)
    try:
        random_rows = np.random.default_rng(task.seed + 1).integers(
            0, workload.samples, CHECKED_BY_ROW
        )
        for row in random_rows.tolist():
            compare(peer.one(row), row)
    except UnsupportedError:
        pass
    order = [peer.plain(record)[0] for record in islice(peer.shuffled(task.seed), 64)]
    if order == [workload.payload(row) for row in range(64)]:
        wrong.append("shuffled is ordered")
    answer["wrong"] = wrong[:3]


if __name__ == "__main__":
    main()
