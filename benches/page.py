"""Writes the pages of figures in docs/ from the results of the runs: `python -m benches.page`.

Their texts are in `page.md` and `page_expressions.md`; every figure comes from JSON files in
`bench-results`. Of each block the latest run of one build counts; on a page a build's runs are
never mixed with another's. A page without results stays as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .peers.catalogue import DISK, EVERY, OURS
from .peers.summary import KINDS, cell
from .targets import EXPRESSIONS, TARGETS, Results, amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTHING = "Not run yet on this machine."
SHUFFLES = {"all": "", "blocks": "◦", "buffer": "▫", "draws": ""}


class PageError(Exception):
    """The results do not make a page."""


@dataclass(frozen=True)
class Page:
    """A page of docs/."""

    name: str
    template: str
    of_expressions: bool
    """Whether it shows runs of `make bench-expressions`; it shows the others else."""

    def runs(self, folder: Path, *, every: bool) -> list[dict[str, Any]]:
        """The runs that it shows: those of the build of the latest one."""
        runs = [
            run
            for run in map(_load, sorted(folder.glob("*.json")))
            if _is_of_expressions(run) == self.of_expressions
            and (every or not (run["quick"] or run["machine"]["build"] != "release"))
        ]
        if runs:
            # The others are of the past.
            module = max(runs, key=lambda run: str(run.get("time", "")))["machine"]["module"]
            runs = [run for run in runs if run["machine"]["module"] == module]
        return runs

    def text(self, runs: list[dict[str, Any]]) -> str:
        """The whole page."""
        results = Results()
        for run in runs:
            for block in run.get("blocks", ()):
                cases = {f"{case['work']}/{case['way']}": case for case in block["cases"]}
                # A later run of some cases of a block leaves the others.
                results.blocks[block["name"]] = results.blocks.get(block["name"], {}) | cases
            results.peers |= run.get("workloads", {})
        targets = _targets_of_expressions if self.of_expressions else _targets
        parts = {
            "disk": DISK,
            "machine": _machine(runs),
            "targets": "\n".join(targets(results)),
            "peers": "\n".join(_peers(results)) or NOTHING,
            "notes": "\n".join(_notes(results)),
            "growth": "\n".join(_block(results, "growth")) or NOTHING,
            "bench": "\n".join(_all_blocks(results)) or NOTHING,
            "expressions": "\n".join(_expressions(results)) or NOTHING,
        }
        text = Path(__file__).with_name(self.template).read_text(encoding="utf-8")
        for name, part in parts.items():
            text = text.replace("{{" + name + "}}", part)
        if mark := re.search(r"\{\{.*?\}\}", text):
            message = f"{self.template} has {mark.group()}, which is no part of a page"
            raise PageError(message)
        return text


READING = Page("benchmarks.md", "page.md", of_expressions=False)
EXPRESSIONS_PAGE = Page("benchmarks-expressions.md", "page_expressions.md", of_expressions=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.page", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("bench-results"), help="the results")
    parser.add_argument("--out", type=Path, default=DOCS, help="a folder (default docs)")
    parser.add_argument("--any", action="store_true", help="quick runs and debug builds too")
    options = parser.parse_args()
    for page in (READING, EXPRESSIONS_PAGE):
        runs = page.runs(options.dir, every=options.any)
        path = options.out / page.name
        if not runs:
            print(f"{path} is left as it is: no results")
            continue
        try:
            text = page.text(runs)
        except PageError as error:
            sys.exit(str(error))
        path.write_text(text, encoding="utf-8")
        print(path)


def _load(path: Path) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not str(run.get("format", "")).startswith("dataset_rt"):
        message = f"{path} is no result of a benchmark"
        raise PageError(message)
    return run


def _is_of_expressions(run: dict[str, Any]) -> bool:
    return any(block["name"].startswith(EXPRESSIONS) for block in run.get("blocks", ()))


def _machine(runs: list[dict[str, Any]]) -> str:
    if not runs:
        return "No runs of a release build were found: the tables below are empty."
    place = runs[-1]["machine"]
    times = sorted(str(run["time"])[:10] for run in runs if "time" in run)
    return (
        f"Figures of {times[-1] if times else 'an unknown day'}: {place['cpu']}, {place['cores']} "
        f"cores, {place['memory_gib']:.1f} GiB, {place['file_system']}; {place['kernel']}; "
        f"dataset_rt {place['dataset_rt']} ({place['build']} build), Python {place['python']}, "
        f"Polars {place['polars']}, NumPy {place['numpy']}."
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*cells: str) -> Iterator[str]:
    yield _row(cells)
    yield "|" + "---|" * len(cells)


def _table_of_targets(results: Results, *, of_expressions: bool) -> Iterator[str]:
    yield from _head("work", "target", "found", "", "command")
    for target in TARGETS:
        if (target.kind == "expressions") != of_expressions:
            continue
        found = target.found(results)
        verdict = {None: "", True: "met", False: "**missed**"}[found.met]
        yield _row([target.work, target.aim, found.text, verdict, f"`{target.command}`"])


def _targets(results: Results) -> Iterator[str]:
    yield from _table_of_targets(results, of_expressions=False)
    for order in ("ordered", "shuffled"):
        aim = "flat within 20 % beyond the limit's own growth"
        yield _row([f"cost a sample, 100 k to 10 M, {order}", aim, *_flat(results, order)])
    aim = "3 times that of 1 M"
    yield _row(["open and first sample, 100 M", aim, *_open_long(results)])
    yield _row(["one sample by its row, W1 and W3", "at most bagz's `reader[i]`", *_one(results)])
    reading, writing = ("ordered", "shuffled", "weighted"), ("write, on disk",)
    yield _row(["every row of reading", "never below any peer", *_first(results, reading)])
    yield _row(["every row of writing", "never below any peer", *_first(results, writing)])


def _targets_of_expressions(results: Results) -> Iterator[str]:
    yield from _table_of_targets(results, of_expressions=True)
    plain = ("NumPy", "plain Polars")
    aim = f"never slower than {' or '.join(plain)}"
    yield _row(["every expression", aim, *_beside(results, plain, 1)])
    slow = ("scikit-learn", "map_elements")
    yield _row(["every expression", f"20 times {' and '.join(slow)}", *_beside(results, slow, 20)])


def _flat(results: Results, order: str) -> list[str]:
    """How much more a sample of the largest dataset costs than one of the smallest."""
    grown: list[float] = []
    for way in ("dataset_rt", "limit"):
        cases = [results.case("growth", f"{size}, {order}/{way}") for size in ("100k", "10M")]
        if any(case is None for case in cases):
            return ["not run", "", "`make bench-growth`"]
        small, large = (case["median"] for case in cases if case is not None)
        grown.append(small / large)
    text = f"{grown[0]:.2f} times; limit {grown[1]:.2f} times"
    met = grown[0] <= 1.2 * max(grown[1], 1.0)
    return [text, "met" if met else "**missed**", "`make bench-growth`"]


def _open_long(results: Results) -> list[str]:
    command = "`make bench-growth GROWTH=--long`"
    names = (f"{size}, open and first sample/dataset_rt" for size in ("1M", "100M"))
    short, long = (results.case("growth", name) for name in names)
    if short is None or long is None:
        return ["not run", "", command]
    met = long["median"] <= 3 * short["median"]
    text = f"{long['median']:.2f} ms against {short['median']:.2f} ms"
    return [text, "met" if met else "**missed**", command]


def _first(results: Results, kinds: tuple[str, ...]) -> list[str]:
    """Whether anything is faster than ours in columns of the tables of peers."""
    ahead = [
        f"{row['peer']}, {workload} {kind} ({ratio:.2f})"
        for workload, rows in results.peers.items()
        for row in rows
        for kind in kinds
        if row["peer"] != OURS
        and (ratio := row.get("figures", {}).get(kind, {}).get("speed_over_ours") or 0) > 1
    ]
    if not results.peers:
        return ["not run", "", "`make bench-peers`"]
    verdict = "**missed**" if ahead else "met"
    return ["; ".join(ahead) or "first on every row", verdict, "`make bench-peers`"]


def _beside(results: Results, ways: tuple[str, ...], least: float) -> list[str]:
    """Whether every expression is so many times as fast as ways whose names start like these."""
    ratios = [
        (name.removeprefix(EXPRESSIONS), case["work"], _way(key, case["work"]), ratio)
        for name, cases in results.blocks.items()
        if name.startswith(EXPRESSIONS)
        for case in cases.values()
        for key, ratio in case["speed_over"].items()
        if _way(key, case["work"]).startswith(ways)
    ]
    if not ratios:
        return ["not run", "", "`make bench-expressions`"]
    behind = [
        f"{name if work == name else f'{name}, {work}'}: {way} ({ratio:.2f})"
        for name, work, way, ratio in ratios
        if ratio < least
    ]
    lowest = min(ratio for *_, ratio in ratios)
    text = "; ".join(behind) or f"at least {lowest:.1f} times, {len(ratios)} ratios"
    return [text, "**missed**" if behind else "met", "`make bench-expressions`"]


def _one(results: Results) -> list[str]:
    """Our median time of a single sample beside that of bagz."""
    parts: list[str] = []
    met = True
    for workload in ("W1", "W3"):
        rows = {row["peer"]: row.get("figures", {}) for row in results.peers.get(workload, ())}
        ours, bagz = (rows.get(name, {}).get("one sample") for name in (OURS, "bagz"))
        if ours and bagz:
            parts.append(f"{ours['median']:.2f} µs against {bagz['median']:.2f} µs")
            met &= bagz["speed_over_ours"] <= 1
    command = "`make bench-peers PEERS='--only bagz --workloads W1,W3'`"
    if not parts:
        return ["not run", "", command]
    return ["; ".join(parts), "met" if met else "**missed**", command]


def _peers(results: Results) -> Iterator[str]:
    for workload in EVERY:
        rows = results.peers.get(workload)
        if not rows:
            continue
        yield f"\n### {workload}\n"
        yield from _head("library", *(kind.name for kind in KINDS))
        for row in rows:
            if "error" in row:
                yield _row([row["peer"], row["error"].replace("|", "/"), *[""] * (len(KINDS) - 1)])
                continue
            cells = [cell(row, kind) for kind in KINDS]
            shuffled = [kind.name for kind in KINDS].index("shuffled")
            cells[shuffled] += SHUFFLES[row["shuffle_kind"]]
            name = row["peer"] + ("~" if row["rounds_floats"] else "")
            yield _row([name, *cells])


def _notes(results: Results) -> Iterator[str]:
    """How each library is used, with its version."""
    known = {row["peer"]: row for rows in results.peers.values() for row in rows}
    if known:
        yield from _head("library", "version", "as used here")
    for row in known.values():
        yield _row([row["peer"], row.get("version", "-"), row["note"]])


def _block(results: Results, name: str) -> Iterator[str]:
    cases = results.blocks.get(name)
    if not cases:
        return
    yield from _head("work", "way", "median", "least", "greatest", "beside")
    for case in cases.values():
        unit = case["unit"]
        values = [amount(case[part], unit) for part in ("median", "least", "greatest")]
        beside = (
            f"{ratio:.2f} x {_way(key, case['work'])}" for key, ratio in case["speed_over"].items()
        )
        yield _row([case["work"], case["way"], *values, ", ".join(beside)])


def _way(key: str, work: str) -> str:
    return key.removeprefix(f"{work}/")


def _all_blocks(results: Results) -> Iterator[str]:
    for name in results.blocks:
        if name != "growth":
            yield f"\n### {name}\n"
            yield from _block(results, name)


def _expressions(results: Results) -> Iterator[str]:
    for name in results.blocks:
        yield f"\n### {name.removeprefix(EXPRESSIONS)}\n"
        yield from _block(results, name)


if __name__ == "__main__":
    main()
