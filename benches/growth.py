"""What a sample costs as datasets grow: `python -m benches.growth`."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dataset_rt import _native

from . import limit, memory
from .limit import Limit, LimitModule
from .loops import FlatFile
from .measure import Block, Case, Unit, measure
from .product import Order, Product, first_sample, read_both
from .report import MEANINGLESS, document, machine, save, table
from .tally import Tally, milliseconds, samples_per_second
from .workloads import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    import dataset_rt as drt

SIZES = {"100k": 100_000, "1M": 1_000_000, "10M": 10_000_000}
LONG_NAME, LONG_SIZE = "100M", 100_000_000
PAYLOAD = 128
LONG_PAYLOAD = 8
PASS = 1_000_000
"""A pass reads at most so many samples: of a larger dataset a part, from everywhere if shuffled."""
GIGABYTES = 6
LONG_GIGABYTES = 16


@dataclass(frozen=True)
class Growth:
    """All sizes side by side: each round measures every one of them."""

    product: Product
    limit: LimitModule | None
    folder: Path
    work: tuple[Workload, ...]

    @contextmanager
    def cases(self) -> Iterator[list[Case]]:
        found: list[Case] = []
        flats: list[FlatFile] = []
        for workload in self.work:
            path = self.product.write(workload, workload.name)
            flat = FlatFile(workload, self.folder / f"{workload.name}.flat")
            flats.append(flat)
            for order in ("ordered", "shuffled"):
                found += self._passes(workload, path, flat, order)
            found += [
                Case(
                    f"{workload.name}, open and first sample",
                    "dataset_rt",
                    partial(milliseconds, partial(first_sample, self.product, path)),
                    Unit.MILLISECONDS,
                ),
                Case(
                    f"{workload.name}, memory of a shuffled pass",
                    "dataset_rt",
                    partial(memory.peak, "read", path, PASS),
                    Unit.MEBIBYTES,
                ),
            ]
        try:
            yield found
        finally:
            for flat in flats:
                flat.close()

    def _passes(
        self, workload: Workload, path: Path, flat: FlatFile, order: Order
    ) -> Iterator[Case]:
        count = min(PASS, workload.samples)
        work = f"{workload.name}, {order}"
        total = Tally(count, count * workload.payload_bytes)
        beside: tuple[str, ...] = ()
        if self.limit is not None:
            beside = ("limit",)
            whole = np.arange(count, dtype=np.int64)
            rows = whole if order == "ordered" else workload.permutation[:count]
            scan = partial(Limit(self.limit, flat).both, rows)
            yield Case(work, "limit", partial(samples_per_second, scan, total))
        read = partial(_one_pass, self.product.open(path, order), count)
        yield Case(work, "dataset_rt", partial(samples_per_second, read, total), beside=beside)


def _one_pass(dataset: drt.CachedDataset, count: int) -> Tally:
    dataset.set_epoch_len(count)
    return read_both(dataset)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny data, one round: a smoke test")
    parser.add_argument(
        "--long",
        action="store_true",
        help=f"{LONG_SIZE:,} samples of {LONG_PAYLOAD} B too; {LONG_GIGABYTES} GB of disk",
    )
    parser.add_argument("--rounds", type=int, help="rounds that count (default 5, 1 with --quick)")
    parser.add_argument("--workers", type=int, default=2, help="worker threads (default 2)")
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("bench-results"),
        help=f"where data and results go; needs {GIGABYTES} GB (default bench-results)",
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    rounds = options.rounds or (1 if options.quick else 5)
    results: Path = options.dir
    results.mkdir(parents=True, exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="growth-", dir=results))
    share = 1_000 if options.quick else 1
    work = [Workload(name, size // share, PAYLOAD) for name, size in SIZES.items()]
    if options.long:
        work.append(Workload(LONG_NAME, LONG_SIZE // share, LONG_PAYLOAD))
    place = machine(data, options.workers)
    print("\n".join(place.lines()), flush=True)
    try:
        module: LimitModule | None = limit.build(data)
    except limit.LimitUnavailableError as reason:
        module = None
        print(f"WARNING: no native limit to compare with: {reason}", flush=True)
    growth = Growth(Product(options.workers, data), module, data, tuple(work))
    block = Block("growth", f"passes of at most {PASS:,} samples", growth.cases)
    try:
        outcome = measure(block, rounds, patient=not options.quick)
    finally:
        shutil.rmtree(data)
    print("\n".join(table(outcome)))
    if _native.build_profile != "release":
        print(MEANINGLESS)
    path = save(document(place, [outcome], quick=options.quick), results, "growth")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
