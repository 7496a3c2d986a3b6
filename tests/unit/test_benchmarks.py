"""What the benchmarks make of results: wrong figures are worse than none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("numpy")

from benches.instructions.count import functions
from benches.page import EXPRESSIONS_PAGE, READING, Page
from benches.peers.catalogue import OURS
from benches.peers.summary import KINDS, cell, workload_summary

if TYPE_CHECKING:
    from pathlib import Path


def test_own_instructions_leave_out_those_of_callees(tmp_path: Path) -> None:
    dump = tmp_path / "callgrind.1"
    dump.write_text(
        "events: Ir\n\nfn=(1) outer\n10 100\ncfn=(2) inner\ncalls=3 20\n11 900\n+1 5\n\n"
        "fn=(2)\n20 300\n* 600\n\nfn=(1)\n12 7\n"
    )
    assert functions(dump) == {"outer": 112, "inner": 900}


def line(peer: str, stamp: str, rate: float, foreign: float = 0.0) -> dict[str, Any]:
    read = {
        "version": "1",
        "shuffle_kind": "all",
        "draws": "own",
        "unsupported": {},
        "foreign": foreign,
        "ordered": {"rate": rate, "complete": True},
        "open_ms": 1.0,
    }
    write = {
        "foreign": 0.0,
        "write": 1.0,
        "write_synced": 1.0,
        "samples": 10,
        "payload_bytes": 100,
        "stored_bytes": 150,
    }
    head = {"round": stamp, "workload": "W1", "quick": False, "peer": peer}
    return head | {"read": read, "write": write}


def test_ratios_are_taken_within_rounds() -> None:
    # A machine that slows down between rounds must not change who is faster.
    lines = [
        line(OURS, "a", 1000),
        line("bagz", "a", 500),
        line(OURS, "b", 100),
        line("bagz", "b", 50),
        line(OURS, "c", 10),
        line("bagz", "c", 5),
    ]
    ours, bagz = workload_summary(lines, "W1", quick=False)
    assert ours["figures"]["ordered"]["speed_over_ours"] == 1
    assert bagz["figures"]["ordered"]["speed_over_ours"] == 0.5
    assert bagz["figures"]["ordered"]["median"] == 50
    assert bagz["figures"]["bytes beside payload"]["median"] == 5


def test_disturbed_rounds_count_only_for_want_of_quiet_ones() -> None:
    quiet = [line(OURS, "a", 1000), line(OURS, "b", 10, foreign=0.5)]
    [row] = workload_summary(quiet, "W1", quick=False)
    assert row["figures"]["ordered"]["median"] == 1000
    [row] = workload_summary(quiet[1:], "W1", quick=False)
    assert row["figures"]["ordered"]["median"] == 10
    ordered = next(kind for kind in KINDS if kind.name == "ordered")
    assert cell(row, ordered).endswith("*")


def test_a_library_that_fails_is_a_row_that_says_why() -> None:
    failed = {"round": "a", "workload": "W1", "quick": False, "peer": "bagz", "error": "no wheel"}
    [row] = workload_summary([failed], "W1", quick=False)
    assert (row["peer"], row["error"]) == ("bagz", "no wheel")


def run(module: str, time: str, rate: float) -> dict[str, Any]:
    case = {
        "work": "ordered",
        "way": "dataset_rt",
        "unit": "samples/s",
        "median": rate,
        "least": rate,
        "greatest": rate,
        "speed_over": {"ordered/limit": rate / 1e6},
    }
    place = dict.fromkeys(
        ("cpu", "cores", "file_system", "kernel", "python", "polars", "numpy", "dataset_rt"), "x"
    )
    machine = {**place, "memory_gib": 1.0, "build": "release", "module": module}
    return {
        "format": "dataset_rt benchmark run",
        "time": time,
        "quick": False,
        "machine": machine,
        "blocks": [{"name": "W1.read", "cases": [case]}],
    }


def page(folder: Path, which: Page = READING) -> str:
    return which.text(which.runs(folder, every=False))


@pytest.mark.parametrize(("rate", "verdict"), [(950_000, "| met |"), (850_000, "**missed**")])
def test_the_page_says_which_targets_are_met(tmp_path: Path, rate: float, verdict: str) -> None:
    (tmp_path / "bench-1.json").write_text(json.dumps(run("new", "2026-01-02", rate)))
    # An older build's run is left out, whatever its name.
    (tmp_path / "bench-2.json").write_text(json.dumps(run("old", "2026-01-01", 990_000)))
    [found] = [text for text in page(tmp_path).splitlines() if text.startswith("| W1 ordered |")]
    assert verdict in found
    assert f"{rate / 1e6:.0%}" in found


def test_a_page_without_results_has_no_figures(tmp_path: Path) -> None:
    for which in (READING, EXPRESSIONS_PAGE):
        assert "not run" in page(tmp_path, which)
        assert "{{" not in page(tmp_path, which)


def test_a_build_of_expressions_is_no_build_of_reading(tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text(json.dumps(run("old", "2026-01-01", 950_000)))
    newer = run("new", "2026-01-02", 1.0)
    newer["blocks"] = [expression("one", {"NumPy": 1.5})]
    (tmp_path / "expressions.json").write_text(json.dumps(newer))
    [found] = [text for text in page(tmp_path).splitlines() if text.startswith("| W1 ordered |")]
    assert "95%" in found
    assert "### one" not in page(tmp_path)
    assert "### one" in page(tmp_path, EXPRESSIONS_PAGE)


def expression(name: str, ratios: dict[str, float]) -> dict[str, Any]:
    case = {
        "work": name,
        "way": "dataset_rt",
        "unit": "ms",
        "median": 1.0,
        "least": 1.0,
        "greatest": 1.0,
        "speed_over": {f"{name}/{way}": ratio for way, ratio in ratios.items()},
    }
    return {"name": f"expressions.{name}", "cases": [case]}


def _every_expression(folder: Path) -> list[str]:
    lines = page(folder, EXPRESSIONS_PAGE).splitlines()
    return [text for text in lines if text.startswith("| every expression")]


def test_the_page_names_the_expressions_that_fall_short(tmp_path: Path) -> None:
    found = run("new", "2026-01-02", 1.0)
    found["blocks"] = [
        expression("one", {"NumPy": 1.5, "plain Polars hash": 0.8, "scikit-learn": 19.0}),
        expression("two", {"NumPy bincount": 1.0, "map_elements": 40.0}),
    ]
    (tmp_path / "expressions-1.json").write_text(json.dumps(found))
    lines = _every_expression(tmp_path)
    plain, slow = lines
    assert "| one: plain Polars hash (0.80) | **missed** |" in plain
    assert "| one: scikit-learn (19.00) | **missed** |" in slow
    found["blocks"] = found["blocks"][1:]
    (tmp_path / "expressions-1.json").write_text(json.dumps(found))
    lines = _every_expression(tmp_path)
    assert all("| met |" in text for text in lines)
