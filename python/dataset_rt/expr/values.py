"""Weights from a number a row: losses, priorities, other weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from dataset_rt.errors import InvalidArgumentError
from dataset_rt.expr._call import call
from dataset_rt.expr._columns import choice, column, groups, number

if TYPE_CHECKING:
    import polars as pl

    from dataset_rt.expr._columns import Column, Columns

__all__ = [
    "NullValues",
    "clip_weight",
    "doremi_weight",
    "effective_sample_size",
    "focal_weight",
    "hard_example_weight",
    "normalize_weight",
    "prioritized_correction",
    "prioritized_weight",
]

NullValues: TypeAlias = Literal["error", "zero"]
"""Whether a null number is refused, or gives its row weight 0."""

_NULLS: Final = ("error", "zero")


def focal_weight(p_true: Column, gamma: float = 2.0) -> pl.Expr:
    """Weights that are small where a model is already sure: (1 - p)^gamma.

    p is the probability that the model gives to the true class, cut to 0 .. 1 (the modulating
    factor of the focal loss, Lin, Goyal, Girshick, He and Dollar 2017). Each row is computed by
    itself; null and NaN stay what they are.

    Args:
        p_true: Probabilities.
        gamma: At least 0; 0 gives weight 1 to all.

    Returns:
        Float64, named like the column. A row with p = 1 gets 0: `update_metadata(...,
        zero_weights="drop")` leaves such rows out, `clip_weight` doesn't touch them.

    Raises:
        InvalidArgumentError: If gamma is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {"gamma": number(gamma, "gamma", least=0)}
    return call("focal_weight", [column(p_true, "p_true")], options, kind="elementwise")


def clip_weight(weight: Column, lower: float | None = None, upper: float | None = None) -> pl.Expr:
    """Weights within bounds. A weight of 0, which leaves its row out, stays 0.

    Each row is computed by itself; null and NaN stay what they are.

    Args:
        weight: Weights.
        lower: Smallest weight, at least 0.
        upper: Largest weight, at least `lower` and above 0.

    Returns:
        Float64, named like the column.

    Raises:
        InvalidArgumentError: If neither bound is given, or they are out of range or swapped.
        ArgumentTypeError: If an argument has the wrong type.
    """
    if lower is None and upper is None:
        raise InvalidArgumentError("lower or upper must be given", argument="lower")
    least = 0.0 if lower is None else number(lower, "lower", least=0)
    most = math.inf if upper is None else number(upper, "upper", above=0, least=least)
    options = {"lower": least, "upper": most}
    return call("clip_weight", [column(weight, "weight")], options, kind="elementwise")


def normalize_weight(
    weight: Column, *, null: NullValues = "error", over: Columns | None = None
) -> pl.Expr:
    """Weights with mean 1 over the rows whose weight is above 0.

    Args:
        weight: Weights, finite and at least 0.
        null: "error" refuses nulls, "zero" gives such rows weight 0.
        over: Group columns, each group brought to mean 1 for itself.

    Returns:
        Float64, named like the column; 0 where the weight is 0.

    Raises:
        InvalidArgumentError: If an option is unknown.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {"null": choice(null, "null", _NULLS)}
    return call("normalize_weight", [column(weight, "weight")], options, over=groups(over))


def hard_example_weight(
    loss: Column,
    fraction: float,
    *,
    null: NullValues = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Weight 1 for the rows of the largest losses, 0 for all others.

    fraction * N rows are kept, to the nearest whole number (halves go up) and at least one; of
    equal losses the first rows (online hard example mining, Shrivastava, Gupta and Girshick 2016).

    Args:
        loss: Losses, not NaN.
        fraction: Above 0, at most 1.
        null: "error" refuses nulls, "zero" gives such rows weight 0 and doesn't count them in N.
        over: Group columns: the largest losses of each group.

    Returns:
        Float64, named like the column.

    Raises:
        InvalidArgumentError: If an option is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {
        "fraction": number(fraction, "fraction", above=0, most=1),
        "null": choice(null, "null", _NULLS),
    }
    return call("hard_example_weight", [column(loss, "loss")], options, over=groups(over))


def prioritized_weight(
    priority: Column,
    alpha: float,
    *,
    null: NullValues = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Sampling probabilities of prioritised replay: p^alpha over the sum of these.

    Schaul, Quan, Antonoglou and Silver 2016, who use alpha = 0.6. `prioritized_correction` is the
    factor that takes the bias out of the loss again.

    Args:
        priority: Priorities, finite and at least 0, such as absolute errors; not all of them 0,
            unless alpha is. A row of priority 0 is not drawn: add a small number to draw it.
        alpha: At least 0; 0 makes all rows equal.
        null: "error" refuses nulls, "zero" gives such rows probability 0.
        over: Group columns; probabilities of each group sum to 1.

    Returns:
        Float64, named like the column, with sum 1.

    Raises:
        InvalidArgumentError: If an option is out of range.
        ArgumentTypeError: If an argument has the wrong type.

    A probability that a float doesn't hold is a `polars.exceptions.ComputeError`.
    """
    options = {
        "alpha": number(alpha, "alpha", least=0),
        "null": choice(null, "null", _NULLS),
    }
    return call("prioritized_weight", [column(priority, "priority")], options, over=groups(over))


