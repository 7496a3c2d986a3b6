"""Entry: `python -m benches.run`. Prints the table and writes the JSON beside it."""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import tempfile
from pathlib import Path

from dataset_rt import _native

from . import limit
from .blocks import Bench
from .measure import Block, Outcome, measure
from .product import Product
from .report import MEANINGLESS, document, machine, save, table
from .workloads import workloads


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benches.run", description="Measures dataset_rt on this machine."
    )
    parser.add_argument("--quick", action="store_true", help="tiny data, one round: a smoke test")
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="blocks to run, like W1.read or '*.write'; may be repeated",
    )
    parser.add_argument(
        "--case",
        action="append",
        metavar="PATTERN",
        help="cases to run, like 'shuffled/*' or '*/limit'; may be repeated",
    )
    parser.add_argument("--rounds", type=int, help="rounds that count (default 5, 1 with --quick)")
    parser.add_argument("--workers", type=int, default=2, help="worker threads (default 2)")
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("bench-results"),
        help="where data and results go; a full run needs 7 GB free (default bench-results)",
    )
    parser.add_argument(
        "--data", type=Path, help="a folder of data that is kept, and used again by later runs"
    )
    return parser.parse_args()


def chosen(blocks: list[Block], patterns: list[str] | None) -> list[Block]:
    if not patterns:
        return blocks
    found = [
        block
        for block in blocks
        if any(fnmatch.fnmatchcase(block.name, pattern) for pattern in patterns)
    ]
    if not found:
        names = ", ".join(block.name for block in blocks)
        message = f"--only {' '.join(patterns)} names no block; there are {names}"
        raise SystemExit(message)
    return found


def main() -> None:
    options = arguments()
    rounds = options.rounds or (1 if options.quick else 5)
    results: Path = options.dir
    results.mkdir(parents=True, exist_ok=True)
    kept: Path | None = options.data
    data = kept or Path(tempfile.mkdtemp(prefix="data-", dir=results))
    data.mkdir(parents=True, exist_ok=True)
    try:
        outcomes = run(options, rounds, data)
    finally:
        if kept is None:
            shutil.rmtree(data)
    place = machine(results, options.workers)
    path = save(document(place, outcomes, quick=options.quick), results)
    print(f"\n{path}")


def run(options: argparse.Namespace, rounds: int, data: Path) -> list[Outcome]:
    """Measures the chosen blocks and prints each as it is done."""
    place = machine(data, options.workers)
    print("\n".join(place.lines()), flush=True)
    meaningful = _native.build_profile == "release" and not options.quick
    if _native.build_profile != "release":
        print(MEANINGLESS, flush=True)
    try:
        module = limit.build(data)
    except limit.LimitUnavailableError as reason:
        module = None
        print(f"WARNING: no native limit to compare with: {reason}", flush=True)
    product = Product(options.workers, data)
    work = workloads(quick=options.quick)
    bench = Bench(product, module, data, work, keep_data=options.data is not None)
    outcomes: list[Outcome] = []
    for block in chosen(bench.blocks(), options.only):
        outcome = measure(block, rounds, patient=not options.quick, only=options.case)
        if outcome.cases:
            outcomes.append(outcome)
            print("\n".join(table(outcome)), flush=True)
    if not meaningful:
        print(
            MEANINGLESS if not options.quick else "\nA quick run shows that all runs, not how fast."
        )
    return outcomes


if __name__ == "__main__":
    main()
