"""One kind of work again and again, for profilers: `python -m benches.passes W1 shuffled`."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .product import ORDERS, Product, batches_as_buffer, read_both, read_payload_only
from .tally import Tally, samples_per_second
from .workloads import Workload, workloads

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 256
WORK = (*ORDERS, "payload", "batches", "write")


def main() -> None:
    known = workloads(quick=False)
    parser = argparse.ArgumentParser(prog="python -m benches.passes", description=__doc__)
    parser.add_argument("workload", choices=list(known))
    parser.add_argument("work", choices=WORK, help="payload and batches are shuffled")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path("bench-results/profiled"))
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    workload = known[options.workload]
    product = Product(options.workers, options.data)
    run = once(product, workload, options.work, options.data)
    total = Tally(workload.samples, workload.total_bytes)
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        print(f"{samples_per_second(run, total):,.0f} samples/s", flush=True)


def once(product: Product, workload: Workload, work: str, folder: Path) -> Callable[[], Tally]:
    """One pass. The cache is written first where it is not there yet."""
    if work == "write":

        def write() -> Tally:
            product.remove("written")
            return product.write_tally(workload, "written")

        return write
    path = folder / workload.name
    if not path.exists():
        product.write(workload, workload.name)
    for order in ORDERS:
        if work == order:
            return partial(read_both, product.open_reading(workload, path, order))
    dataset = product.open(path, "shuffled")
    if work == "payload":
        return partial(read_payload_only, dataset)
    return partial(batches_as_buffer, dataset, BATCH)


if __name__ == "__main__":
    main()
