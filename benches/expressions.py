"""Expressions and scans beside other ways to the same: `python -m benches.expressions`.

A new expression is one `Row` in `expression_weights.py`, `expression_keys.py` or
`expression_draws.py`: ours, then the ways it is compared with. Ways that can must give the same
values, which is checked before they are timed.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dataset_rt import _native

from . import expression_draws, expression_keys, expression_scan, expression_weights
from .expression_frame import frame_of
from .expression_row import block
from .measure import Block, measure
from .report import MEANINGLESS, document, machine, save, table
from .targets import EXPRESSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 10_000_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benches.expressions",
        description="Measures expressions and scans beside other ways to the same.",
    )
    parser.add_argument("--quick", action="store_true", help="few rows, one round: a smoke test")
    parser.add_argument("--long", action="store_true", help="sample_weighted of 100 M rows too")
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="rows, like 'hash_*' or '*groups'; may be repeated",
    )
    parser.add_argument("--rounds", type=int, help="rounds that count (default 5, 1 with --quick)")
    parser.add_argument("--dir", type=Path, default=Path("bench-results"), help="for the results")
    parser.add_argument(
        "--torch",
        metavar="PYTHON",
        default=os.environ.get("DATASET_RT_TORCH", sys.executable),
        help="an interpreter that has torch (default $DATASET_RT_TORCH, or this one)",
    )
    return parser.parse_args()


def blocks(options: argparse.Namespace, torch: str | None) -> Iterator[Block]:
    """The chosen ones. What runs in other processes comes before the frame, which takes memory."""
    count = ROWS // (100 if options.quick else 1)
    others = expression_draws.blocks(count, torch, quick=options.quick, long=options.long)
    others.append(expression_scan.block(options.dir, quick=options.quick))
    for other in others:
        if chosen(other.name.removeprefix(EXPRESSIONS), options.only):
            yield other
    rows = [*expression_weights.rows(), *expression_keys.rows(), *expression_draws.rows(count)]
    rows = [row for row in rows if chosen(row.name, options.only)]
    if rows:
        frame = frame_of(count)
        yield from (block(row, frame) for row in rows)


def chosen(name: str, patterns: list[str] | None) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def main() -> None:
    options = arguments()
    rounds = options.rounds or (1 if options.quick else 5)
    folder: Path = options.dir
    folder.mkdir(parents=True, exist_ok=True)
    place = machine(folder, 0)
    print("\n".join(place.lines()), flush=True)
    version = expression_draws.torch_version(options.torch)
    if version is None:
        print(f"WARNING: {options.torch} has no torch: sample_weighted has nothing beside it")
    else:
        print(f"torch     {version}")
    outcomes = []
    for found in blocks(options, options.torch if version else None):
        outcome = measure(found, rounds, patient=not options.quick)
        outcomes.append(outcome)
        print("\n".join(table(outcome)), flush=True)
    if not outcomes:
        sys.exit(f"--only {' '.join(options.only)} names no row")
    if _native.build_profile != "release":
        print(MEANINGLESS)
    path = save(document(place, outcomes, quick=options.quick), folder, "expressions")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
