"""The `drt` namespaces: `pl.col("label").drt.balanced_weight()`.

Sugar over the functions. Type checkers see the functions alone.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["register"]


class _Namespace:
    """Expressions of DatasetRT, the first argument being the expression itself."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression


class _SeriesNamespace:
    """Expressions of DatasetRT, the first argument being the series itself."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series


class _Function(Protocol):
    """A public function that takes a column first."""

    __name__: str

    def __call__(self, *args: Any, **options: Any) -> pl.Expr: ...  # noqa: ANN401 - any of them


def register(functions: Iterable[_Function]) -> None:
    """Registers the functions, each a method of its own name, on expressions and series.

    Args:
        functions: Functions whose first argument is a column or any number of them.
    """
    for function in functions:
        setattr(_Namespace, function.__name__, _on_expression(function))
        setattr(_SeriesNamespace, function.__name__, _on_series(function))
    pl.api.register_expr_namespace("drt")(_Namespace)
    pl.api.register_series_namespace("drt")(_SeriesNamespace)


def _on_expression(function: _Function) -> Callable[..., pl.Expr]:
    @wraps(function)
    def method(self: _Namespace, *args: Any, **options: Any) -> pl.Expr:  # noqa: ANN401 - passed on
        return function(self._expression, *args, **options)

    return method


def _on_series(function: _Function) -> Callable[..., pl.Series]:
    @wraps(function)
    def method(self: _SeriesNamespace, *args: Any, **options: Any) -> pl.Series:  # noqa: ANN401 - passed on
        return pl.select(function(pl.lit(self._series), *args, **options)).to_series()

    return method
