"""One expression beside other ways to the same column: what is checked, and what is timed."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from .measure import Block, Case, Unit
from .tally import milliseconds
from .targets import EXPRESSIONS, PRODUCT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Way: TypeAlias = Callable[[pl.DataFrame], "pl.Series | NDArray[Any]"]

POLARS = "plain Polars"
NUMPY = "NumPy"
ANOTHER = "another result, "
"""Before the names of ways that don't compute ours: what they cost is shown, and no target."""
SKLEARN = "scikit-learn"
ELEMENTWISE = "map_elements"
CHECKED_ROWS = 100_000
ELEMENTWISE_ROWS = 100_000
"""Ways that call Python for each row get so many rows; their time is scaled to all of them."""


@dataclass(frozen=True)
class Other:
    """A way beside ours. It takes the frame and gives the column."""

    name: str
    way: Way
    most_rows: int | None = None
    """A slow way gets so many rows at most; its time is scaled to all of them."""
    same: bool = True
    """Whether it gives our values. A hash or a draw of another kind is only timed."""


@dataclass(frozen=True)
class Row:
    """One expression and the ways beside it."""

    name: str
    ours: pl.Expr
    others: tuple[Other, ...]
    most_rows: int | None = None


def selected(column: pl.Expr, frame: pl.DataFrame) -> pl.Series:
    # Lazily: an eager select computes a part that stands twice in a formula twice.
    return frame.lazy().select(column).collect().to_series()


def _name(way: str, *, same: bool) -> str:
    return way if same else ANOTHER + way


def by_polars(formula: pl.Expr, detail: str = "", *, same: bool = True) -> Other:
    return Other(_name(POLARS + detail, same=same), partial(selected, formula), same=same)


def by_numpy(
    formula: Callable[..., Any], *columns: str, detail: str = "", same: bool = True
) -> Other:
    def way(frame: pl.DataFrame) -> NDArray[Any]:
        found: NDArray[Any] = formula(*(frame[name].to_numpy() for name in columns))
        return found

    return Other(_name(NUMPY + detail, same=same), way, same=same)


def by_element(
    make: Callable[[pl.Series], Callable[[Any], object]],
    column: str,
    dtype: pl.DataType | type[pl.DataType],
    *,
    most_rows: int = ELEMENTWISE_ROWS,
    same: bool = True,
) -> Other:
    """`make` gets the column first, to see all rows; what it returns is called for each."""

    def way(frame: pl.DataFrame) -> pl.Series:
        values = frame[column]
        with warnings.catch_warnings():
            # That this is slow is what is shown.
            warnings.simplefilter("ignore", pl.exceptions.PolarsInefficientMapWarning)
            found: pl.Series = values.map_elements(make(values), return_dtype=dtype)
            return found

    return Other(ELEMENTWISE, way, most_rows, same)


def block(row: Row, frame: pl.DataFrame) -> Block:
    few = frame.head(row.most_rows or len(frame))
    return Block(f"{EXPRESSIONS}{row.name}", f"{len(few):,} rows", partial(_cases, row, few))


@contextmanager
def _cases(row: Row, frame: pl.DataFrame) -> Iterator[list[Case]]:
    _check(row, frame)
    found = [
        Case(row.name, other.name, partial(_scaled, other, frame), Unit.MILLISECONDS)
        for other in row.others
    ]
    names = tuple(other.name for other in row.others)
    run = partial(milliseconds, partial(selected, row.ours, frame))
    yield [*found, Case(row.name, PRODUCT, run, Unit.MILLISECONDS, beside=names)]


def _scaled(other: Other, frame: pl.DataFrame) -> float:
    few = frame.head(other.most_rows or len(frame))
    return milliseconds(partial(other.way, few)) * (len(frame) / len(few))


def _check(row: Row, frame: pl.DataFrame) -> None:
    for other in row.others:
        few = frame.head(min(other.most_rows or CHECKED_ROWS, CHECKED_ROWS))
        if other.same and not agree(other.way(few), selected(row.ours, few)):
            message = f"{row.name}: {other.name} gives other values"
            raise RuntimeError(message)


def agree(found: pl.Series | NDArray[Any], known: pl.Series) -> bool:
    """Whether two columns hold the same; floats may be rounded differently."""
    one, two = np.asarray(found), np.asarray(known)
    if one.shape != two.shape:
        return False
    if one.dtype.kind == "f" or two.dtype.kind == "f":
        return bool(np.allclose(one, two, rtol=1e-12, atol=0))
    return bool(np.array_equal(one, two))
