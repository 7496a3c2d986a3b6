"""Draws beside NumPy and torch, and what is measured on one thread: rows a second of `hash_split`.

What draws by other luck has other rows: it is timed, and only the number of rows is checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dataset_rt import expr as drt

from .expression_row import ANOTHER, Row, by_numpy
from .measure import Block, Case, Unit
from .targets import EXPRESSIONS, PRODUCT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

POLARS_HASH = ANOTHER + "plain Polars hash"

REPOSITORY = Path(__file__).resolve().parents[1]
SEED = 1
TORCH_ROWS = 2**24
"""More categories `torch.multinomial` doesn't take."""
LONG_ROWS = 10**8
TORCH_TYPES = ("float64", "float32")
"""`WeightedRandomSampler` draws from the first, which is also ours."""
TORCH = """
import sys, time, torch
torch.set_num_threads(1)
torch.manual_seed(1)
rows = int(sys.argv[1])
weights = torch.rand(rows, dtype=getattr(torch, sys.argv[2])) + 0.01
for _ in range(2):
    start = time.perf_counter()
    drawn = torch.multinomial(weights, rows // 2)
    seconds = time.perf_counter() - start
assert len(drawn) == rows // 2
print(seconds)
"""


def rows(count: int) -> list[Row]:
    return [
        Row(
            "draw_counts, as many draws as rows",
            drt.draw_counts("score", count, seed=SEED),
            (
                by_numpy(_multinomial, "score", detail=" multinomial", same=False),
                by_numpy(_searched, "score", detail=" searchsorted", same=False),
            ),
        ),
    ]


def blocks(count: int, torch: str | None, *, quick: bool, long: bool) -> list[Block]:
    """What runs on one thread. `torch` is an interpreter that has it."""
    drawn = TORCH_ROWS // (100 if quick else 1)
    found = [
        Block(f"{EXPRESSIONS}hash_split, one thread", f"{count:,} rows", partial(_hashed, count)),
        Block(
            f"{EXPRESSIONS}sample_weighted, half of the rows, one thread",
            f"{drawn:,} rows, without replacement",
            partial(_drawn, drawn, torch),
        ),
    ]
    if long:
        title = f"{LONG_ROWS:,} rows, without replacement"
        name = f"{EXPRESSIONS}sample_weighted, half of 100 M rows, one thread"
        found.append(Block(name, title, partial(_drawn, LONG_ROWS, None)))
    return found


def torch_version(python: str) -> str | None:
    """The version that an interpreter has; None without any."""
    command = [python, "-c", "import torch; print(torch.__version__)"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@contextmanager
def _hashed(count: int) -> Iterator[list[Case]]:
    cases = []
    for kind, keys in (("int", "Int64 keys"), ("text", "short String keys")):
        for way, beside in ((POLARS_HASH, ()), (PRODUCT, (POLARS_HASH,))):
            job = f"hash_split-{kind}" + ("" if way == PRODUCT else "-polars")
            cases.append(Case(keys, way, partial(_rate, job, count), Unit.RATE, beside))
    yield cases


@contextmanager
def _drawn(count: int, torch: str | None) -> Iterator[list[Case]]:
    work = "sample_weighted"
    others = {} if torch is None else {f"torch.multinomial, {kind}": kind for kind in TORCH_TYPES}
    cases = [
        Case(work, way, partial(_torch, torch, count, kind), Unit.MILLISECONDS)
        for way, kind in others.items()
        if torch is not None
    ]
    run = partial(_alone, "sample_weighted", count)
    yield [*cases, Case(work, PRODUCT, run, Unit.MILLISECONDS, beside=tuple(others))]


def _rate(job: str, count: int) -> float:
    return count / (_alone(job, count) / 1e3)


def _alone(job: str, count: int) -> float:
    """Milliseconds in a process whose Polars has one thread."""
    return _run([sys.executable, "-m", "benches.expression_alone", job, str(count)])


def _torch(python: str, count: int, kind: str) -> float:
    return _run([python, "-c", TORCH, str(count), kind]) * 1e3


def _run(command: list[str]) -> float:
    environment = os.environ | {"POLARS_MAX_THREADS": "1"}
    done = subprocess.run(  # noqa: S603
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(done.stdout)


def _multinomial(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).multinomial(len(weights), weights / weights.sum())


def _searched(weights: NDArray[np.float64]) -> NDArray[np.intp]:
    ends = np.cumsum(weights)
    points = np.random.default_rng(SEED).random(len(weights)) * ends[-1]
    return np.bincount(np.searchsorted(ends, points, side="right"), minlength=len(weights))
