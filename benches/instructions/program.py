"""What is counted, run under callgrind: `python -m benches.instructions.program FOLDER`.

Each case is done once and then three times, between calls of `getppid`, at which callgrind writes
down what it has counted so far: see `count.py`. The difference is the cost of two more passes,
without that of starting and ending.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benches.product import ORDERS, Product, batches_as_buffer, read_both, read_payload_only
from benches.workloads import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLES = 2_048
WORK = Workload("instructions", SAMPLES, 256)
BATCH = 256
PASSES = (1, 3)
NAMES = (
    "ordered",
    "shuffled",
    "weighted",
    "ordered, payload only",
    "shuffled, batches of 256",
    "write",
)


def cases(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """One pass of each, in the order of `NAMES`."""
    # One worker: with more of them, who waits for whom depends on the scheduler.
    product = Product(1, folder)
    path = product.write(WORK, "cache")
    for order in ORDERS:
        dataset = product.open_reading(WORK, path, order)
        yield order, lambda dataset=dataset: read_both(dataset)  # type: ignore[misc]
    in_order, shuffled = product.open(path), product.open(path, "shuffled")
    yield "ordered, payload only", lambda: read_payload_only(in_order)
    yield "shuffled, batches of 256", lambda: batches_as_buffer(shuffled, BATCH)
    written = iter(range(100))
    yield "write", lambda: product.write(WORK, f"written-{next(written)}")


def main() -> None:
    gc.disable()
    for _, once in cases(Path(sys.argv[1])):
        once()
        for passes in PASSES:
            gc.collect()
            os.getppid()
            for _ in range(passes):
                once()
            os.getppid()


if __name__ == "__main__":
    main()
