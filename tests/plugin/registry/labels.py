"""Functions of rows with a label, or several."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl
from dataset_rt import expr

from tests.plugin.registry.row import Example, Row
from tests.plugin.registry.weights import LABELS, NUMBERED, keys

if TYPE_CHECKING:
    from collections.abc import Callable

LISTS = pl.DataFrame(
    {"y": [["a", "b"], ["a"], [], None, ["c", "c", None], ["a", "b"], ["a"], ["b"], [None], ["a"]]}
)


def repeats(threshold: float) -> Callable[[pl.DataFrame, Any], list[float]]:
    """The formula of detectron2's repeat_factors_from_category_frequency."""

    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        del group
        rows = [
            {label for label in (row if isinstance(row, list) else [row]) if label is not None}
            for row in (row if row is not None else [] for row in frame["y"].to_list())
        ]
        have = Counter(label for row in rows for label in row)
        factors = {
            label: max(1.0, (threshold / (count / len(rows))) ** 0.5)
            for label, count in have.items()
        }
        return [max((factors[label] for label in row), default=1.0) for row in rows]

    return definition


def capped(n: int, null: str) -> Callable[[pl.DataFrame, Any], list[bool]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[bool]:
        del group
        labels = keys(frame)
        if None in labels and null == "error":
            raise ValueError("null")
        seen: Counter[Any] = Counter()
        kept = []
        for label in labels:
            seen[label] += 1
            kept.append(seen[label] <= n and (null == "class" or label is not None))
        return kept

    return definition


ROWS = [
    Row(
        "repeat_factor",
        "column",
        pl.Float64,
        native=("repeat_factor",),
        examples=[
            Example(LABELS, lambda **o: expr.repeat_factor("y", 0.4, **o), repeats(0.4)),
            Example(LISTS, lambda **o: expr.repeat_factor("y", threshold=0.9, **o), repeats(0.9)),
            Example(
                LISTS.select(
                    pl.col("y").map_elements(
                        lambda row: [*row, None, None][:2], return_dtype=pl.List(pl.String)
                    )
                ).cast(pl.Array(pl.String, 2)),
                lambda **o: expr.repeat_factor("y", 1.5, **o),
                repeats(1.5),
            ),
        ],
    ),
    Row(
        "cap_per_class",
        "column",
        pl.Boolean,
        native=("cap_per_class",),
        examples=[
            Example(LABELS, lambda **o: expr.cap_per_class("y", n=2, **o), capped(2, "error")),
            Example(
                NUMBERED,
                lambda **o: expr.cap_per_class("y", "z", n=1, null="zero", **o),
                capped(1, "zero"),
            ),
        ],
    ),
]
