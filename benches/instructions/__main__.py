"""Entry: `python -m benches.instructions`. Compares with the baseline, or writes it anew."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataset_rt import _native

from .count import CallgrindError, count, valgrind

if TYPE_CHECKING:
    from .count import Count

BASELINE = Path(__file__).with_name("baseline.json")
TOLERANCE = 0.10
"""Room for the scheduler, and for changes of Python and of the libraries that are linked."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benches.instructions",
        description="Counts instructions a sample and compares them with baseline.json.",
    )
    parser.add_argument("--update", action="store_true", help="make what is found the baseline")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="the N costliest functions")
    return parser.parse_args()


def place() -> str:
    """Counts of different compilers' output, interpreters or builds are not compared."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.machine()}, CPython {python}, {_native.build_profile} build"


def main() -> None:
    options = arguments()
    try:
        valgrind()
    except CallgrindError as reason:
        print(f"instruction counts skipped: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="instructions-") as folder:
        counts = count(Path(folder))
    crc = counts[0].crc_function()
    print(f"{place()}; checksums by {crc} (valgrind knows no AVX-512)")
    known = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.is_file() else {}
    before = known.get(place())
    if options.update:
        known[place()] = {
            "checksums": crc,
            "instructions": {found.case: round(found.instructions) for found in counts},
        }
        BASELINE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        before = known[place()]
    grown = compare(counts, before)
    for found in counts if options.top else ():
        print(f"\n{found.case}")
        for name, cost in found.functions.most_common(options.top):
            print(f"  {cost:6,}  {name[:110]}")
    if before is None:
        print("no baseline for this place: nothing is compared; --update makes one")
    elif before["checksums"] != crc:
        print(f"the baseline's checksums are by {before['checksums']}: nothing is compared")
    elif grown:
        sys.exit(
            f"more than {TOLERANCE:.0%} above the baseline: {', '.join(grown)}. If the growth is "
            "wanted, --update writes a new one."
        )


def compare(counts: list[Count], before: dict[str, Any] | None) -> list[str]:
    """Prints the counts beside the baseline. Returns the cases that have grown too much."""
    grown: list[str] = []
    for found in counts:
        line = f"  {found.case:26} {found.instructions:8,.0f} instructions a sample"
        base = before["instructions"].get(found.case) if before else None
        if base:
            change = found.instructions / base - 1
            line += f"  {change:+.1%} of {base:,}"
            if change > TOLERANCE:
                grown.append(f"{found.case} by {change:.0%}")
        print(line)
    return grown


if __name__ == "__main__":
    main()
