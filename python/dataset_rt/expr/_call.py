"""How expressions reach the native functions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from polars.plugins import register_plugin_function

from dataset_rt.errors import PolarsVersionError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Kind", "call", "plugin_path"]

_NEEDED = "1.36 to 2.x"

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


@cache
def check_polars(plugin: Path) -> None:
    """Asks Polars once whether it takes the functions of the shared object.

    Otherwise it would say so only when a query runs, and not what to do about it.

    Raises:
        PolarsVersionError: If it doesn't.
    """
    probe = register_plugin_function(
        plugin_path=plugin,
        function_name="focal_weight",
        args=[pl.col("x")],
        kwargs={"gamma": 1.0},
        is_elementwise=True,
    )
    try:
        # The schema alone: nothing runs, and no thread of Polars is needed.
        pl.LazyFrame(schema={"x": pl.Float64}).select(probe).collect_schema()
    except pl.exceptions.ComputeError as error:
        if "plugin version" not in str(error):
            raise
        raise PolarsVersionError(
            f"Polars {pl.__version__} refuses the plugin interface of dataset_rt's expressions "
            f"({str(error).splitlines()[0]}); they need Polars {_NEEDED}. Everything but "
            "dataset_rt.expr works",
            installed=pl.__version__,
            needed=_NEEDED,
        ) from None


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

    Raises:
        PolarsVersionError: If the installed Polars doesn't take native functions of this kind.
    """
    check_polars(plugin_path())
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
