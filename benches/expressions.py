"""Weight expressions beside other ways to the same column: `python -m benches.expressions`.

A new expression is one `Row` in `rows`: its own way first, then the ways it is compared with. All
ways of a row must give the same values, which is checked before they are timed.
"""

from __future__ import annotations

import argparse
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from dataset_rt import _native
from dataset_rt import expr as drt

from .measure import Block, Case, Unit, measure
from .report import MEANINGLESS, document, machine, save, table
from .tally import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

ROWS = 10_000_000
CLASSES = 1_000
PRODUCT = "dataset_rt"
ELEMENTWISE_ROWS = 100_000
"""Ways that call Python for each row get so many rows; their time is scaled to all of them."""


@dataclass(frozen=True)
class Row:
    """One expression and the ways beside it. A way takes the frame and gives the column."""

    name: str
    ours: pl.Expr
    others: dict[str, Callable[[pl.DataFrame], pl.Series | NDArray[np.float64]]]
    slow: dict[str, Callable[[pl.DataFrame], pl.Series | NDArray[np.float64]]]


def rows() -> list[Row]:
    return [
        Row(
            "balanced_weight, 1,000 classes of Int64",
            drt.balanced_weight("label"),
            {
                "NumPy": lambda frame: _balanced_numpy(frame["label"].to_numpy()),
                "plain Polars": lambda frame: frame.select(_balanced_polars("label")).to_series(),
                "scikit-learn": lambda frame: _balanced_sklearn(frame["label"].to_numpy()),
            },
            {"map_elements": lambda frame: _balanced_elementwise(frame["label"])},
        ),
        Row(
            "balanced_weight, 4 classes of String",
            drt.balanced_weight("split"),
            {"plain Polars": lambda frame: frame.select(_balanced_polars("split")).to_series()},
            {"map_elements": lambda frame: _balanced_elementwise(frame["split"])},
        ),
    ]


def _balanced_numpy(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    weights: NDArray[np.float64] = len(labels) / (len(counts) * counts)
    return weights[codes]


def _balanced_polars(name: str) -> pl.Expr:
    return pl.len() / (pl.col(name).n_unique() * pl.len().over(name))


def _balanced_sklearn(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    from sklearn.utils.class_weight import compute_sample_weight  # noqa: PLC0415  # optional

    weights: NDArray[np.float64] = compute_sample_weight("balanced", labels)
    return weights


def _balanced_elementwise(labels: pl.Series) -> pl.Series:
    counts = dict(labels.value_counts().iter_rows())
    total, classes = len(labels), len(counts)
    with warnings.catch_warnings():
        # That this is slow is what is shown.
        warnings.simplefilter("ignore", pl.exceptions.PolarsInefficientMapWarning)
        found: pl.Series = labels.map_elements(
            lambda label: total / (classes * counts[label]), return_dtype=pl.Float64
        )
        return found


def frame_of(count: int) -> pl.DataFrame:
    """Labels of skewed frequency, texts of four values, a time in days and a number."""
    random = np.random.default_rng(11)
    labels = np.minimum(random.geometric(0.005, count) - 1, CLASSES - 1).astype(np.int64)
    texts = pl.Series(["train", "validation", "test", "holdout"], dtype=pl.String)
    return pl.DataFrame(
        {
            "label": labels,
            "split": texts.gather(random.integers(0, 4, count)),
            "age": random.random(count) * 365,
            "score": random.random(count),
        }
    )


@contextmanager
def cases(row: Row, frame: pl.DataFrame) -> Iterator[list[Case]]:
    def ours(some: pl.DataFrame) -> pl.Series:
        return some.select(row.ours).to_series()

    few = frame.head(ELEMENTWISE_ROWS)
    scale = len(frame) / len(few)
    known = ours(few).to_numpy()
    for name, way in (row.others | row.slow).items():
        found = np.asarray(way(few))
        if not np.allclose(found, known, rtol=1e-12):
            message = f"{row.name}: {name} gives other values"
            raise RuntimeError(message)
    found_cases = [
        Case(row.name, name, partial(milliseconds, partial(way, frame)), Unit.MILLISECONDS)
        for name, way in row.others.items()
    ]
    found_cases += [
        Case(row.name, name, partial(_scaled, way, few, scale), Unit.MILLISECONDS)
        for name, way in row.slow.items()
    ]
    names = tuple(row.others | row.slow)
    run = partial(milliseconds, partial(ours, frame))
    yield [*found_cases, Case(row.name, PRODUCT, run, Unit.MILLISECONDS, beside=names)]


def _scaled(way: Callable[[pl.DataFrame], object], few: pl.DataFrame, scale: float) -> float:
    return milliseconds(partial(way, few)) * scale


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.expressions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, one round: a smoke test")
    parser.add_argument("--rounds", type=int, help="rounds that count (default 5, 1 with --quick)")
    parser.add_argument("--dir", type=Path, default=Path("bench-results"), help="for the results")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else 5)
    folder: Path = options.dir
    folder.mkdir(parents=True, exist_ok=True)
    frame = frame_of(ROWS // (100 if options.quick else 1))
    place = machine(folder, 0)
    print("\n".join(place.lines()), flush=True)
    outcomes = []
    for row in rows():
        title = f"{len(frame):,} rows"
        block = Block(f"expressions.{row.name}", title, partial(cases, row, frame))
        outcome = measure(block, rounds, patient=not options.quick)
        outcomes.append(outcome)
        print("\n".join(table(outcome)), flush=True)
    if _native.build_profile != "release":
        print(MEANINGLESS)
    path = save(document(place, outcomes, quick=options.quick), folder, "expressions")
    print(f"\n{path}")


if __name__ == "__main__":
    main()
