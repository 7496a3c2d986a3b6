"""Interleaved rounds, and what the rest of the machine did meanwhile."""

from __future__ import annotations

import fnmatch
import os
import time
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

FOREIGN_LIMIT = 0.03
"""A round counts if other processes used at most this share of all processors."""
TRIES_PER_ROUND = 3
KERNEL_THREAD = 0x0020_0000
"""PF_KTHREAD in the flags of /proc/PID/stat."""


class Unit(Enum):
    """What a case reports. More samples a second are better; of all else less is."""

    RATE = "samples/s"
    MILLISECONDS = "ms"
    MICROSECONDS = "µs"
    NANOSECONDS = "ns"
    SECONDS = "s"
    MEBIBYTES = "MiB"
    BYTES = "B"


@dataclass(frozen=True)
class Case:
    """One way to do one piece of work: a line of the report."""

    work: str
    way: str
    run: Callable[[], float]
    unit: Unit = Unit.RATE
    beside: tuple[str, ...] = ()
    """Ways of the same work to compare with, or "work/way" for one of other work in the block."""

    @property
    def key(self) -> str:
        return f"{self.work}/{self.way}"

    def references(self) -> Iterator[tuple[str, str]]:
        """How each reference is named in the report, and its key."""
        for name in self.beside:
            yield name, name if "/" in name else f"{self.work}/{name}"


@dataclass(frozen=True)
class Block:
    """Cases that run in turns. `prepare` sets up what they share and gives them."""

    name: str
    title: str
    prepare: Callable[[], AbstractContextManager[list[Case]]]


@dataclass(frozen=True)
class Round:
    """One value of every case, and the share of the processors that went to others meanwhile."""

    values: dict[str, float]
    foreign: float | None
    seconds: float

    @property
    def quiet(self) -> bool:
        return self.foreign is None or self.foreign <= FOREIGN_LIMIT


@dataclass
class Outcome:
    """The rounds of one block: those that count, and those that were dropped."""

    block: Block
    cases: list[Case]
    kept: list[Round] = field(default_factory=list)
    dropped: list[Round] = field(default_factory=list)

    @property
    def noisy(self) -> int:
        """Rounds that count although they were not quiet, for want of quiet ones."""
        return sum(not turn.quiet for turn in self.kept)

    def values(self, key: str) -> list[float]:
        return [turn.values[key] for turn in self.kept]

    def ratios(self, case: Case, reference: str) -> list[float]:
        """Speed over the reference's in each round; above 1 is faster, for times too."""
        pairs = [(turn.values[case.key], turn.values[reference]) for turn in self.kept]
        if case.unit is Unit.RATE:
            return [mine / other for mine, other in pairs]
        return [other / mine for mine, other in pairs]


def _cpu_seconds(fields: list[bytes]) -> float:
    """User and system time of a /proc/PID/stat line, whose fields after the name are given."""
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Processor time of this process and of its children that have ended and were waited for."""
    fields = _stat_fields(Path("/proc/self/stat"))
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return _cpu_seconds(fields) + ended


def _stat_fields(path: Path) -> list[bytes]:
    """The fields after the name, which may itself hold spaces and parentheses."""
    return path.read_bytes().rpartition(b")")[2].split()


def _kernel_seconds() -> float:
    """Processor time of kernel threads. Their share is our own doing: they write our pages back."""
    total = 0.0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = _stat_fields(Path(entry.path, "stat"))
            except OSError:  # ended meanwhile
                continue
            if int(fields[6]) & KERNEL_THREAD:
                total += _cpu_seconds(fields)
    return total


class Meter:
    """Tells which share of all processors went to other processes since it was made."""

    def __init__(self) -> None:
        self._clock = time.perf_counter()
        self._start = self._read()

    @staticmethod
    def _read() -> float | None:
        """Seconds that other processes have used so far; None where /proc does not tell."""
        try:
            line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
            own = _own_seconds()
            kernel = _kernel_seconds()
        except (OSError, IndexError, ValueError):
            return None
        # user, nice, system, (idle, iowait,) irq, softirq. Guests are part of user.
        busy = sum(int(line[place]) for place in (1, 2, 3, 6, 7)) / os.sysconf("SC_CLK_TCK")
        return busy - own - kernel

    def seconds(self) -> float:
        return time.perf_counter() - self._clock

    def foreign(self) -> float | None:
        now = self._read()
        if now is None or self._start is None:
            return None
        share = (now - self._start) / (self.seconds() * (os.cpu_count() or 1))
        return max(share, 0.0)


def _chosen(cases: list[Case], patterns: list[str]) -> list[Case]:
    """The cases that a pattern names, compared with each other alone."""
    found = [case for case in cases if any(fnmatch.fnmatchcase(case.key, p) for p in patterns)]
    keys = {case.key for case in found}
    return [
        replace(case, beside=tuple(name for name, key in case.references() if key in keys))
        for case in found
    ]


def measure(block: Block, rounds: int, *, patient: bool, only: list[str] | None = None) -> Outcome:
    """Runs the cases in turns until enough quiet rounds are had, or the tries are used up.

    The order of the cases is reversed from round to round, and a round before the first one warms
    caches and is not counted. Not `patient` means: no warm-up, and every round counts. `only`:
    patterns of the keys of the cases to run.
    """
    with block.prepare() as every:
        cases = _chosen(every, only) if only else every
        outcome = Outcome(block, cases)
        if patient:
            _round(cases)
        for turn in range(rounds * TRIES_PER_ROUND if patient else rounds):
            done = _round(cases if turn % 2 else cases[::-1])
            (outcome.kept if done.quiet or not patient else outcome.dropped).append(done)
            if len(outcome.kept) == rounds:
                break
    # Too few quiet rounds: the least disturbed of the others stand in, and the report says so.
    outcome.dropped.sort(key=lambda done: done.foreign or 0.0)
    while len(outcome.kept) < rounds and outcome.dropped:
        outcome.kept.append(outcome.dropped.pop(0))
    return outcome


def _round(cases: list[Case]) -> Round:
    meter = Meter()
    values = {case.key: case.run() for case in cases}
    return Round(values, meter.foreign(), meter.seconds())
