"""Interleaved rounds, each library in fresh processes; every result is a line of JSON."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches.measure import FOREIGN_LIMIT, Meter

from .catalogue import OURS, Entry
from .environments import prepare, python
from .worker import Task

if TYPE_CHECKING:
    from collections.abc import Iterable

TRIES = 3
"""How often a task is run again because other processes used the machine."""
TIMEOUT = 600
CAP = 3.0
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Plan:
    """What a run measures, and where."""

    entries: tuple[Entry, ...]
    workloads: tuple[str, ...]
    rounds: int
    quick: bool
    folder: Path
    lines: Path


class TaskError(Exception):
    """A task of a library ended without an answer."""


def run(plan: Plan) -> None:
    """Runs rounds until every library has as many as are wanted, counting those in the file."""
    for workload in plan.workloads:
        while True:
            known = rounds_of(read_lines(plan.lines), workload, quick=plan.quick)
            wanting = [
                entry
                for entry in plan.entries
                if workload in entry.workloads and known.get(entry.name, 0) < plan.rounds
            ]
            if not wanting:
                break
            # Ratios are taken within a round, so ours takes part in each.
            ours = [entry for entry in plan.entries if entry.name == OURS]
            number = max(known.values(), default=0)
            order = [*ours, *(entry for entry in wanting if entry.name != OURS)]
            _round(plan, workload, order if number % 2 == 0 else order[::-1])


def _round(plan: Plan, workload: str, entries: list[Entry]) -> None:
    stamp = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
    seed = len(read_lines(plan.lines)) + 1
    for entry in entries:
        line = {"round": stamp, "workload": workload, "quick": plan.quick, "peer": entry.name}
        try:
            line |= _measured(plan, entry, workload, seed)
        except TaskError as error:
            line |= {"error": str(error)}
        with plan.lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(_told(line), flush=True)


def _measured(plan: Plan, entry: Entry, workload: str, seed: int) -> dict[str, Any]:
    failed = prepare(entry.environment)
    if reason := _not_installed(entry, failed):
        raise TaskError(reason)
    folder = Path(tempfile.mkdtemp(prefix=f"peer-{workload}-", dir=plan.folder))
    found: dict[str, Any] = {}
    try:
        data = folder / "data"
        for phase in ("write", "read"):
            task = Task(
                adapter=entry.adapter,
                distribution=entry.distribution,
                phase=phase,
                folder=str(data),
                workload=workload,
                quick=plan.quick,
                seed=seed,
                cap=CAP,
            )
            tries = [_once(task, entry.environment, folder)]
            while tries[-1]["foreign"] > FOREIGN_LIMIT and len(tries) < TRIES and not plan.quick:
                tries.append(_once(task, entry.environment, folder))
            best = min(tries, key=lambda answer: answer["foreign"])
            if best.get("wrong"):
                raise TaskError("wrong content: " + "; ".join(best["wrong"]))
            found[phase] = best
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _not_installed(entry: Entry, failed: dict[str, str]) -> str | None:
    for step, reason in failed.items():
        # A step names distributions, perhaps with extras and versions.
        if any(part.split("[")[0].split("==")[0] == entry.distribution for part in step.split()):
            return f"not installed: {reason}"
    return None


def _once(task: Task, environment: str, folder: Path) -> dict[str, Any]:
    """Runs one task and adds the share of the processors that went to others meanwhile."""
    if task.phase == "write":
        shutil.rmtree(task.folder, ignore_errors=True)
        Path(task.folder).mkdir()
    out = folder / "answer.json"
    out.unlink(missing_ok=True)
    command = [
        python(environment),
        "-m",
        "benches.peers.worker",
        json.dumps(asdict(task)),
        str(out),
    ]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "HF_HOME": str(folder / "hf"), "TMPDIR": str(folder)}
    with (folder / "errors").open("w+b") as errors:
        meter = Meter()
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=REPOSITORY,
            env={**os.environ, **quiet},
            stdout=errors,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise TaskError(f"{task.phase} took more than {TIMEOUT} s") from None
        finally:
            # Also helper processes that a library leaves behind, and after an interrupt.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        foreign = meter.foreign()
        if status or not out.is_file():
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip().splitlines()
            raise TaskError(f"{task.phase}: {words[-1] if words else f'status {status}'}"[:300])
    answer: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return {**answer, "foreign": foreign or 0.0}


def _told(line: dict[str, Any]) -> str:
    head = f"{line['workload']:4} {line['peer']:28}"
    if "error" in line:
        return f"{head} {line['error']}"
    read, write = line["read"], line["write"]
    rates = [
        f"{name} {read[name]['rate'] / 1e3:,.1f} k/s"
        for name in ("ordered", "shuffled", "weighted")
        if name in read
    ]
    others = max(read["foreign"], write["foreign"])
    note = f", others {others:.0%}" if others > FOREIGN_LIMIT else ""
    return f"{head} {', '.join(rates)}, write {write['write'] / 1e3:,.1f} k/s{note}"


def read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def rounds_of(lines: Iterable[dict[str, Any]], workload: str, *, quick: bool) -> dict[str, int]:
    """How many rounds each library has, failures among them."""
    found: dict[str, int] = {}
    for line in lines:
        if line.get("workload") == workload and line["quick"] == quick:
            found[line["peer"]] = found.get(line["peer"], 0) + 1
    return found
