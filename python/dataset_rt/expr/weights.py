"""Weights that depend on how many rows a class has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from dataset_rt._arguments import describe, is_integer
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError
from dataset_rt.expr._call import call
from dataset_rt.expr._columns import choice, classes, column, groups, number

if TYPE_CHECKING:
    import polars as pl

    from dataset_rt.expr._columns import Column, Columns

__all__ = [
    "NullPolicy",
    "ShareKey",
    "WeightScale",
    "balanced_weight",
    "effective_number_weight",
    "expected_share",
    "mixture_weight",
    "temperature_weight",
    "unimax_weight",
]

WeightScale: TypeAlias = Literal["rows", "classes"] | None
"""What is 1 on average: the weights of the rows, those of the classes, or nothing."""

NullPolicy: TypeAlias = Literal["error", "class", "zero"]
"""Whether a null class is refused, a class of its own, or gets weight 0."""

ShareKey: TypeAlias = str | int | float | bool | None
"""A value of a source column."""

_SCALES: Final = ("rows", "classes", None)
_NULLS: Final = ("error", "class", "zero")


def balanced_weight(
    *by: Column,
    normalize: WeightScale = "rows",
    null: NullPolicy = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Weights under which every class is drawn equally often.

    A row of class c gets N / (K n_c) for N rows, K classes present and n_c rows of the class: the
    weights known as "balanced". `normalize` scales them so that a mean is 1: over the rows, which
    this formula already has, or over the classes, each counted once. With `null="zero"` N and K
    count the rows and classes without nulls.

    The whole column is needed at once, and the result is as long as it. `over=` computes each
    group for itself in one native call; `.over(...)` gives the same and makes one call a group.

    Args:
        *by: Columns or expressions of any type that can be compared. Several make one class of
            their combinations. NaN is one class; 0.0 and -0.0 are one.
        normalize: "rows" for mean 1 over the rows, "classes" for mean 1 over the classes, None for
            the formula as it is.
        null: A row is null if one of `by` is. "error" raises, "class" makes null a value like any
            other, "zero" gives such rows weight 0.
        over: Group columns. A null is a group.

    Returns:
        Float64, named like the first column.

    Raises:
        InvalidArgumentError: If there is no column, or an option is unknown.
        ArgumentTypeError: If a column is neither a name nor an expression.

    With `null="error"` nulls are a `polars.exceptions.ComputeError` when the expression runs.

    Examples:
        >>> import polars as pl
        >>> from dataset_rt import expr as drt
        >>> frame = pl.DataFrame({"label": ["a", "a", "a", "b"]})
        >>> frame.select(drt.balanced_weight("label"))["label"].to_list()
        [0.6666666666666666, 0.6666666666666666, 0.6666666666666666, 2.0]
    """
    return _by_class("balanced_weight", by, {}, normalize, null, over)