def prioritized_correction(
    priority: Column,
    alpha: float,
    beta: float,
    *,
    null: NullValues = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """The factor of the loss that corrects for `prioritized_weight`.

    (1 / (N P))^beta over the largest of these, P being the probability of the row and N the number
    of rows; the row that is drawn least gets 1 (Schaul, Quan, Antonoglou and Silver 2016, who
    raise beta from 0.4 to 1). Rows that are not drawn get 0.

    Args:
        priority: Priorities, as in `prioritized_weight`.
        alpha: As in `prioritized_weight`.
        beta: At least 0; 0 corrects nothing, 1 all.
        null: "error" refuses nulls, "zero" gives such rows 0.
        over: Group columns, each group computed for itself.

    Returns:
        Float64, 0 to 1, named like the column.

    Raises:
        InvalidArgumentError: If an option is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {
        "alpha": number(alpha, "alpha", least=0),
        "beta": number(beta, "beta", least=0),
        "null": choice(null, "null", _NULLS),
    }
    inputs = [column(priority, "priority")]
    return call("prioritized_correction", inputs, options, over=groups(over))


def doremi_weight(
    alpha: Column,
    excess: Column,
    *,
    eta: float = 1.0,
    c: float = 1e-3,
    over: Columns | None = None,
) -> pl.Expr:
    """The next shares of domains, from how far a model is behind a reference on each.

    One row is one domain. Shares alpha * exp(eta * max(excess, 0)), scaled to sum 1, are mixed with
    equal ones: (1 - c) * share + c / k for k domains (one step of DoReMi, Xie et al. 2023, where
    the mean of the shares over all steps is what is used in the end).

    Args:
        alpha: Shares so far, finite and at least 0; not all of them 0.
        excess: Loss in excess of the reference model, finite, such as the mean a token.
        eta: Step size, at least 0.
        c: Smoothing, 0 to 1.
        over: Group columns: one set of domains a group.

    Returns:
        Float64, with sum 1, named like the column `alpha`.

    Raises:
        InvalidArgumentError: If an option is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {
        "eta": number(eta, "eta", least=0),
        "c": number(c, "c", least=0, most=1),
    }
    inputs = [column(alpha, "alpha"), column(excess, "excess")]
    return call("doremi_weight", inputs, options, over=groups(over))


def effective_sample_size(weight: Column) -> pl.Expr:
    """How many equally weighted rows are worth as much as these: (sum w)^2 / sum(w^2).

    Kish 1965. One value for all rows. Nulls are left out; without a weight above 0 it is 0.

    Args:
        weight: Weights, finite and at least 0.

    Returns:
        Float64, one value, named like the column.

    Raises:
        ArgumentTypeError: If the argument is neither a name nor an expression.
    """
    return call("effective_sample_size", [column(weight, "weight")], {}, kind="reduction")
