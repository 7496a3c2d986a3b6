"""Weights that depend on how many rows a class has."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl
from dataset_rt import expr

from tests.plugin.registry.row import Example, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LABELS = pl.DataFrame({"y": ["a", "b", "a", "a", "c", "b", "a", "d", "a", "b", "a", "a"]})
NUMBERED = pl.DataFrame(
    {"y": [3, 1, None, 3, 2, 1, 3, None, 3], "z": [0.5, 0, 0, -0.0, 1, 0, 9, 1, 0.5]}
)


def keys(frame: pl.DataFrame) -> list[Any]:
    """One value a row that is equal for equal classes, None for a class with a null."""

    def key(value: Any) -> Any:
        return repr(value + 0.0) if isinstance(value, float) else value

    return [None if None in row else tuple(map(key, row)) for row in frame.iter_rows()]


def by_class(
    raw: Callable[[list[int]], Sequence[float]], scale: str | None, null: str = "error"
) -> Callable[[pl.DataFrame, Any], list[float]]:
    """The weight of each row, from a formula on the numbers of rows of the classes."""

    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        del group
        labels = keys(frame)
        if None in labels and null == "error":
            raise ValueError("null")
        counts = Counter(key for key in labels if null == "class" or key is not None)
        if not counts:
            return [0.0] * len(labels)
        weights = dict(zip(counts, raw(list(counts.values())), strict=True))
        mean = 1.0
        if scale == "rows":
            mean = sum(weights[key] * n for key, n in counts.items()) / sum(counts.values())
        if scale == "classes":
            mean = sum(weights.values()) / len(weights)
        return [weights[key] / mean if key in weights else 0.0 for key in labels]

    return definition


def balanced(counts: list[int]) -> list[float]:
    return [sum(counts) / (len(counts) * n) for n in counts]


def effective(beta: float) -> Callable[[list[int]], list[float]]:
    return lambda counts: [(1 - beta) / (1 - beta**n) for n in counts]


def temperature(alpha: float, limit: float = math.inf) -> Callable[[list[int]], list[float]]:
    def raw(counts: list[int]) -> list[float]:
        powers = [min(n, limit) ** alpha for n in counts]
        return [power / sum(powers) / n for power, n in zip(powers, counts, strict=True)]

    return raw


def unimax(budget: float, epochs: float) -> Callable[[list[int]], list[float]]:
    def raw(counts: list[int]) -> list[float]:
        left = budget
        dealt = {}
        for done, i in enumerate(sorted(range(len(counts)), key=counts.__getitem__)):
            dealt[i] = min(left / (len(counts) - done), counts[i] * epochs)
            left -= dealt[i]
        total = sum(dealt.values())
        return [dealt[i] / total / n for i, n in enumerate(counts)]

    return raw


def mixture(
    shares: dict[Any, float], scale: str | None, null: str = "error"
) -> Callable[[pl.DataFrame, Any], list[float]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        sources = frame["y"].to_list()
        if None in sources and null == "error":
            raise ValueError("null")
        rows = [y for y in sources if null == "class" or y is not None]
        if not set(rows) <= set(shares):
            raise ValueError("unknown source")
        counts = Counter(rows)
        # A group need not have all sources; the column must.
        missing = [key for key, share in shares.items() if share > 0 and key not in counts]
        if group is None and missing and rows:
            raise ValueError("no row")
        total = sum(shares[key] for key in counts)
        if rows and total == 0:
            raise ValueError("all shares of the group are 0")
        weights = {key: shares[key] / total / n for key, n in counts.items()}
        mean = 1.0
        if rows and scale == "rows":
            mean = 1 / len(rows)
        return [weights.get(y, 0.0) / mean for y in sources]

    return definition


def shares_of(frame: pl.DataFrame, group: Any) -> list[float]:
    del group
    labels = keys(frame.select("y"))
    weights = frame["w"].to_list()
    if None in labels or not all(w is not None and 0 <= w < math.inf for w in weights):
        raise ValueError("refused")
    if labels and sum(weights) == 0:
        raise ValueError("nothing is drawn")
    sums: Counter[Any] = Counter()
    for key, weight in zip(labels, weights, strict=True):
        sums[key] += weight
    return [sums[key] / sum(weights) for key in labels]


# Two sources in every part of three rows or more that the tests cut.
SOURCES = pl.DataFrame({"y": ["web", "book"] * 6 + ["book"] * 2})
ROWS = [
    Row(
        "balanced_weight",
        "column",
        pl.Float64,
        native=("balanced_weight",),
        examples=[
            Example(LABELS, lambda **o: expr.balanced_weight("y", **o), by_class(balanced, "rows")),
            Example(
                NUMBERED,
                lambda **o: expr.balanced_weight("y", "z", normalize="classes", null="zero", **o),
                by_class(balanced, "classes", "zero"),
            ),
            Example(
                NUMBERED.select("y"),
                lambda **o: expr.balanced_weight("y", normalize=None, null="class", **o),
                by_class(balanced, None, "class"),
            ),
        ],
    ),
    Row(
        "effective_number_weight",
        "column",
        pl.Float64,
        native=("effective_number_weight",),
        examples=[
            Example(
                LABELS,
                lambda **o: expr.effective_number_weight("y", **o),
                by_class(effective(0.999), "rows"),
            ),
            Example(
                LABELS,
                lambda **o: expr.effective_number_weight("y", beta=0.5, normalize=None, **o),
                by_class(effective(0.5), None),
            ),
        ],
        # The definition as it is written loses digits near beta = 1.
        rtol=1e-11,
    ),
    Row(
        "temperature_weight",
        "column",
        pl.Float64,
        native=("temperature_weight",),
        examples=[
            Example(
                LABELS,
                lambda **o: expr.temperature_weight("y", temperature=2, **o),
                by_class(temperature(0.5), "rows"),
            ),
            Example(
                LABELS,
                lambda **o: expr.temperature_weight("y", alpha=0.7, limit=3, normalize=None, **o),
                by_class(temperature(0.7, 3), None),
            ),
        ],
    ),
    Row(
        "unimax_weight",
        "column",
        pl.Float64,
        native=("unimax_weight",),
        examples=[
            Example(
                LABELS,
                lambda **o: expr.unimax_weight("y", budget=20, max_epochs=2.5, **o),
                by_class(unimax(20, 2.5), "rows"),
            ),
            Example(
                NUMBERED.select("y"),
                lambda **o: expr.unimax_weight(
                    "y", budget=4, max_epochs=1, normalize="classes", null="zero", **o
                ),
                by_class(unimax(4, 1), "classes", "zero"),
            ),
        ],
    ),
    Row(
        "mixture_weight",
        "column",
        pl.Float64,
        native=("mixture_weight",),
        examples=[
            Example(
                SOURCES,
                lambda **o: expr.mixture_weight("y", {"web": 0.3, "book": 0.7}, **o),
                mixture({"web": 0.3, "book": 0.7}, "rows"),
            ),
            Example(
                SOURCES,
                lambda **o: expr.mixture_weight(
                    "y", {"book": 0.75, "web": 0.25, "none": 0}, normalize=None, null="zero", **o
                ),
                mixture({"web": 0.25, "book": 0.75, "none": 0.0}, None, "zero"),
            ),
        ],
    ),
    Row(
        "expected_share",
        "column",
        pl.Float64,
        native=("expected_share",),
        examples=[
            Example(
                LABELS.with_columns(w=pl.int_range(1, 13) / 4),
                lambda **o: expr.expected_share("y", weight="w", **o),
                shares_of,
            ),
        ],
    ),
]
