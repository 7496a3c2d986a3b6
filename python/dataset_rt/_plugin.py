"""How expressions reach the native functions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polars.plugins import register_plugin_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

__all__ = ["call", "plugin_path"]


@cache
def plugin_path() -> Path:
    """The shared object that holds the functions."""
    from dataset_rt import _native  # noqa: PLC0415 - expressions are made without the rest

    if _native.__file__ is None:
        raise ImportError("dataset_rt._native has no file that Polars could load")
    return Path(_native.__file__)


def call(
    name: str, args: Sequence[pl.Expr], kwargs: dict[str, Any], *, is_elementwise: bool = False
) -> pl.Expr:
    """Makes the expression of a native function.

    Args:
        name: Name of the function.
        args: Its columns. Polars broadcasts none of them.
        kwargs: Its options, at least one: numbers, strings, lists.
        is_elementwise: Whether each row can be computed by itself. Then Polars cuts the column in
            pieces as it likes.
    """
    return register_plugin_function(
        # The file itself: Polars searches a folder in no certain order.
        plugin_path=plugin_path(),
        function_name=name,
        args=list(args),
        kwargs=kwargs,
        is_elementwise=is_elementwise,
    )
