"""From the lines of the rounds to one table a workload."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benches.measure import FOREIGN_LIMIT

from .catalogue import CATALOGUE, OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Line = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """What one library reached in one kind of work."""

    median: float
    least: float
    greatest: float
    speed_over_ours: float | None
    """Median of the ratios within each round; above 1 is faster than ours, for times too."""
    rounds: int
    noisy: int
    """Rounds in which other processes used more than is allowed, for want of quiet ones."""


@dataclass(frozen=True)
class Kind:
    """A column: where a value stands in a line, and which way is better."""

    name: str
    phase: str
    get: Callable[[dict[str, Any]], float | None]
    unit: str
    more_is_better: bool = True


def _rate(name: str) -> Callable[[dict[str, Any]], float | None]:
    return lambda answer: answer[name]["rate"] if name in answer else None


def _plain(name: str) -> Callable[[dict[str, Any]], float | None]:
    return lambda answer: answer.get(name)


def _beside_payload(answer: dict[str, Any]) -> float:
    extra: float = answer["stored_bytes"] - answer["payload_bytes"]
    return extra / float(answer["samples"])


KINDS = (
    Kind("ordered", "read", _rate("ordered"), "samples/s"),
    Kind("shuffled", "read", _rate("shuffled"), "samples/s"),
    Kind("weighted", "read", _rate("weighted"), "samples/s"),
    Kind("one sample", "read", _plain("one_us"), "µs", more_is_better=False),
    Kind("open and first", "read", _plain("open_ms"), "ms", more_is_better=False),
    Kind("write", "write", _plain("write"), "samples/s"),
    Kind("write, on disk", "write", _plain("write_synced"), "samples/s"),
    Kind("bytes beside payload", "write", _beside_payload, "B", more_is_better=False),
)


def workload_summary(lines: list[Line], workload: str, *, quick: bool) -> list[dict[str, Any]]:
    """One entry a library, in the order of the catalogue; empty if the workload was not run."""
    mine = [line for line in lines if line.get("workload") == workload and line["quick"] == quick]
    found: list[dict[str, Any]] = []
    for entry in CATALOGUE:
        rounds = [line for line in mine if line["peer"] == entry.name]
        if not rounds:
            continue
        done = [line for line in rounds if "error" not in line]
        row: dict[str, Any] = {"peer": entry.name, "note": entry.note}
        if not done:
            row["error"] = rounds[-1]["error"]
            found.append(row)
            continue
        last = done[-1]["read"]
        row |= {
            "version": last["version"],
            "shuffle_kind": last["shuffle_kind"],
            "draws": last["draws"],
            "unsupported": last["unsupported"],
            "failures": len(rounds) - len(done),
            "rounds_floats": last.get("rounds_floats", False),
            "cut_off": [
                name
                for name in last
                if isinstance(last[name], dict) and not last[name].get("complete", True)
            ],
            "figures": {
                kind.name: asdict(figure)
                for kind in KINDS
                if (figure := _figure(done, mine, kind)) is not None
            },
        }
        found.append(row)
    return found


def _figure(done: list[Line], all_lines: list[Line], kind: Kind) -> Figure | None:
    quiet = [line for line in done if line[kind.phase]["foreign"] <= FOREIGN_LIMIT]
    used = quiet or done
    values = {line["round"]: kind.get(line[kind.phase]) for line in used}
    known = {stamp: value for stamp, value in values.items() if value is not None}
    if not known:
        return None
    ours = {
        line["round"]: kind.get(line[kind.phase])
        for line in all_lines
        if line["peer"] == OURS and "error" not in line
    }
    ratios = []
    for stamp, value in known.items():
        base = ours.get(stamp)
        if base and value > 0 and base > 0:
            ratios.append(value / base if kind.more_is_better else base / value)
    return Figure(
        median=statistics.median(known.values()),
        least=min(known.values()),
        greatest=max(known.values()),
        speed_over_ours=statistics.median(ratios) if ratios else None,
        rounds=len(known),
        noisy=0 if quiet else len(known),
    )


def cell(row: dict[str, Any], kind: Kind) -> str:
    """A figure as text, with its ratio; why there is none otherwise."""
    figure = row["figures"].get(kind.name)
    if figure is None:
        return "-"
    value = figure["median"]
    if kind.unit == "samples/s":
        text = f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:,.1f} k/s"
    else:
        text = f"{value:,.0f} {kind.unit}" if value >= 100 else f"{value:.1f} {kind.unit}"
    if kind.name in row["cut_off"]:
        text += "†"
    if figure["noisy"]:
        text += "*"
    ratio = figure["speed_over_ours"]
    if ratio is None or kind.name == "bytes beside payload" or row["peer"] == OURS:
        return text
    return f"{text} ({ratio:.2f})" if ratio >= 0.1 else f"{text} ({ratio:.3f})"


def table(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    """The head and the lines of a table, cell by cell."""
    yield ["library", *(kind.name for kind in KINDS)]
    for row in rows:
        name = f"{row['peer']}"
        if "error" in row:
            yield [name, row["error"], *[""] * (len(KINDS) - 1)]
        else:
            yield [name, *(cell(row, kind) for kind in KINDS)]


def aligned(cells: list[list[str]]) -> Iterator[str]:
    """Columns padded for a terminal. Errors may run over theirs."""
    widths = [
        max(len(line[place]) for line in cells if place == 0 or line[-1])
        for place in range(len(cells[0]))
    ]
    for line in cells:
        padded = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
        yield "  ".join(padded).rstrip()
