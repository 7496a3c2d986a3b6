"""Arguments that many expressions have: columns, groups, choices and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from dataset_rt._arguments import describe
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Column", "Columns", "choice", "classes", "column", "columns", "groups", "number"]

Column: TypeAlias = "str | pl.Expr"
"""The name of a column, or an expression."""

Columns: TypeAlias = "str | pl.Expr | Sequence[str | pl.Expr]"
"""One column or several."""


def column(value: object, argument: str) -> pl.Expr:
    """Returns an argument that is one column.

    Raises:
        ArgumentTypeError: If it is neither a name nor an expression.
    """
    if isinstance(value, str):
        return pl.col(value)
    if isinstance(value, pl.Expr):
        return value
    raise ArgumentTypeError(
        f"{argument} must be a column name or an expression, found {describe(value)}",
        argument=argument,
    )


def columns(values: Iterable[object], argument: str) -> list[pl.Expr]:
    """Returns an argument that is one or more columns.

    Raises:
        InvalidArgumentError: If there is none.
        ArgumentTypeError: If one is neither a name nor an expression.
    """
    found = [column(value, argument) for value in values]
    if not found:
        raise InvalidArgumentError(f"{argument} needs at least one column", argument=argument)
    return found


def classes(values: Iterable[object], argument: str) -> list[pl.Expr]:
    """Returns an argument that is one or more columns of which only equality counts.

    Categories, decimals and times go as the integers that they are: on the way to native code
    Polars would make dictionaries of categories.

    Raises:
        InvalidArgumentError: If there is none.
        ArgumentTypeError: If one is neither a name nor an expression.
    """
    return [found.to_physical() for found in columns(values, argument)]


def groups(over: Columns | None) -> list[pl.Expr]:
    """Returns the group columns of `over=`; none of them for None.

    Raises:
        InvalidArgumentError: If the list of them is empty.
        ArgumentTypeError: If it is something else.
    """
    if over is None:
        return []
    if isinstance(over, Sequence) and not isinstance(over, str):
        return classes(over, "over")
    return classes([over], "over")


def choice(value: object, argument: str, allowed: Sequence[str | None]) -> str:
    """Returns one of the allowed values, "none" for None.

    Raises:
        InvalidArgumentError: If it is something else.
    """
    for name in allowed:
        if value == name:
            return "none" if name is None else name
    listed = [repr(name) for name in allowed]
    raise InvalidArgumentError(
        f"{argument} must be {', '.join(listed[:-1])} or {listed[-1]}, found {describe(value)}",
        argument=argument,
    )


def number(
    value: Any,  # noqa: ANN401 - anything may come, also numbers of NumPy
    argument: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """Returns a finite number within bounds; `above` and `below` don't belong to them.

    Raises:
        InvalidArgumentError: If it is out of bounds or not finite.
        ArgumentTypeError: If it is no number.
    """
    try:
        found = float(value) if not isinstance(value, (str, bytes, bool)) else None
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise ArgumentTypeError(
            f"{argument} must be a number, found {describe(value)}", argument=argument
        )
    if math.isfinite(found) and least <= found <= most and above < found < below:
        return found
    bounds = [
        f"{text} {bound:g}"
        for text, bound in (
            ("at least", least),
            ("above", above),
            ("below", below),
            ("at most", most),
        )
        if math.isfinite(bound)
    ]
    rule = " and ".join(bounds) or "finite"
    raise InvalidArgumentError(
        f"{argument} must be {rule}, found {describe(value)}", argument=argument
    )
