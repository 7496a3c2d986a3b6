"""Runs the program under callgrind and reads what it wrote down."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .program import NAMES, PASSES, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = re.compile(r"\((\d+)\)(?: (.*))?")


class CallgrindError(Exception):
    """Valgrind is missing or did not do what it should."""


@dataclass(frozen=True)
class Count:
    """Of one case: instructions a sample, and the functions that they are spent in."""

    case: str
    instructions: float
    functions: Counter[str]
    """Instructions a sample by function, without those of functions it calls."""

    def crc_function(self) -> str:
        """The function that most instructions of checksums are spent in."""
        found = [(cost, name) for name, cost in self.functions.items() if "crc" in name.lower()]
        return max(found)[1] if found else "none seen"


def valgrind() -> str:
    path = shutil.which("valgrind")
    if path is None:
        raise CallgrindError("valgrind is not installed (Debian: apt-get install valgrind)")
    return path


def count(folder: Path) -> list[Count]:
    """Counts all cases. Caches and callgrind's files go into `folder`."""
    out = folder / "callgrind"
    command = [
        valgrind(),
        "--tool=callgrind",
        "--dump-before=getppid",
        f"--callgrind-out-file={out}",
        sys.executable,
        "-m",
        "benches.instructions.program",
        str(folder),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(  # noqa: S603
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CallgrindError(f"under valgrind: {done.stderr.strip().splitlines()[-1:]}")
    dumps = [folder / f"callgrind.{number + 1}" for number in range(len(NAMES) * 2 * len(PASSES))]
    if (
        not all(dump.is_file() for dump in dumps)
        or (folder / f"callgrind.{len(dumps) + 1}").exists()
    ):
        raise CallgrindError(
            f"expected {len(dumps)} dumps, found {len(list(folder.glob('callgrind.*')))}"
        )
    # What is counted between two marks stands in the dump of the second: every other one.
    costs = [functions(dump) for dump in dumps[1::2]]
    return [
        _difference(name, costs[2 * place], costs[2 * place + 1])
        for place, name in enumerate(NAMES)
    ]


def _difference(case: str, fewer: Counter[str], more: Counter[str]) -> Count:
    samples = SAMPLES * (PASSES[1] - PASSES[0])
    each = Counter(dict.fromkeys(more, 0))
    for name, cost in more.items():
        each[name] = cost - fewer[name]
    total = each.total() / samples
    return Count(case, total, Counter({n: round(c / samples) for n, c in each.items() if c > 0}))


def functions(dump: Path) -> Counter[str]:
    """Own instructions of each function in one file of callgrind.

    The format: `fn=(id) name` opens a function (the name is given once); lines of a position and a
    cost follow; the line after `calls=` is what a callee cost, which is not the function's own.
    """
    found: Counter[str] = Counter()
    names: dict[str, str] = {}
    current = ""
    skip = False
    for line in _lines(dump):
        if line.startswith(("fn=", "cfn=")):
            matched = NAME.match(line.partition("=")[2])
            if matched is None:
                raise CallgrindError(f"{dump}: {line!r} names no function")
            number, name = matched.groups()
            if name:
                names[number] = name
            if line.startswith("fn="):
                current = names[number]
        elif line.startswith("calls="):
            skip = True
        elif line[:1] in "0123456789+-*" and line:
            if not skip:
                found[current] += int(line.split()[1])
            skip = False
    return found


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            yield line.rstrip("\n")
