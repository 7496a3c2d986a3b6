"""Functions of rows with a label, or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataset_rt._arguments import MAX_I64, integer
from dataset_rt.expr._call import call
from dataset_rt.expr._columns import choice, classes, column, groups, number

if TYPE_CHECKING:
    import polars as pl

    from dataset_rt.expr._columns import Column, Columns
    from dataset_rt.expr.weights import NullPolicy

__all__ = ["cap_per_class", "repeat_factor"]

_NULLS: Final = ("error", "class", "zero")


def repeat_factor(labels: Column, threshold: float, *, over: Columns | None = None) -> pl.Expr:
    """How often a row is to come in an epoch, so that rare labels are seen often enough.

    For each label max(1, sqrt(threshold / f)), f being the fraction of rows that have it; a row
    gets the largest value of its labels, and 1 without any (Gupta, Dollar and Girshick 2019, for
    LVIS). `repeat_count` makes whole numbers of them; as weights they draw alike on average.

    Args:
        labels: One label a row, or a list or array of them. A label that a row has twice counts
            once. Nulls are no labels.
        threshold: Fraction of rows below which labels are repeated, above 0.
        over: Group columns, each group computed for itself.

    Returns:
        Float64, at least 1, named like the label column.

    Raises:
        InvalidArgumentError: If the threshold is out of range.
        ArgumentTypeError: If an argument has the wrong type.

    Examples:
        >>> import polars as pl
        >>> from dataset_rt import expr as drt
        >>> frame = pl.DataFrame({"labels": [["cat"], ["cat", "dog"], ["cat"], []]})
        >>> frame.select(drt.repeat_factor("labels", 1.0).round(3))["labels"].to_list()
        [1.155, 2.0, 1.155, 1.0]
    """
    options = {"threshold": number(threshold, "threshold", above=0)}
    return call("repeat_factor", [column(labels, "labels")], options, over=groups(over))


def cap_per_class(
    *by: Column,
    n: int,
    null: NullPolicy = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Whether a row is among the first so many of its class: a mask for `filter`.

    Rows count in the order of the frame; shuffle it first for a choice by chance. To cap classes
    by weight and keep all rows, use `temperature_weight(..., alpha=1, limit=n)`.

    Args:
        *by: Class columns, as in `balanced_weight`.
        n: Rows of a class that are kept, at least 0.
        null: "error", "class" or "zero", as in `balanced_weight`; with "zero" rows without a class
            are not kept.
        over: Group columns, each group capped for itself.

    Returns:
        Boolean, named like the first column.

    Raises:
        InvalidArgumentError: If there is no column, or an option is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {
        "n": integer(n, "n", 0, MAX_I64),
        "null": choice(null, "null", _NULLS),
    }
    return call("cap_per_class", classes(by, "by"), options, over=groups(over))
