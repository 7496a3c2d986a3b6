"""How expressions reach the native functions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from polars.plugins import register_plugin_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

__all__ = ["Kind", "call", "plugin_path"]

Kind = Literal["elementwise", "column", "reduction"]
"""What a function needs and gives.

"elementwise": each row by itself, so that Polars may cut the column in pieces as it likes.
"column": all rows at once, as many rows back. "reduction": all rows at once, one value back.
"""


@cache
def plugin_path() -> Path:
    """The shared object that holds the functions."""
    from dataset_rt import _native  # noqa: PLC0415 - expressions are made without the rest

    if _native.__file__ is None:
        raise ImportError("dataset_rt._native has no file that Polars could load")
    return Path(_native.__file__)


def call(
    name: str,
    columns: Sequence[pl.Expr],
    options: dict[str, Any],
    *,
    over: Sequence[pl.Expr] = (),
    kind: Kind = "column",
) -> pl.Expr:
    """Makes the expression of a native function.

    Args:
        name: Name of the function.
        columns: Its columns. Polars broadcasts none of them; the native side does.
        options: Its options: numbers, strings, lists. The number of group columns joins them as
            "over", unless the function is elementwise.
        over: Group columns, which go after the others.
        kind: What it needs and gives.
    """
    # Empty options would arrive as no bytes at all, which don't parse.
    kwargs = {"elementwise": True} if kind == "elementwise" else {"over": len(over)}
    return register_plugin_function(
        # The file itself: Polars searches a folder in no certain order.
        plugin_path=plugin_path(),
        function_name=name,
        args=[*columns, *over],
        kwargs={**kwargs, **options},
        is_elementwise=kind == "elementwise",
        returns_scalar=kind == "reduction",
    )
