"""Weights from a number a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl
from dataset_rt import expr

from tests.plugin.registry.row import Example, Row

if TYPE_CHECKING:
    from collections.abc import Callable

LOSSES = pl.DataFrame({"x": [0.5, 2.0, 0.0, 0.5, 3.25, 0.125, 1.0, 2.0, 0.75, 0.5, 4.0, 0.25]})
GAPS = pl.DataFrame({"x": [1, None, 3, 0, 2, 5, None, 4, 1, 1, 2, 7]}, schema={"x": pl.Int32})
ABOVE = LOSSES.select(pl.col("x") + 0.5)


def numbers(frame: pl.DataFrame, null: str, *, name: str = "x", least: float = 0.0) -> list[Any]:
    """The values, None where they don't count."""
    values = frame[name].to_list()
    for value in values:
        if value is None and null == "error":
            raise ValueError("null")
        if value is not None and not least <= value < math.inf:
            raise ValueError("out of range")
    return values


def normalized(null: str = "error") -> Callable[[pl.DataFrame, Any], list[float]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        del group
        values = [value or 0 for value in numbers(frame, null)]
        count = sum(value > 0 for value in values)
        return [value / (sum(values) / count) if value else 0.0 for value in values]

    return definition


def hardest(fraction: float, null: str = "error") -> Callable[[pl.DataFrame, Any], list[float]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        del group
        values = numbers(frame, null, least=-math.inf)
        rows = [row for row, value in enumerate(values) if value is not None]
        kept = max(1, math.floor(fraction * len(rows) + 0.5))
        best = sorted(rows, key=lambda row: (-values[row], row))[:kept]
        return [float(row in best) for row in range(len(values))]

    return definition


def probabilities(values: list[Any], alpha: float) -> list[float]:
    powers = [0.0 if value is None else value**alpha for value in values]
    if not any(powers) and any(value is not None for value in values):
        raise ValueError("nothing is drawn")
    return [power / sum(powers) if power else 0.0 for power in powers]


def prioritized(alpha: float, null: str = "error") -> Callable[[pl.DataFrame, Any], list[float]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        del group
        return probabilities(numbers(frame, null), alpha)

    return definition


def correction(
    alpha: float, beta: float, null: str = "error"
) -> Callable[[pl.DataFrame, Any], list[float]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        del group
        drawn = probabilities(numbers(frame, null), alpha)
        weights = [(1 / (len(drawn) * p)) ** beta if p else 0.0 for p in drawn]
        return [weight / max(weights) if weight else 0.0 for weight in weights]

    return definition


def doremi(eta: float, c: float) -> Callable[[pl.DataFrame, Any], list[float]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[float]:
        del group
        alpha = numbers(frame, "error")
        excess = numbers(frame, "error", name="e", least=-1e300)
        raw = [a * math.exp(eta * max(e, 0)) for a, e in zip(alpha, excess, strict=True)]
        if raw and not sum(raw):
            raise ValueError("all shares are 0")
        return [(1 - c) * value / sum(raw) + c / len(raw) for value in raw]

    return definition


def sample_size(frame: pl.DataFrame, group: Any) -> float:
    del group
    values = [value for value in numbers(frame, "zero") if value is not None]
    return sum(values) ** 2 / sum(value**2 for value in values) if any(values) else 0.0


def each(formula: Callable[[float], float]) -> Callable[[pl.DataFrame, Any], list[float | None]]:
    def definition(frame: pl.DataFrame, group: Any) -> list[float | None]:
        del group
        return [
            value if value is None or math.isnan(value) else formula(value)
            for value in frame["x"].to_list()
        ]

    return definition


ROWS = [
    Row(
        "focal_weight",
        "elementwise",
        pl.Float64,
        over=False,
        native=("focal_weight",),
        examples=[
            Example(LOSSES, lambda: expr.focal_weight("x"), each(lambda p: (1 - min(p, 1.0)) ** 2)),
            Example(
                LOSSES,
                lambda: expr.focal_weight("x", gamma=0.75),
                each(lambda p: (1 - min(p, 1.0)) ** 0.75),
            ),
        ],
    ),
    Row(
        "clip_weight",
        "elementwise",
        pl.Float64,
        over=False,
        native=("clip_weight",),
        examples=[
            Example(
                LOSSES,
                lambda: expr.clip_weight("x", 0.5, 2),
                each(lambda w: min(max(w, 0.5), 2.0) if w else 0.0),
            ),
            Example(GAPS, lambda: expr.clip_weight("x", upper=3), each(lambda w: float(min(w, 3)))),
        ],
    ),
    Row(
        "normalize_weight",
        "column",
        pl.Float64,
        native=("normalize_weight",),
        examples=[
            Example(LOSSES, lambda **o: expr.normalize_weight("x", **o), normalized()),
            Example(
                GAPS, lambda **o: expr.normalize_weight("x", null="zero", **o), normalized("zero")
            ),
        ],
    ),
    Row(
        "hard_example_weight",
        "column",
        pl.Float64,
        native=("hard_example_weight",),
        examples=[
            Example(LOSSES, lambda **o: expr.hard_example_weight("x", 0.3, **o), hardest(0.3)),
            Example(
                GAPS,
                lambda **o: expr.hard_example_weight("x", fraction=0.5, null="zero", **o),
                hardest(0.5, "zero"),
            ),
        ],
    ),
    Row(
        "prioritized_weight",
        "column",
        pl.Float64,
        native=("prioritized_weight",),
        examples=[
            Example(ABOVE, lambda **o: expr.prioritized_weight("x", 0.6, **o), prioritized(0.6)),
            Example(
                GAPS.select(pl.col("x") + 1),
                lambda **o: expr.prioritized_weight("x", alpha=2, null="zero", **o),
                prioritized(2, "zero"),
            ),
        ],
    ),
    Row(
        "prioritized_correction",
        "column",
        pl.Float64,
        native=("prioritized_correction",),
        examples=[
            Example(
                ABOVE,
                lambda **o: expr.prioritized_correction("x", 0.6, 0.4, **o),
                correction(0.6, 0.4),
            ),
            Example(
                GAPS.select(pl.col("x") + 1),
                lambda **o: expr.prioritized_correction("x", 1, beta=1, null="zero", **o),
                correction(1, 1, "zero"),
            ),
        ],
    ),
    Row(
        "doremi_weight",
        "column",
        pl.Float64,
        native=("doremi_weight",),
        examples=[
            Example(
                ABOVE.with_columns(e=pl.int_range(-3, 9) / 4),
                lambda **o: expr.doremi_weight("x", "e", **o),
                doremi(1.0, 1e-3),
            ),
            Example(
                ABOVE.with_columns(e=pl.int_range(-3, 9)),
                lambda **o: expr.doremi_weight("x", excess="e", eta=0.5, c=0.25, **o),
                doremi(0.5, 0.25),
            ),
        ],
    ),
    Row(
        "effective_sample_size",
        "reduction",
        pl.Float64,
        over=False,
        native=("effective_sample_size",),
        examples=[
            Example(LOSSES, lambda: expr.effective_sample_size("x"), sample_size),
            Example(GAPS, lambda: expr.effective_sample_size("x"), sample_size),
        ],
    ),
]
