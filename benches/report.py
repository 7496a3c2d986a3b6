"""The printed table, the JSON beside it, and the machine that the figures belong to."""

from __future__ import annotations

import datetime as dt
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dataset_rt import _native

from .measure import FOREIGN_LIMIT, Case, Outcome, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

MEANINGLESS = "WARNING: a debug build of the native module: these figures mean nothing."


@dataclass(frozen=True)
class Machine:
    """Where and with what a run was made."""

    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    file_system: str
    python: str
    numpy: str
    polars: str
    dataset_rt: str
    build: str
    module: str
    """The start of the SHA-256 of the native module: runs of different builds are not mixed."""
    workers: int

    def lines(self) -> Iterator[str]:
        memory = f"{self.memory_gib:.1f} GiB"
        yield f"machine   {self.cpu}, {self.cores} cores, {memory}, {self.file_system}"
        yield f"system    {self.kernel}"
        yield (
            f"versions  dataset_rt {self.dataset_rt} ({self.build} build {self.module}), "
            f"Python {self.python}, Polars {self.polars}, NumPy {self.numpy}"
        )
        yield f"workers   {self.workers}"


def machine(folder: Path, workers: int) -> Machine:
    version = importlib.metadata.version
    return Machine(
        cpu=_cpu_model(),
        cores=_cores(),
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        file_system=_file_system(folder),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        numpy=version("numpy"),
        polars=version("polars"),
        dataset_rt=_native.__version__,
        build=_native.build_profile,
        module=_module_digest(),
        workers=workers,
    )


def _module_digest() -> str:
    path = importlib.util.find_spec("dataset_rt._native")
    if path is None or path.origin is None:
        return "unknown"
    return hashlib.sha256(Path(path.origin).read_bytes()).hexdigest()[:12]


def _cores() -> int:
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def _file_system(folder: Path) -> str:
    """The type of the file system that holds `folder`: the longest mount point above it."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "file system unknown"
    found = [(point, kind) for _, point, kind, *_ in map(str.split, mounts)]
    above = [(len(point), kind) for point, kind in found if folder.resolve().is_relative_to(point)]
    return max(above, default=(0, "file system unknown"))[1]


def _number(value: float, unit: Unit) -> str:
    if unit is not Unit.RATE:
        return f"{value:,.2f} {unit.value}"
    if value >= 1e6:
        return f"{value / 1e6:.2f} M/s"
    return f"{value / 1e3:.1f} k/s"


def _spread(values: list[float]) -> float:
    """Half the distance between the least and the greatest value, as a share of the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def _beside(outcome: Outcome, case: Case) -> str:
    parts = [
        f"{statistics.median(outcome.ratios(case, key)):.2f} x {name}"
        for name, key in case.references()
    ]
    return ", ".join(parts)


def table(outcome: Outcome) -> Iterator[str]:
    """One block: of each case the median, the spread, and its speed over that of others."""
    yield ""
    yield f"{outcome.block.name}   {outcome.block.title}"
    work = max(len(case.work) for case in outcome.cases)
    way = max(len(case.way) for case in outcome.cases)
    for case in outcome.cases:
        values = outcome.values(case.key)
        median = _number(statistics.median(values), case.unit)
        spread = f"±{_spread(values):.0%}" if len(values) > 1 else ""
        line = f"  {case.work:{work}}  {case.way:{way}}  {median:>12}  {spread:5}"
        yield f"{line}  {_beside(outcome, case)}".rstrip()
    yield f"  {_rounds(outcome)}"


def _rounds(outcome: Outcome) -> str:
    text = f"rounds: {len(outcome.kept)}"
    if outcome.dropped:
        text += f", dropped for other processes: {len(outcome.dropped)}"
    if outcome.noisy:
        text += (
            f"; WARNING: in {outcome.noisy} of them other processes used more than "
            f"{FOREIGN_LIMIT:.0%} of the processors"
        )
    return text


def document(place: Machine, outcomes: list[Outcome], *, quick: bool) -> dict[str, object]:
    """Everything the table shows and every single value behind it."""
    return {
        "format": "dataset_rt benchmark run",
        "version": 1,
        "time": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": asdict(place),
        "blocks": [_block(outcome) for outcome in outcomes],
    }


def _block(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.block.name,
        "title": outcome.block.title,
        "cases": [
            {
                "work": case.work,
                "way": case.way,
                "unit": case.unit.value,
                "median": statistics.median(outcome.values(case.key)),
                "least": min(outcome.values(case.key)),
                "greatest": max(outcome.values(case.key)),
                "speed_over": {
                    key: statistics.median(outcome.ratios(case, key))
                    for _, key in case.references()
                },
            }
            for case in outcome.cases
        ],
        "rounds": [asdict(turn) for turn in outcome.kept],
        "dropped": [asdict(turn) for turn in outcome.dropped],
    }


def save(content: dict[str, object], folder: Path, kind: str = "bench") -> Path:
    """Writes the document under a name that sorts by time."""
    stamp = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    path = folder / f"{kind}-{stamp}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
