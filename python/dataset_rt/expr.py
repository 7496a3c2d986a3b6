"""Polars expressions for weighting samples.

They work on any frame, eager and lazy: `from dataset_rt import expr as drt`.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import polars as pl

from dataset_rt._arguments import describe
from dataset_rt._plugin import call
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

__all__ = ["NullPolicy", "WeightScale", "balanced_weight"]

WeightScale: TypeAlias = Literal["rows", "classes"] | None
"""What is 1 on average: the weights of the rows, those of the classes, or nothing."""

NullPolicy: TypeAlias = Literal["error", "class", "zero"]
"""Whether a null class is refused, a class of its own, or gets weight 0."""

_SCALES: Final = {"rows": "rows", "classes": "classes", None: "none"}
_NULLS: Final = ("error", "class", "zero")


def balanced_weight(
    *by: str | pl.Expr,
    normalize: WeightScale = "rows",
    null: NullPolicy = "error",
) -> pl.Expr:
    """Weights under which every class is drawn equally often.

    A row of class c gets N / (K n_c) for N rows, K classes present and n_c rows of the class: the
    weights known as "balanced". `normalize` scales them so that a mean is 1: over the rows, which
    this formula already has, or over the classes, each counted once. With `null="zero"` N and K
    count the rows and classes without nulls.

    The whole column is needed at once, and the result is as long as it. `.over(...)` works and
    makes one native call a group.

    Args:
        *by: Columns or expressions of any type that can be compared. Several make one class of
            their combinations. NaN is one class; 0.0 and -0.0 are one.
        normalize: "rows" for mean 1 over the rows, "classes" for mean 1 over the classes, None for
            the formula as it is.
        null: A row is null if one of `by` is. "error" raises, "class" makes null a value like any
            other, "zero" gives such rows weight 0.

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
    if normalize not in _SCALES:
        raise InvalidArgumentError(
            f"normalize must be 'rows', 'classes' or None, found {describe(normalize)}",
            argument="normalize",
        )
    if null not in _NULLS:
        raise InvalidArgumentError(
            f"null must be 'error', 'class' or 'zero', found {describe(null)}", argument="null"
        )
    codes = _class_codes(by, null_is_class=null == "class")
    return call("balanced_weight", [codes], {"normalize": _SCALES[normalize], "null": null})


def _class_codes(by: tuple[str | pl.Expr, ...], *, null_is_class: bool) -> pl.Expr:
    """Returns UInt32 codes, one a combination of values; null where a value is null."""
    if not by:
        raise InvalidArgumentError("at least one class column is needed", argument="by")
    columns = [_column(value) for value in by]
    # Two expressions may have one name, two fields of a struct may not.
    fields = [column.name.prefix(f"{i}:") if i else column for i, column in enumerate(columns)]
    # A struct is ranked by its fields, whatever their types; a null field is a value there.
    codes = pl.struct(fields).rank("dense").cast(pl.UInt32)
    if null_is_class:
        return codes
    return pl.when(pl.all_horizontal(column.is_not_null() for column in columns)).then(codes)


def _column(value: object) -> pl.Expr:
    if isinstance(value, str):
        return pl.col(value)
    if isinstance(value, pl.Expr):
        return value
    raise ArgumentTypeError(
        f"a class column must be a column name or an expression, found {describe(value)}",
        argument="by",
    )