def effective_number_weight(
    *by: Column,
    beta: float = 0.999,
    normalize: WeightScale = "rows",
    null: NullPolicy = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Weights by the effective number of samples: between equal and balanced ones.

    A row of class c gets (1 - beta) / (1 - beta^n_c) for n_c rows of the class (Cui, Jia, Lin, Song
    and Belongie 2019). beta = 0 gives equal weights; near 1 they come near 1 / n_c. The paper
    scales them to sum K over the K classes, which is `normalize="classes"`.

    Args:
        *by: Class columns, as in `balanced_weight`.
        beta: At least 0 and below 1.
        normalize: "rows", "classes" or None, as in `balanced_weight`.
        null: "error", "class" or "zero", as in `balanced_weight`.
        over: Group columns, each group computed for itself.

    Returns:
        Float64, named like the first column.

    Raises:
        InvalidArgumentError: If there is no column, or an option is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {"beta": number(beta, "beta", least=0, below=1)}
    return _by_class("effective_number_weight", by, options, normalize, null, over)


def temperature_weight(
    *by: Column,
    temperature: float | None = None,
    alpha: float | None = None,
    limit: float | None = None,
    normalize: WeightScale = "rows",
    null: NullPolicy = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Weights under which a class is drawn in proportion to a power of its size.

    The share of class c is p_c = min(n_c, limit)^alpha / (the sum of these), spread over its rows:
    p_c / n_c. alpha = 1 / temperature: 1 keeps the sizes, 0 makes classes equal, 0.5 is square-root
    sampling (Mahajan et al. 2018), 0.7 and 0.3 are used for languages (Devlin et al. 2019; Conneau
    et al. 2020); the limit is applied before the temperature (Raffel et al. 2020).
    `expected_share` gives p_c back from the weights.

    Args:
        *by: Class columns, as in `balanced_weight`.
        temperature: Above 0. Either this or `alpha` must be given.
        alpha: At least 0.
        limit: Rows of a class beyond which it counts no larger, above 0.
        normalize: "rows", "classes" or None, as in `balanced_weight`; None gives p_c / n_c.
        null: "error", "class" or "zero", as in `balanced_weight`.
        over: Group columns, each group computed for itself.

    Returns:
        Float64, named like the first column.

    Raises:
        InvalidArgumentError: If there is no column, an option is out of range, or not just one of
            `temperature` and `alpha` is given.
        ArgumentTypeError: If an argument has the wrong type.

    A weight that a float doesn't hold is a `polars.exceptions.ComputeError`.
    """
    if (temperature is None) == (alpha is None):
        raise InvalidArgumentError(
            "either temperature or alpha must be given, and not both; alpha = 1 / temperature",
            argument="temperature",
        )
    if alpha is None:
        power = 1.0 / number(temperature, "temperature", above=0)
        if math.isinf(power):
            raise InvalidArgumentError(
                f"temperature is too small, found {describe(temperature)}", argument="temperature"
            )
    else:
        power = number(alpha, "alpha", least=0)
    options = {
        "alpha": power,
        "limit": None if limit is None else number(limit, "limit", above=0),
    }
    return _by_class("temperature_weight", by, options, normalize, null, over)


def unimax_weight(
    *by: Column,
    budget: float,
    max_epochs: float,
    normalize: WeightScale = "rows",
    null: NullPolicy = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Weights under which classes get equal shares, but no class comes more than so many times.

    A budget of samples is dealt out evenly, the smallest class first; a class of n_c rows gets at
    most n_c * max_epochs of it, and what it leaves goes to the larger ones (UniMax, Chung et al.
    2023). The share p_c of what was dealt out is spread over the rows: p_c / n_c.

    Args:
        *by: Class columns, as in `balanced_weight`.
        budget: Samples that will be drawn, above 0; with `over`, from each group.
        max_epochs: How often a row may come on average, above 0.
        normalize: "rows", "classes" or None, as in `balanced_weight`; None gives p_c / n_c.
        null: "error", "class" or "zero", as in `balanced_weight`.
        over: Group columns, each group computed for itself.

    Returns:
        Float64, named like the first column.

    Raises:
        InvalidArgumentError: If there is no column, or an option is out of range.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {
        "budget": number(budget, "budget", above=0),
        "max_epochs": number(max_epochs, "max_epochs", above=0),
    }
    return _by_class("unimax_weight", by, options, normalize, null, over)


def mixture_weight(
    source: Column,
    shares: Mapping[Any, float],
    *,
    normalize: WeightScale = "rows",
    null: NullPolicy = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """Weights under which each source is drawn with a given share.

    A row of source c gets p_c / n_c, p_c being the share that `shares` gives and n_c the rows of
    the source. With `over` a group may lack sources: the shares of those it has are scaled up.

    Args:
        source: The column that says where a row is from: strings, integers, floats or Booleans.
        shares: From each value of the column to its share, at least 0, with sum 1 within 1e-9.
            With share 0 the rows of a source get weight 0. `None` stands for nulls, which then
            needs `null="class"`.
        normalize: "rows", "classes" or None, as in `balanced_weight`; None gives p_c / n_c.
        null: "error", "class" or "zero", as in `balanced_weight`.
        over: Group columns, each group computed for itself.

    Returns:
        Float64, named like the source column.

    Raises:
        InvalidArgumentError: If the shares are out of range or don't sum to 1, or an option is
            unknown.
        ArgumentTypeError: If an argument has the wrong type.

    A value of the column without a share is a `polars.exceptions.ComputeError` when the expression
    runs, and so is a share above 0 for a value that no row has.

    Examples:
        >>> import polars as pl
        >>> from dataset_rt import expr as drt
        >>> frame = pl.DataFrame({"source": ["web", "web", "web", "books"]})
        >>> weight = drt.mixture_weight("source", {"web": 0.4, "books": 0.6})
        >>> frame.select(weight.round(3))["source"].to_list()
        [0.533, 0.533, 0.533, 2.4]
    """
    options = {
        "shares": _keyed(shares),
        "normalize": choice(normalize, "normalize", _SCALES),
        "null": choice(null, "null", _NULLS),
    }
    return call("mixture_weight", [column(source, "source")], options, over=groups(over))


def expected_share(
    *by: Column,
    weight: Column,
    null: NullPolicy = "error",
    over: Columns | None = None,
) -> pl.Expr:
    """The share of draws that the class of each row gets under given weights.

    The sum of the weights of the class over the sum of all weights: what weighted draws with
    replacement give on average. It is the same in every row of a class.

    Args:
        *by: Class columns, as in `balanced_weight`.
        weight: Weights, finite and at least 0; not all of them 0.
        null: "error", "class" or "zero", as in `balanced_weight`; with "zero" rows without a class
            are left out of both sums.
        over: Group columns, each group computed for itself.

    Returns:
        Float64, named like the weight column.

    Raises:
        InvalidArgumentError: If there is no class column, or an option is unknown.
        ArgumentTypeError: If an argument has the wrong type.
    """
    options = {"null": choice(null, "null", _NULLS)}
    inputs = [column(weight, "weight"), *classes(by, "by")]
    return call("expected_share", inputs, options, over=groups(over))


def _keyed(shares: object) -> list[tuple[dict[str, Any], float]]:
    """Returns the mapping in the form that the native side reads."""
    if not isinstance(shares, Mapping):
        raise ArgumentTypeError(
            f"shares must be a mapping from value to share, found {describe(shares)}",
            argument="shares",
        )
    pairs = [
        (_key(key), number(share, f"the share of {key!r}", least=0, most=1))
        for key, share in shares.items()
    ]
    total = math.fsum(share for _, share in pairs)
    if abs(total - 1) > 1e-9:  # noqa: PLR2004 - as the documentation says
        raise InvalidArgumentError(f"shares must sum to 1, found {total!r}", argument="shares")
    return pairs


def _key(value: object) -> dict[str, Any]:
    if value is None:
        return {"null": None}
    if isinstance(value, bool):
        return {"bool": value}
    if is_integer(value):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": float(value)}
    if isinstance(value, str):
        return {"str": str(value)}
    raise ArgumentTypeError(
        f"a key of shares must be a string, number, Boolean or None, found {describe(value)}",
        argument="shares",
    )


def _by_class(
    name: str,
    by: tuple[Column, ...],
    options: dict[str, Any],
    normalize: WeightScale,
    null: NullPolicy,
    over: Columns | None,
) -> pl.Expr:
    """Makes the expression of a weight that depends on the rows of a class."""
    options = {
        **options,
        "normalize": choice(normalize, "normalize", _SCALES),
        "null": choice(null, "null", _NULLS),
    }
    return call(name, classes(by, "by"), options, over=groups(over))
