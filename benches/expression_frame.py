"""The columns that expressions are measured on, made from seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.random import Generator

CLASSES = 1_000
GROUPS = 200_000
WORDS = ("amber", "brook", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty")


def _labels(random: Generator, count: int) -> pl.Series:
    """Classes of skewed frequency, the most frequent one fifty times the rarest."""
    return pl.Series((20 * 51 ** random.random(count)).astype(np.int64) - 20)


def _splits(random: Generator, count: int) -> pl.Series:
    names = pl.Series(["train", "validation", "test", "holdout"], dtype=pl.String)
    return names.gather(random.integers(0, 4, count))


def _kinds(random: Generator, count: int) -> pl.Series:
    names = pl.Series([f"class {number}" for number in range(CLASSES)], dtype=pl.Categorical)
    return names.gather(_labels(random, count))


def _groups(random: Generator, count: int) -> pl.Series:
    return pl.Series(random.integers(0, GROUPS, count))


def _ids(random: Generator, count: int) -> pl.Series:
    return pl.Series(random.integers(0, 2**62, count))


def _names(random: Generator, count: int) -> pl.Series:
    """Texts of eleven bytes, no two the same."""
    del random
    digits = pl.int_range(count, eager=True).cast(pl.String).str.zfill(8)
    return pl.select("row" + digits).to_series()


def _scores(random: Generator, count: int) -> pl.Series:
    return pl.Series(random.random(count))


def _weights(random: Generator, count: int) -> pl.Series:
    """Of twenty rows one has weight 0."""
    weights = random.random(count) * 2
    weights[random.random(count) < 0.05] = 0
    return pl.Series(weights)


def _texts(random: Generator, count: int) -> pl.Series:
    """Six words each, 35 bytes."""
    words = pl.Series(WORDS, dtype=pl.String)
    columns = [words.gather(random.integers(0, len(WORDS), count)) for _ in range(6)]
    return pl.select(pl.concat_str(columns, separator=" ")).to_series()


COLUMNS: dict[str, Callable[[Generator, int], pl.Series]] = {
    "label": _labels,
    "split": _splits,
    "kind": _kinds,
    "group": _groups,
    "id": _ids,
    "name": _names,
    "score": _scores,
    "weight": _weights,
    "text": _texts,
}


def frame_of(count: int, names: Iterable[str] = COLUMNS) -> pl.DataFrame:
    """Each column has a seed of its own: it is the same whichever others there are."""
    places = {name: place for place, name in enumerate(COLUMNS)}
    return pl.DataFrame(
        {name: COLUMNS[name](np.random.default_rng([11, places[name]]), count) for name in names}
    )
