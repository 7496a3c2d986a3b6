"""Weights beside NumPy, the same formula in plain Polars, scikit-learn and `map_elements`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from dataset_rt import expr as drt

from .expression_frame import CLASSES
from .expression_row import SKLEARN, Other, Row, by_element, by_numpy, by_polars

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]

BETA = 0.999
KEPT = 1_000
"""Rows that are kept of a class."""
HARDEST = 0.1
"""The share of rows that count as hard."""
LEAST, MOST = 0.1, 1.5
ALPHA = 0.6
BINCOUNT = " bincount"
"""Takes classes for places in an array: they must be small whole numbers."""

label, weight, score, group = pl.col("label"), pl.col("weight"), pl.col("score"), pl.col("group")


def rows() -> list[Row]:
    return [*_by_class(), *_by_value(), *_by_group()]


def _by_class() -> list[Row]:
    count = pl.len().over("label")
    effective = (1 - BETA) / (1 - pl.lit(BETA).pow(count))
    return [
        Row(
            "balanced_weight, 1,000 classes of Int64",
            drt.balanced_weight("label"),
            (
                by_numpy(_balanced_unique, "label"),
                by_numpy(_balanced_bincount, "label", detail=BINCOUNT),
                by_polars(_balanced("label")),
                Other(SKLEARN, lambda frame: _balanced_sklearn(frame["label"].to_numpy())),
                by_element(_balanced_each, "label", pl.Float64),
            ),
        ),
        Row(
            "balanced_weight, 4 classes of String",
            drt.balanced_weight("split"),
            (by_polars(_balanced("split")), by_element(_balanced_each, "split", pl.Float64)),
        ),
        Row(
            "balanced_weight, 1,000 classes of Categorical",
            drt.balanced_weight("kind"),
            (
                Other(
                    f"NumPy{BINCOUNT}",
                    lambda frame: _balanced_bincount(frame["kind"].to_physical().to_numpy()),
                ),
                by_polars(_balanced("kind")),
                by_element(_balanced_each, "kind", pl.Float64),
            ),
        ),
        Row(
            "effective_number_weight, 1,000 classes",
            drt.effective_number_weight("label", beta=BETA),
            (
                by_numpy(_effective_unique, "label"),
                by_numpy(_effective_bincount, "label", detail=BINCOUNT),
                by_polars(effective / effective.mean()),
            ),
        ),
        Row(
            "expected_share, 1,000 classes",
            drt.expected_share("label", weight="weight"),
            (
                by_numpy(_share_unique, "label", "weight"),
                by_numpy(_share_bincount, "label", "weight", detail=BINCOUNT),
                by_polars(weight.sum().over("label") / weight.sum()),
            ),
        ),
        Row(
            "cap_per_class, 1,000 classes",
            drt.cap_per_class("label", n=KEPT),
            (
                by_numpy(_capped, "label"),
                by_polars(pl.int_range(pl.len()).over("label") < KEPT),
                by_element(_cap_each, "label", pl.Boolean),
            ),
        ),
    ]


def _by_value() -> list[Row]:
    unsure = 1 - score.clip(0, 1)
    power = score.pow(ALPHA)
    return [
        Row(
            "normalize_weight",
            drt.normalize_weight("weight"),
            (
                by_numpy(lambda w: w / (w.sum() / np.count_nonzero(w)), "weight"),
                by_polars(_normalized()),
            ),
        ),
        Row(
            "clip_weight",
            drt.clip_weight("weight", LEAST, MOST),
            (
                by_numpy(lambda w: np.where(w == 0, 0.0, np.clip(w, LEAST, MOST)), "weight"),
                by_polars(pl.when(weight == 0).then(0.0).otherwise(weight.clip(LEAST, MOST))),
            ),
        ),
        Row(
            "focal_weight, gamma 2",
            drt.focal_weight("score"),
            (
                by_numpy(lambda p: np.square(1 - np.clip(p, 0, 1)), "score"),
                by_polars(unsure * unsure),
                by_element(_focal_each, "score", pl.Float64),
            ),
        ),
        Row(
            "focal_weight, gamma 1.5",
            drt.focal_weight("score", 1.5),
            (
                by_numpy(lambda p: (1 - np.clip(p, 0, 1)) ** 1.5, "score"),
                by_polars(unsure.pow(1.5)),
            ),
        ),
        Row(
            "hard_example_weight, a tenth of the rows",
            drt.hard_example_weight("score", HARDEST),
            (
                by_numpy(_hardest, "score"),
                by_polars((score > score.quantile(1 - HARDEST, "lower")).cast(pl.Float64)),
            ),
        ),
        Row(
            "prioritized_weight",
            drt.prioritized_weight("weight", ALPHA),
            (
                by_numpy(_prioritized, "weight"),
                by_polars(weight.pow(ALPHA) / weight.pow(ALPHA).sum()),
            ),
        ),
        Row(
            "prioritized_weight, no weight of 0",
            drt.prioritized_weight("score", ALPHA),
            (by_numpy(_prioritized, "score"), by_polars(power / power.sum())),
        ),
        Row(
            "effective_sample_size",
            drt.effective_sample_size("weight"),
            (
                by_numpy(lambda w: np.array([w.sum() ** 2 / np.dot(w, w)]), "weight"),
                by_polars(weight.sum().pow(2) / (weight * weight).sum()),
            ),
        ),
    ]


def _by_group() -> list[Row]:
    inside = label.n_unique().over("group") * pl.len().over("group", "label")
    mean = weight.sum().over("group") / (weight > 0).sum().over("group")
    # A group whose weights are all 0 keeps them.
    mean_within = mean.fill_nan(1)
    return [
        Row(
            "balanced_weight, over 200,000 groups",
            drt.balanced_weight("label", over="group"),
            (
                by_numpy(_balanced_within, "label", "group"),
                by_polars(pl.len().over("group") / inside),
            ),
        ),
        Row(
            "normalize_weight, over 200,000 groups",
            drt.normalize_weight("weight", over="group"),
            (
                by_numpy(_normalized_within, "weight", "group", detail=BINCOUNT),
                by_polars(_normalized().fill_nan(0).over("group")),
                by_polars(weight / mean_within, " two windows"),
            ),
        ),
    ]


def _balanced(name: str) -> pl.Expr:
    return pl.len() / (pl.col(name).n_unique() * pl.len().over(name))


def _normalized() -> pl.Expr:
    return weight / (weight.sum() / (weight > 0).sum())


def _unique(labels: Ints) -> tuple[Ints, Ints]:
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return codes, counts


def _balanced_unique(labels: Ints) -> Floats:
    codes, counts = _unique(labels)
    weights = len(labels) / (len(counts) * counts)
    found: Floats = weights[codes]
    return found


def _balanced_bincount(labels: NDArray[Any]) -> Floats:
    counts = np.bincount(labels)
    # Numbers that no row has are no classes, and their weight is never looked up.
    weights = len(labels) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    found: Floats = weights[labels]
    return found


def _balanced_sklearn(labels: Ints) -> Floats:
    from sklearn.utils.class_weight import compute_sample_weight  # noqa: PLC0415  # optional

    weights: Floats = compute_sample_weight("balanced", labels)
    return weights


def _balanced_each(labels: pl.Series) -> Callable[[Any], float]:
    counts = dict(labels.value_counts().iter_rows())
    total, classes = len(labels), len(counts)
    return lambda value: total / (classes * counts[value])


def _balanced_within(labels: Ints, groups: Ints) -> Floats:
    pairs, codes, counts = np.unique(
        groups * CLASSES + labels, return_inverse=True, return_counts=True
    )
    owners = pairs // CLASSES
    weights: Floats = np.bincount(groups)[owners] / (np.bincount(owners)[owners] * counts)
    return weights[codes]


def _effective_unique(labels: Ints) -> Floats:
    codes, counts = _unique(labels)
    return _effective(counts)[codes]


def _effective_bincount(labels: Ints) -> Floats:
    return _effective(np.bincount(labels))[labels]


def _effective(counts: Ints) -> Floats:
    raw = (1 - BETA) / (1 - BETA ** np.maximum(counts, 1))
    weights: Floats = raw / (float(raw @ counts) / int(counts.sum()))
    return weights


def _share_unique(labels: Ints, weights: Floats) -> Floats:
    codes, _ = _unique(labels)
    return _share_bincount(codes, weights)


def _share_bincount(labels: Ints, weights: Floats) -> Floats:
    sums = np.bincount(labels, weights)
    shares: Floats = sums / sums.sum()
    return shares[labels]


def _capped(labels: Ints) -> NDArray[np.bool_]:
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    places = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.empty(len(labels), dtype=np.bool_)
    kept[order] = places < KEPT
    return kept


def _cap_each(labels: pl.Series) -> Callable[[Any], bool]:
    seen = dict.fromkeys(labels.unique(), 0)

    def kept(value: int) -> bool:
        seen[value] += 1
        return seen[value] <= KEPT

    return kept


def _focal_each(values: pl.Series) -> Callable[[float], float]:
    del values
    return lambda value: (1 - min(max(value, 0.0), 1.0)) ** 2.0


def _hardest(losses: Floats) -> Floats:
    first = len(losses) - round(HARDEST * len(losses))
    threshold = float(np.partition(losses, first)[first])
    return (losses >= threshold).astype(np.float64)


def _prioritized(priorities: Floats) -> Floats:
    powers = priorities**ALPHA
    probabilities: Floats = powers / powers.sum()
    return probabilities


def _normalized_within(weights: Floats, groups: Ints) -> Floats:
    sums = np.bincount(groups, weights)
    means = sums / np.maximum(np.bincount(groups[weights > 0], minlength=len(sums)), 1)
    # A group whose weights are all 0 keeps them.
    means[means == 0] = 1
    found: Floats = weights / means[groups]
    return found
