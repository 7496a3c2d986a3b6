"""Entry: `python -m benches.peers`. Rounds go on where an earlier call stopped."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benches.report import MEANINGLESS, Machine, machine

from .catalogue import CATALOGUE, DISK, EVERY, OURS
from .rounds import Plan, read_lines, run
from .summary import aligned, table, workload_summary


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benches.peers",
        description=f"Measures dataset_rt beside other libraries. Needs {DISK}.",
    )
    names = ", ".join(entry.name for entry in CATALOGUE)
    parser.add_argument("--only", action="append", metavar="NAME", help=f"of: {names}")
    parser.add_argument("--rounds", type=int, help="rounds of each (default 5, 1 with --quick)")
    parser.add_argument(
        "--workloads", default=",".join(EVERY), help=f"default {','.join(EVERY)}", metavar="A,B"
    )
    parser.add_argument("--quick", action="store_true", help="tiny data, one round: a smoke test")
    parser.add_argument("--fresh", action="store_true", help="drop the rounds that are there")
    parser.add_argument("--dir", type=Path, default=Path("bench-results"), help="data and results")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    folder: Path = options.dir
    folder.mkdir(parents=True, exist_ok=True)
    place = machine(folder, 2)
    lines = folder / "peers.jsonl"
    if options.fresh:
        lines.unlink(missing_ok=True)
    claim(lines, place)
    print("\n".join(place.lines()), flush=True)
    wanted = tuple(options.workloads.split(","))
    if unknown := sorted(set(wanted) - set(EVERY)):
        sys.exit(f"--workloads: no {', '.join(unknown)}; there are {', '.join(EVERY)}")
    only: list[str] | None = options.only
    known = {entry.name for entry in CATALOGUE}
    if only and (strange := sorted(set(only) - known)):
        sys.exit(f"--only: no {', '.join(strange)}; there are {', '.join(sorted(known))}")
    chosen = tuple(e for e in CATALOGUE if not only or e.name in only or e.name == OURS)
    rounds = options.rounds or (1 if options.quick else 5)
    try:
        run(Plan(chosen, wanted, rounds, options.quick, folder, lines))
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", flush=True)
    report(lines, folder / "peers.json", quick=options.quick)
    if options.quick:
        print("\nA quick run shows that all runs, not how fast.")
    elif place.build != "release":
        print(MEANINGLESS)


def claim(lines: Path, place: Machine) -> None:
    """Rounds of one file are of one machine and one build: ratios would mean nothing otherwise."""
    if not lines.is_file():
        lines.write_text(json.dumps({"machine": asdict(place)}) + "\n", encoding="utf-8")
        return
    before = read_lines(lines)[0]["machine"]
    changed = [name for name, value in asdict(place).items() if before.get(name) != value]
    if changed:
        sys.exit(f"{lines} was made with another {', '.join(changed)}: --fresh starts anew")


def report(lines: Path, path: Path, *, quick: bool) -> None:
    """Prints the tables and writes the summary."""
    known = read_lines(lines)
    tables: dict[str, list[dict[str, Any]]] = {}
    for workload in EVERY:
        rows = workload_summary(known, workload, quick=quick)
        if rows:
            tables[workload] = rows
            print(f"\n{workload}")
            print("\n".join(aligned(list(table(rows)))), flush=True)
    content = {
        "format": "dataset_rt peers run",
        "version": 1,
        "time": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": known[0]["machine"],
        "workloads": tables,
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\n(ratios: speed over that of {OURS} in the same round; † cut off after some seconds)")
    print(f"{path}, single rounds in {lines}")


if __name__ == "__main__":
    main()
