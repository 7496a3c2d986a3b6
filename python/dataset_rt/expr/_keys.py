"""Arguments that splits, draws and duplicates have in common: keys, seeds, shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dataset_rt._arguments import MAX_U64, describe, integer, is_integer
from dataset_rt.errors import ArgumentTypeError, InvalidArgumentError
from dataset_rt.expr._columns import Columns, column, columns

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Shares", "key_columns", "optional_key", "parts", "signed_seed"]

Shares = Mapping[str, float]
"""From the name of a part to its share; the shares make 1 within 1e-9."""

TOLERANCE = 1e-9

MAX_PARTS = 255
"""Parts of a split: their numbers in an Enum are 8 bits wide."""


def key_columns(value: object, argument: str) -> list[pl.Expr]:
    """Returns an argument that is one column or several.

    Raises:
        InvalidArgumentError: If it is an empty list.
        ArgumentTypeError: If it is something else.
    """
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return columns(value, argument)
    return [column(value, argument)]


def optional_key(value: Columns | None, argument: str) -> list[pl.Expr]:
    """Returns an argument that is one column, several, or None for none of them.

    Raises:
        InvalidArgumentError: If it is an empty list.
        ArgumentTypeError: If it is something else.
    """
    return [] if value is None else key_columns(value, argument)


def signed_seed(seed: object) -> int:
    """Returns a seed of 64 bits as the signed integer of the same bits, as options are sent.

    Raises:
        ArgumentTypeError: If it is no integer.
        InvalidArgumentError: If it is below 0 or above 2^64 - 1.
    """
    found = integer(seed, "seed", 0, MAX_U64)
    return found - 2**64 if found >= 2**63 else found


def parts(shares: object) -> tuple[list[str], list[float]]:
    """Returns the names of the parts of a split and their shares.

    Raises:
        ArgumentTypeError: If `shares` is no mapping from names to numbers.
        InvalidArgumentError: If there are no parts or more than 255, a share isn't above 0, or they
            don't make 1.
    """
    if not isinstance(shares, Mapping):
        raise ArgumentTypeError(
            f"shares must be a mapping from the name of a part to its share, found "
            f"{describe(shares)}",
            argument="shares",
        )
    names: list[str] = []
    numbers: list[float] = []
    for name, share in shares.items():
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"the names of the parts in shares must be str, found {describe(name)}",
                argument="shares",
            )
        if not isinstance(share, float) and not is_integer(share):
            raise ArgumentTypeError(
                f"the share of {name!r} must be a number, found {describe(share)}",
                argument="shares",
            )
        if not 0 < share < math.inf:
            raise InvalidArgumentError(
                f"the share of {name!r} must be above 0, found {describe(share)}",
                argument="shares",
            )
        names.append(name)
        numbers.append(float(share))
    if not 1 <= len(names) <= MAX_PARTS:
        raise InvalidArgumentError(
            f"shares must have 1 to {MAX_PARTS} parts, found {len(names)}", argument="shares"
        )
    # Summed as the native side does: from the first on.
    total = sum(numbers)
    if abs(total - 1) > TOLERANCE:
        raise InvalidArgumentError(
            f"shares must make 1 within 1e-9, found {total!r}", argument="shares"
        )
    return names, numbers
