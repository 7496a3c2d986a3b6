"""What the registry says of an expression."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from dataset_rt.expr._call import Kind


Definition: TypeAlias = "Callable[[pl.DataFrame, Any], Any]"
"""The function in plain Python or Polars, on the rows of one group: definition(frame, group).

It gives a value a row (one value for a reduction), or raises ValueError where the expression is to
fail. `group` holds the values of the group columns when `over=` is used, else None; only draws look
at it.
"""


@dataclass(frozen=True)
class Example:
    """One use of an expression."""

    frame: pl.DataFrame
    """Rows to run on, in columns that the expression reads. Not too few: groups are cut from it."""
    call: Callable[..., pl.Expr]
    """Makes the expression; takes `over=` if the row says so."""
    definition: Definition
    dtype: pl.DataType | type[pl.DataType] | None = None
    """Type of the result, if it is another than the row's."""


@dataclass(frozen=True)
class Row:
    """One public function."""

    name: str
    kind: Kind
    dtype: pl.DataType | type[pl.DataType]
    """Type of the result."""
    examples: list[Example]
    over: bool = True
    """Whether it takes `over=`: every function of kind "column" whose rows depend on others."""
    native: tuple[str, ...] = field(default=())
    """Names of the native functions behind it; none for plain Polars."""
    rtol: float = 1e-12
    """Relative deviation of floats from the definition."""
    output: str | None = None
    """Name of the result, if it is not that of the first column that the expression reads."""
    of_column: bool = True
    """Whether the first argument is a column: only then it is a method of the namespaces."""
